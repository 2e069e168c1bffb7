import type { MiddlewareHandler } from 'hono'
import { ApiError } from '../../lib/api-error.ts'
import { counted } from '../../lib/counted.ts'
import { secretsEqual } from '../../lib/crypto.ts'
import { countShared, type SharedLimit } from '../../lib/shared-limits.ts'
import { callerAddress } from '../caller-address.ts'
import type { AppContext, AppEnv } from '../context.ts'

/** Wrong tokens a minute of one address, and of all callers whose address is unknown, as in local development. */
const WRONG_TOKENS: SharedLimit = { name: 'wrong-tokens', perMinute: 30 }
const WRONG_TOKENS_FROM_ANYWHERE: SharedLimit = { name: 'wrong-tokens', perMinute: 600 }

const BEARER = /^Bearer +(\S+) *$/i

/**
 * Authenticates the deployment's administrator: `Authorization: Bearer <ADMIN_TOKEN>`, compared in constant time. A
 * deployment without an ADMIN_TOKEN has no management API: everything under it is 404.
 * @throws ApiError `not_found`, or `unauthorized` for a token that is missing, malformed or wrong; `rate_limited` for too
 * many of these from one address, and for too many requests of an administrator from there.
 */
export function administer(): MiddlewareHandler<AppEnv> {
  return async function administer(context, next) {
    const token = context.get('deps').configuration.ADMIN_TOKEN
    if (token === undefined) throw new ApiError('not_found', 'Not found.', { code: 'not_found' })
    const presented = BEARER.exec(context.req.header('authorization') ?? '')?.[1]
    if (presented === undefined || !secretsEqual(presented, token)) {
      const { deps, startedAt, surface } = context.var
      // Counted as every other call without a key, so that guessing shows in the audit.
      const address = callerAddress(context)
      const ip = address ?? 'unknown'
      deps.waitUntil(deps.countRejectedCall({ ip, at: startedAt, surface }))
      await countOrRefuse(context, address === null ? WRONG_TOKENS_FROM_ANYWHERE : WRONG_TOKENS, ip)
      context.header('www-authenticate', 'Bearer')
      throw new ApiError('unauthorized', 'The administration token is missing, malformed or wrong.')
    }
    const actor = 'admin_token'
    const perMinute = context.get('deps').configuration.MANAGEMENT_RATE_LIMIT
    const address = callerAddress(context) ?? 'unknown'
    await countOrRefuse(context, { name: 'management', perMinute }, `${actor}:${address}`)
    context.set('administrator', { kind: 'admin_token', organizationId: null, actor })
    await next()
  }
}

/** @throws ApiError `rate_limited` where the limit leaves no room. */
async function countOrRefuse(context: AppContext, limit: SharedLimit, identifier: string): Promise<void> {
  const { allowed, retryAfterSeconds } = await countShared(context.get('deps'), limit, identifier)
  if (allowed) return
  const message = `Too many requests to the management API from this address. Try again in ${counted(retryAfterSeconds, 'second')}.`
  throw new ApiError('rate_limited', message, { retryAfterSeconds })
}
