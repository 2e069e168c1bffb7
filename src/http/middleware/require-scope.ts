import type { MiddlewareHandler } from 'hono'
import { isRunResponseId } from '../../agents/live/run-response.ts'
import { hasScope, type Principal } from '../../identity/principal.ts'
import { ApiError } from '../../lib/api-error.ts'
import type { KeyScope } from '../../wire/key-scopes.ts'
import type { AppContext, AppEnv } from '../context.ts'

/** Refuses a key without the scope of a surface, whatever the rights of its user. For agents, see `mayUseAgents`. */
export function requireScope(scope: Exclude<KeyScope, 'agents'>): MiddlewareHandler<AppEnv> {
  return async function requireScopeMiddleware(context, next) {
    checkScope(context.get('rights').principal, scope)
    await next()
  }
}

/**
 * Refuses a key without the scope of a response: responses of agent runs belong to the scope of agents, and do not exist for
 * other keys.
 */
export const requireResponseScope: MiddlewareHandler<AppEnv> = async (context: AppContext, next) => {
  const isRun = isRunResponseId(context.req.param('responseId') ?? '')
  if (!isRun) checkScope(context.get('rights').principal, 'models')
  await next()
}

/** @throws ApiError forbidden */
function checkScope(principal: Pick<Principal, 'credential'>, scope: KeyScope): void {
  if (hasScope(principal, scope)) return
  throw new ApiError('forbidden', `This API key does not have the scope ${scope}.`, {
    code: 'model_access_denied',
  })
}
