import type { MiddlewareHandler } from 'hono'
import { hasScope, type KeyScope } from '../../governance/principal.ts'
import { ApiError } from '../../lib/api-error.ts'
import type { AppEnv } from '../context.ts'

/** Refuses a key without the scope of a surface, whatever the rights of its user. */
export function requireScope(scope: KeyScope): MiddlewareHandler<AppEnv> {
  return async function requireScopeMiddleware(context, next) {
    if (!hasScope(context.get('rights').principal, scope)) {
      throw new ApiError('forbidden', `This API key does not have the scope ${scope}.`, {
        code: 'model_access_denied',
      })
    }
    await next()
  }
}
