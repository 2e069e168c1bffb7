import type { MiddlewareHandler } from 'hono'
import { ApiError } from '../../lib/api-error.ts'
import { secretsEqual } from '../../lib/crypto.ts'
import { callerAddress } from '../caller-address.ts'
import type { AppEnv } from '../context.ts'

const BEARER = /^Bearer +(\S+) *$/i

/**
 * Lets the deployment's administrator in: `Authorization: Bearer <ADMIN_TOKEN>`, compared in constant time. A
 * deployment without an ADMIN_TOKEN has no management API: everything under it is 404, whatever is presented.
 * @throws ApiError `not_found`, or `unauthorized` for a token that is missing, malformed or wrong.
 */
export function administer(): MiddlewareHandler<AppEnv> {
  return async function administer(context, next) {
    const token = context.get('deps').configuration.ADMIN_TOKEN
    if (token === undefined) throw new ApiError('not_found', 'Not found.', { code: 'not_found' })
    const presented = BEARER.exec(context.req.header('authorization') ?? '')?.[1]
    if (presented === undefined || !secretsEqual(presented, token)) {
      const { deps, startedAt, surface } = context.var
      // Nobody is known, so it is counted as every other call without a key: guessing shows.
      const ip = callerAddress(context) ?? 'unknown'
      deps.waitUntil(deps.countRejectedCall({ ip, at: startedAt, surface }))
      context.header('www-authenticate', 'Bearer')
      throw new ApiError('unauthorized', 'The administration token is missing, malformed or wrong.')
    }
    context.set('administrator', { kind: 'admin_token', organizationId: null, actor: 'admin_token' })
    await next()
  }
}
