import type { MiddlewareHandler } from 'hono'
import { mayLookUp, noteRefusal } from '../../identity/look-up-guard.ts'
import { parseToken } from '../../identity/secret-token.ts'
import { identifySession } from '../../identity/session.ts'
import { ApiError, codedRefusal } from '../../lib/api-error.ts'
import { counted } from '../../lib/counted.ts'
import { secretsEqual, sha256Hex } from '../../lib/crypto.ts'
import { countShared, type SharedLimit } from '../../lib/shared-limits.ts'
import { callerAddress, storedAddress } from '../caller-address.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { clearSessionCookie, requireOwnPage, sessionCookie } from '../session-cookies.ts'

/** Wrong tokens a minute of one address, and of all callers whose address is unknown, as in local development. */
const WRONG_TOKENS: SharedLimit = { name: 'wrong-tokens', perMinute: 30 }
const WRONG_TOKENS_FROM_ANYWHERE: SharedLimit = { name: 'wrong-tokens', perMinute: 600 }

const BEARER = /^Bearer +(\S+) *$/i

/** Requests a minute of one session. */
const SESSION: SharedLimit = { name: 'sessions', perMinute: 600 }

/**
 * Authenticates the caller of the management API. An Authorization header decides alone: `Bearer <ADMIN_TOKEN>`, compared in
 * constant time. Without one, the cookie of a session does. A deployment without an ADMIN_TOKEN has no management API: everything
 * under it is 404.
 * @throws ApiError `not_found`, or `unauthorized` for a credential that is missing, malformed or wrong; `forbidden` for a change
 * that a page of another site sends; `rate_limited` for too many wrong credentials from one address, and for too many requests of
 * an administrator from there, or of a session.
 */
export function administer(): MiddlewareHandler<AppEnv> {
  return async function administer(context, next) {
    const token = context.get('deps').configuration.ADMIN_TOKEN
    if (token === undefined) throw new ApiError('not_found', 'Not found.', { code: 'not_found' })
    const cookie = context.req.header('authorization') === undefined ? sessionCookie(context) : undefined
    await (cookie === undefined ? admitAdministrator(context, token) : admitSession(context, cookie))
    await next()
  }
}

async function admitAdministrator(context: AppContext, token: string): Promise<void> {
  const presented = BEARER.exec(context.req.header('authorization') ?? '')?.[1]
  if (presented === undefined || !secretsEqual(presented, token)) {
    await countWrongCredential(context)
    context.header('www-authenticate', 'Bearer')
    throw new ApiError('unauthorized', 'The administration token is missing, malformed or wrong.')
  }
  const perMinute = context.get('deps').configuration.MANAGEMENT_RATE_LIMIT
  const address = callerAddress(context) ?? 'unknown'
  await countOrRefuse(context, { name: 'management', perMinute }, `admin_token:${address}`)
  context.set('managementCaller', { kind: 'admin_token' })
}

async function admitSession(context: AppContext, cookie: string): Promise<void> {
  requireOwnPage(context)
  const { deps } = context.var
  const address = callerAddress(context)
  // Before the query, so that neither an invented cookie nor a limited session costs one. The whole cookie is counted: others may
  // know the id in it.
  const [mayBeRead] = await Promise.all([
    mayLookUp(deps, address),
    countOrRefuse(context, SESSION, sha256Hex(cookie)),
  ])
  if (!mayBeRead) throw tooManyRequests('from this address', 1)
  const session = await identifySession(deps, cookie)
  // What a session shows belongs to its user.
  context.header('cache-control', 'no-store')
  if (session === null) {
    // A text of another shape has cost no query.
    if (parseToken('hgs', cookie) !== null) await noteRefusal(deps, address)
    await countWrongCredential(context)
    clearSessionCookie(context)
    throw codedRefusal('unauthorized', 'session_ended', 'The session has ended. Sign in again.')
  }
  context.set('managementCaller', session)
}

/** Counts a wrong credential. @throws ApiError `rate_limited` for too many from this address. */
async function countWrongCredential(context: AppContext): Promise<void> {
  countRejected(context)
  const address = callerAddress(context)
  await countOrRefuse(
    context,
    address === null ? WRONG_TOKENS_FROM_ANYWHERE : WRONG_TOKENS,
    address ?? 'unknown',
  )
}

/** Counted as every other call without a key, so that guessing shows in the audit. */
export function countRejected(context: AppContext): void {
  const { deps, startedAt, surface } = context.var
  deps.waitUntil(deps.countRejectedCall({ ip: storedAddress(context) ?? 'unknown', at: startedAt, surface }))
}

/** @throws ApiError `rate_limited` where the limit leaves no room. */
export async function countOrRefuse(
  context: AppContext,
  limit: SharedLimit,
  identifier: string,
): Promise<void> {
  const { allowed, retryAfterSeconds } = await countShared(context.get('deps'), limit, identifier)
  if (allowed) return
  throw tooManyRequests(limit === SESSION ? 'with this session' : 'from this address', retryAfterSeconds)
}

function tooManyRequests(origin: string, retryAfterSeconds: number): ApiError {
  const message = `Too many requests to the management API ${origin}. Try again in ${counted(retryAfterSeconds, 'second')}.`
  return new ApiError('rate_limited', message, { retryAfterSeconds })
}
