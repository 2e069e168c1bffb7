import * as z from 'zod'
import { ApiError } from '../../../lib/api-error.ts'
import { markNeedsReauth } from '../../connections/connections.store.ts'
import { CredentialsUnavailable, type Integration, type UpstreamCredential } from '../../types.ts'
import { basicCredential, bearerCredential, headerCredential } from '../../vault/stored-credential.ts'
import type { BrokerDeps, BrokeredConnection, ConnectionBroker } from '../broker.ts'
import { BrokerError, brokerFetch } from '../broker-fetch.ts'

/**
 * Nango (https://nango.dev/docs/reference/backend/http-api): it has the accounts and renews their tokens. The id of an
 * integration there (`provider_config_key`) is the slug here. Nango chooses the ids of connections; the id of the connect
 * session, as the end user's, is what finds a new one.
 */

const connectSession = z.object({
  data: z.object({ connect_link: z.url(), expires_at: z.coerce.date() }),
})

const connectionList = z.object({
  connections: z.array(z.object({ connection_id: z.string(), provider_config_key: z.string() })),
})

/** The credentials that a request can carry in a header. */
const connectionCredentials = z.object({
  credentials: z.discriminatedUnion('type', [
    z.object({ type: z.literal('OAUTH2'), access_token: z.string() }),
    z.object({ type: z.literal('API_KEY'), apiKey: z.string() }),
    z.object({ type: z.literal('BASIC'), username: z.string(), password: z.string() }),
  ]),
})
type NangoCredentials = z.infer<typeof connectionCredentials>['credentials']

/** Statuses for a connection that is gone, and for one whose tokens cannot be renewed any more. */
const DEAD = [404, 424]

export const nangoBroker: ConnectionBroker = {
  async startConnect(deps, { sessionId, integration }) {
    const body = { end_user: { id: sessionId }, allowed_integrations: [integration.slug] }
    const answer = await call(deps, 'POST', '/connect/sessions', body)
    const { data } = read(connectSession, answer.ok ? answer.body : undefined)
    return { url: data.connect_link, expiresAt: data.expires_at, state: null }
  },

  async finishedConnect(deps, sessionId, slug) {
    const answer = await call(deps, 'GET', `/connections?endUserId=${encodeURIComponent(sessionId)}`)
    const { connections } = read(connectionList, answer.ok ? answer.body : undefined)
    const made = connections.find(({ provider_config_key: key }) => key === slug)
    return made ? { upstreamConnectionId: made.connection_id } : null
  },

  credentialOf: (deps, connection) => readCredential(deps, connection, false),

  async reportRefused(deps, connection, refused, isReplacement) {
    try {
      const current = isReplacement ? refused : await readCredential(deps, connection, true)
      if (Object.entries(current.headers).some(([name, value]) => refused.headers[name] !== value)) {
        return true
      }
    } catch (error) {
      if (!(error instanceof CredentialsUnavailable)) throw error
    }
    const { organizationId, id, row } = connection
    await markNeedsReauth(deps.database, organizationId, id, row.credentialVersion)
    return false
  },

  async revoke(deps, connection) {
    if (connection.row.upstreamConnectionId === '') return
    const answer = await call(deps, 'DELETE', connectionPath(connection))
    if (answer.ok || answer.status === 404) return
    throw new BrokerError('unavailable', 'The broker of the connection did not delete it.')
  },
}

/** @throws CredentialsUnavailable, which is also marked; ApiError upstream. */
async function readCredential(
  deps: BrokerDeps,
  connection: BrokeredConnection,
  isForced: boolean,
): Promise<UpstreamCredential> {
  const { organizationId, id, row, integration } = connection
  const path = `${connectionPath(connection)}${isForced ? '&force_refresh=true' : ''}`
  const { answer, credentials } = await asUpstreamError(async () => {
    const read_ = await call(deps, 'GET', path)
    return {
      answer: read_,
      credentials: read_.ok ? read(connectionCredentials, read_.body).credentials : null,
    }
  })
  if (credentials !== null) {
    const credential = headersOf(credentials, integration)
    if (credential !== null) return credential
    throw new CredentialsUnavailable(id)
  }
  if (!DEAD.includes(answer.status)) throw notAnswering()
  await markNeedsReauth(deps.database, organizationId, id, row.credentialVersion)
  throw new CredentialsUnavailable(id)
}

/** The header that the integration takes; null for a credential of another kind. */
function headersOf(credentials: NangoCredentials, { authorization }: Integration): UpstreamCredential | null {
  const { kind } = authorization
  if (credentials.type === 'BASIC') {
    return kind === 'basic' ? basicCredential(credentials.username, credentials.password) : null
  }
  const secret = credentials.type === 'OAUTH2' ? credentials.access_token : credentials.apiKey
  if (!/^[\x21-\x7e]+$/.test(secret)) return null
  if (kind === 'header') return headerCredential(authorization.header, secret)
  return kind === 'oauth' || kind === 'bearer' ? bearerCredential(secret) : null
}

const connectionPath = ({ row, integration }: BrokeredConnection) =>
  `/connections/${encodeURIComponent(row.upstreamConnectionId)}?provider_config_key=${encodeURIComponent(integration.slug)}`

interface NangoAnswer {
  ok: boolean
  status: number
  body: unknown
}

/** @throws BrokerError */
async function call(
  { configuration }: BrokerDeps,
  method: string,
  path: string,
  body?: unknown,
): Promise<NangoAnswer> {
  const { NANGO_SECRET_KEY: key, NANGO_URL: url, EGRESS_ALLOW: allow } = configuration
  if (key === undefined) {
    throw new BrokerError('unconfigured', 'This gateway has no key for the broker nango.')
  }
  const response = await brokerFetch(allow)(`${url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { ok: response.ok, status: response.status, body: parsed(text) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function read<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const result = schema.safeParse(body)
  if (result.success) return result.data
  throw new BrokerError('unavailable', 'The broker nango does not answer as it must.')
}

async function asUpstreamError<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof BrokerError) throw notAnswering()
    throw error
  }
}

const notAnswering = () =>
  new ApiError('upstream', 'The broker of the connection does not give its credentials at the moment.', {
    code: 'credentials_not_renewed',
  })
