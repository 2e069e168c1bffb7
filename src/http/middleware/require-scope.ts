import type { MiddlewareHandler } from 'hono'
import { isRunResponseId } from '../../agents/live/run-response.ts'
import { hasScope, type KeyScope, type Principal } from '../../governance/principal.ts'
import { ApiError } from '../../lib/api-error.ts'
import type { AppContext, AppEnv } from '../context.ts'

/** Refuses a key without the scope of a surface, whatever the rights of its user. */
export function requireScope(scope: KeyScope): MiddlewareHandler<AppEnv> {
  return async function requireScopeMiddleware(context, next) {
    checkScope(context.get('rights').principal, scope)
    await next()
  }
}

/** The same for responses: those of agent runs belong to the scope of agents. */
export const requireResponseScope: MiddlewareHandler<AppEnv> = async (context: AppContext, next) => {
  const isRun = isRunResponseId(context.req.param('responseId') ?? '')
  checkScope(context.get('rights').principal, isRun ? 'agents' : 'models')
  await next()
}

/** @throws ApiError forbidden */
export function checkScope(principal: Pick<Principal, 'credential'>, scope: KeyScope): void {
  if (hasScope(principal, scope)) return
  throw new ApiError('forbidden', `This API key does not have the scope ${scope}.`, {
    code: 'model_access_denied',
  })
}
