import { startAuthorization } from '@modelcontextprotocol/client'
import * as z from 'zod'
import { ApiError } from '../../../lib/api-error.ts'
import { randomBase62 } from '../../../lib/ids.ts'
import { errorText, logEvent } from '../../../lib/log.ts'
import { markNeedsReauth } from '../../connections/connections.store.ts'
import { CredentialsUnavailable, type Integration, type UpstreamCredential } from '../../types.ts'
import { clientInformation, serverMetadata } from '../../vault/oauth-metadata.ts'
import {
  type OAuthCredential,
  openStoredCredential,
  type StoredCredential,
  upstreamCredential,
} from '../../vault/stored-credential.ts'
import type { BrokerDeps, BrokeredConnection, ConnectAttempt, ConnectionBroker } from '../broker.ts'
import { BrokerError, brokerFetch } from '../broker-fetch.ts'
import {
  type Authorization,
  type AuthorizedUpstream,
  type ClientInformation,
  discoverAuthorization,
  registerOwnClient,
} from './authorization-server.ts'
import { revokeGrant } from './revoke-grant.ts'
import { endsSoon, tokenDigest } from './token-renewal.ts'

/** Time for which a link to connect an account can be used. */
const CONNECT_TIME_MS = 30 * 60_000

const CALLBACK_PATH = '/connect/callback'

/** State for the return of the browser: stored sealed in the connect session. */
export const authorizationState = z.object({
  server: serverMetadata,
  client: clientInformation,
  resource: z.string().nullable(),
  redirectUri: z.string(),
  verifier: z.string(),
  /** The `state` of the authorization request. */
  state: z.string(),
  authorizationUrl: z.string(),
  /** Origin of the integration. */
  origin: z.string(),
  /** SHA-256 of the cookie of the browser that has begun, hex; null before one has. */
  browser: z.string().nullable(),
})
export type AuthorizationState = z.infer<typeof authorizationState>

/** Characters of the session's id at the beginning of `state`, by which the return finds its cookie. */
export const SESSION_KEY_LENGTH = 16

/** The vault of this gateway: static secrets, and OAuth 2.1 with tokens that it renews itself. */
export const localBroker: ConnectionBroker = {
  async startConnect({ clock, configuration }, attempt) {
    const { integration, origin, sessionId, secret } = attempt
    const send = brokerFetch(configuration.EGRESS_ALLOW)
    const upstream = oauthUpstream(integration)
    const authorization = await discoverAuthorization(send, upstream)
    const redirectUri = `${origin}${CALLBACK_PATH}`
    const client =
      configuredClient(upstream, attempt) ?? (await registerOwnClient(send, authorization, redirectUri))
    const state = `${sessionId.slice(0, SESSION_KEY_LENGTH)}.${randomBase62(43)}`
    const { authorizationUrl, codeVerifier } = await authorizationRequest(authorization, client, {
      redirectUri,
      state,
    })
    const stored: AuthorizationState = {
      server: authorization.server,
      client,
      resource: authorization.resource,
      redirectUri,
      verifier: codeVerifier,
      state,
      authorizationUrl: authorizationUrl.href,
      origin: new URL(integration.url).origin,
      browser: null,
    }
    return {
      url: `${origin}/connect/${secret}`,
      expiresAt: new Date(clock() + CONNECT_TIME_MS),
      state: JSON.stringify(stored),
    }
  },

  finishedConnect: async () => null,

  async credentialOf(deps, connection) {
    const stored = storedOf(deps, connection)
    if (stored?.kind === 'oauth' && endsSoon(stored, deps.clock())) {
      return renewed(deps, connection, null)
    }
    return fitting(connection, stored)
  },

  async reportRefused(deps, connection, refused) {
    const { organizationId, id, row } = connection
    const stored = storedOf(deps, connection)
    const current = stored && upstreamCredential(stored, connection.integration)
    if (current !== null && !isSame(current, refused)) return true
    if (stored?.kind !== 'oauth') {
      await markNeedsReauth(deps.database, organizationId, id, row.credentialVersion)
      return false
    }
    try {
      await renewed(deps, connection, tokenDigest(stored))
      return true
    } catch (error) {
      if (error instanceof CredentialsUnavailable) return false
      throw error
    }
  },

  async revoke(deps, connection) {
    try {
      const stored = storedOf(deps, connection)
      if (stored?.kind !== 'oauth') return
      // The deletion of a connection does not wait for a server.
      deps.waitUntil(revokeGrant(deps.configuration.EGRESS_ALLOW, connection.id, stored))
    } catch (error) {
      // A credential that does not open must not keep its connection.
      logEvent('warn', 'connection.grant_not_revoked', {
        connection_id: connection.id,
        error: errorText(error),
      })
    }
  },
}

function oauthUpstream({ kind, url, authorization }: Integration): AuthorizedUpstream {
  if (authorization.kind !== 'oauth') {
    throw new BrokerError('unusable', 'The integration takes a credential; no person connects an account.')
  }
  return { kind, url, authorization }
}

/** @throws BrokerError for a secret that a discovered server would get. */
function configuredClient(
  { authorization }: AuthorizedUpstream,
  { clientSecret }: ConnectAttempt,
): ClientInformation | null {
  const { clientId, authorizationServer } = authorization
  if (clientId === undefined) return null
  if (clientSecret === null) return { client_id: clientId }
  if (authorizationServer !== undefined) return { client_id: clientId, client_secret: clientSecret }
  throw new BrokerError(
    'unusable',
    'A client with a secret needs the authorization server in the integration: an upstream could name another one.',
  )
}

async function authorizationRequest(
  { server, resource, scope }: Authorization,
  client: ClientInformation,
  { redirectUri, state }: { redirectUri: string; state: string },
) {
  try {
    return await startAuthorization(server.issuer, {
      metadata: server,
      clientInformation: client,
      redirectUrl: redirectUri,
      state,
      ...(scope !== null && { scope }),
      ...(resource !== null && { resource }),
    })
  } catch (error) {
    throw new BrokerError('unusable', 'The authorization server cannot be used.', { cause: error })
  }
}

/** @throws when the stored credential does not open: its key is gone, or the row was altered. */
function storedOf(
  { configuration }: BrokerDeps,
  { organizationId, id, row }: BrokeredConnection,
): StoredCredential | null {
  if (row.sealedCredential === null) return null
  const owner = { organizationId, connectionId: id }
  return openStoredCredential(configuration.VAULT_KEYS, owner, row.sealedCredential)
}

/** @throws CredentialsUnavailable for a credential of another kind, or for another host. */
function fitting(
  { id, integration }: BrokeredConnection,
  stored: StoredCredential | null,
): UpstreamCredential {
  const credential = stored && upstreamCredential(stored, integration)
  if (credential === null) throw new CredentialsUnavailable(id)
  return credential
}

async function renewed(
  deps: BrokerDeps,
  connection: BrokeredConnection,
  refused: string | null,
): Promise<UpstreamCredential> {
  const { organizationId, id } = connection
  const renewal = await deps.renewTokens({ organizationId, connectionId: id, refused })
  if (renewal.kind === 'usable') return fitting(connection, renewal.credential satisfies OAuthCredential)
  if (renewal.kind === 'dead') throw new CredentialsUnavailable(id)
  const message = `The credentials of the connection cannot be renewed at the moment: ${renewal.message}`
  throw new ApiError('upstream', message, { code: 'credentials_not_renewed' })
}

const isSame = (left: UpstreamCredential, right: UpstreamCredential) =>
  Object.entries(left.headers).every(([name, value]) => right.headers[name] === value)
