import { randomBytes } from 'node:crypto'
import { BrokerError, brokerFetch } from '../../../integrations/brokers/broker-fetch.ts'
import {
  type AuthorizationState,
  authorizationState,
  SESSION_KEY_LENGTH,
} from '../../../integrations/brokers/local/local-broker.ts'
import { exchangeCode, TokenRefused } from '../../../integrations/brokers/local/oauth-tokens.ts'
import { sealStoredCredential } from '../../../integrations/vault/stored-credential.ts'
import type { ChangeScope } from '../../../ledger/changes/audited-change.ts'
import { ApiError } from '../../../lib/api-error.ts'
import { seal, secretsEqual, sha256Hex, unseal } from '../../../lib/crypto.ts'
import { errorText, logEvent } from '../../../lib/log.ts'
import { completeConnect } from './complete-connect.ts'
import {
  type ConnectSession,
  endSession,
  replaceState,
  selectSession,
  selectSessionByKey,
} from './connect-sessions.store.ts'
import { sessionContext } from './start-connect.ts'

/** A change that the person of a session makes. */
type PersonsChange = (session: ConnectSession) => ChangeScope

interface AuthorizeDeps {
  database: ChangeScope['database']
  clock: ChangeScope['clock']
  configuration: { VAULT_KEYS: ChangeScope['vaultRing']; EGRESS_ALLOW: readonly string[] }
}

/** Why a page of a session shows no way on. */
export type EndedSession = 'unknown' | 'expired' | 'completed' | 'failed' | 'other_browser'

/** The result of connecting an account. */
type Connected =
  | { kind: 'completed'; session: ConnectSession }
  | { kind: 'failed'; failure: string }
  | { kind: 'ended'; reason: EndedSession }

const LINK_SECRET = /^[0-9A-Za-z]{43}$/

/** The open session of a link. Only the page before the authorization server reads it; reading changes nothing. */
export async function openSession(
  deps: AuthorizeDeps,
  secret: string,
): Promise<
  | { kind: 'open'; session: ConnectSession; state: AuthorizationState }
  | { kind: 'ended'; reason: EndedSession }
> {
  const session = LINK_SECRET.test(secret) ? await selectSession(deps.database, sha256Hex(secret)) : null
  return session ? openedSession(deps, session) : { kind: 'ended', reason: 'unknown' }
}

function openedSession(deps: AuthorizeDeps, session: ConnectSession) {
  const { status, expiresAt, sealedState, organizationId, id } = session
  const ended = (reason: EndedSession) => ({ kind: 'ended' as const, reason })
  if (status !== 'pending') return ended(status)
  // A session whose state was taken is being finished, or its process has died: its link does not work again.
  if (expiresAt.getTime() <= deps.clock() || sealedState === null) return ended('expired')
  if (!session.isUserEnabled) return ended('unknown')
  const opened = unseal(deps.configuration.VAULT_KEYS, sealedState, sessionContext(organizationId, id))
  return { kind: 'open' as const, session, state: authorizationState.parse(JSON.parse(opened)) }
}

/** The name of the cookie that binds a session to the browser that has begun it. */
const cookieName = (sessionId: string) => `headgate_connect_${sessionId.slice(0, SESSION_KEY_LENGTH)}`

interface BegunAuthorization {
  kind: 'begun'
  /** Address of the authorization page. */
  url: string
  cookie: { name: string; value: string; seconds: number }
}

/**
 * Binds a session to a browser, and redirects it to the authorization server. A second browser cannot take the session over,
 * so that a code which another person has authorized is not accepted.
 * @param cookieOf reads a cookie of the request.
 */
export async function beginAuthorization(
  deps: AuthorizeDeps,
  secret: string,
  cookieOf: (name: string) => string | undefined,
): Promise<BegunAuthorization | { kind: 'ended'; reason: EndedSession }> {
  const opened = await openSession(deps, secret)
  if (opened.kind === 'ended') return opened
  const { session, state } = opened
  const name = cookieName(session.id)
  const seconds = Math.ceil((session.expiresAt.getTime() - deps.clock()) / 1_000)
  const presented = cookieOf(name)
  if (state.browser !== null) {
    const isSame = presented !== undefined && secretsEqual(sha256Hex(presented), state.browser)
    if (!isSame) return { kind: 'ended', reason: 'other_browser' }
    return { kind: 'begun', url: state.authorizationUrl, cookie: { name, value: presented, seconds } }
  }
  const value = randomBytes(32).toString('base64url')
  const bound = JSON.stringify({ ...state, browser: sha256Hex(value) })
  const context = sessionContext(session.organizationId, session.id)
  const sealed = seal(deps.configuration.VAULT_KEYS, bound, context)
  const isBound = await replaceState(deps.database, session, sealed, deps.clock())
  if (!isBound) return { kind: 'ended', reason: 'other_browser' }
  return { kind: 'begun', url: state.authorizationUrl, cookie: { name, value, seconds } }
}

/** The query of the redirect from an authorization server (RFC 6749, section 4.1.2; RFC 9207). */
interface AuthorizationResponse {
  state: string | undefined
  code: string | undefined
  error: string | undefined
  iss: string | undefined
}

/**
 * Finishes a session with the answer of the authorization server. Its state is consumed before the code is sent, so that a
 * second return finds nothing.
 * @throws errors of the database.
 */
export async function finishAuthorization(
  deps: AuthorizeDeps,
  response: AuthorizationResponse,
  cookieOf: (name: string) => string | undefined,
  changeOf: PersonsChange,
): Promise<Connected> {
  const opened = await returnedSession(deps, response, cookieOf)
  if (opened.kind === 'ended') return opened
  const { session, state } = opened
  const isTaken = await replaceState(deps.database, session, null, deps.clock())
  if (!isTaken) return { kind: 'ended', reason: 'expired' }
  const failure = await connectAccount(deps, session, state, response, changeOf(session))
  await endSession(deps.database, session, failure)
  return failure === null ? { kind: 'completed', session } : { kind: 'failed', failure }
}

/** The session that a redirect belongs to, found by `state` and by the cookie of the browser that started it. */
async function returnedSession(
  deps: AuthorizeDeps,
  { state }: AuthorizationResponse,
  cookieOf: (name: string) => string | undefined,
) {
  const unknown = { kind: 'ended' as const, reason: 'unknown' as const }
  const key = /^([0-9a-f]{16})\.[0-9A-Za-z]{43}$/.exec(state ?? '')?.[1]
  if (state === undefined || key === undefined) return unknown
  const session = await selectSessionByKey(deps.database, key)
  if (session === null) return unknown
  const opened = openedSession(deps, session)
  if (opened.kind === 'ended') return opened
  if (!secretsEqual(opened.state.state, state)) return unknown
  const cookie = cookieOf(cookieName(session.id))
  const { browser } = opened.state
  const isSame = cookie !== undefined && browser !== null && secretsEqual(sha256Hex(cookie), browser)
  return isSame ? opened : { kind: 'ended' as const, reason: 'other_browser' as const }
}

/** @returns why it failed, as a code; null when the account is connected. */
async function connectAccount(
  deps: AuthorizeDeps,
  session: ConnectSession,
  state: AuthorizationState,
  { code, error, iss }: AuthorizationResponse,
  scope: ChangeScope,
): Promise<string | null> {
  if (!isExpectedIssuer(state, iss)) return 'wrong_issuer'
  if (error !== undefined) return error === 'access_denied' ? 'access_denied' : 'authorization_refused'
  if (code === undefined || code === '') return 'invalid_return'
  try {
    const exchange = { ...state, code, issuer: iss }
    const now = deps.clock()
    const send = brokerFetch(deps.configuration.EGRESS_ALLOW)
    const credential = await exchangeCode(send, exchange, now)
    await storeConnected(scope, session, credential)
    return null
  } catch (cause) {
    if (cause instanceof TokenRefused) return 'code_refused'
    if (cause instanceof BrokerError) return 'server_unavailable'
    if (cause instanceof ApiError) return 'not_stored'
    logEvent('error', 'connection.connect_failed', { error: errorText(cause) })
    return 'not_stored'
  }
}

/** RFC 9207, section 2.4, also for errors: another server's answer must not end this session's attempt as its own. */
function isExpectedIssuer({ server }: AuthorizationState, iss: string | undefined): boolean {
  if (iss === undefined) return server.authorization_response_iss_parameter_supported !== true
  return iss === server.issuer
}

/** Stores the credential. @throws ApiError as `completeConnect`. */
function storeConnected(
  scope: ChangeScope,
  session: ConnectSession,
  credential: Parameters<typeof sealStoredCredential>[2],
): Promise<void> {
  const { organizationId, vaultRing } = scope
  const { connectionId } = session
  const { sealed, vaultKeyId } = sealStoredCredential(vaultRing, { organizationId, connectionId }, credential)
  const columns = { sealedCredential: sealed, vaultKeyId, hint: null }
  return completeConnect(scope, session, { credential: columns })
}
