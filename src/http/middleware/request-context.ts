import type { MiddlewareHandler } from 'hono'
import type { Deps } from '../../deps.ts'
import type { Bindings } from '../../env.ts'
import { newId } from '../../lib/ids.ts'
import type { AppEnv } from '../context.ts'
import { hostKind, requestIdHeaders, surfaceOf } from '../surfaces.ts'

/**
 * Sets the request's id, start, clients, surface and host.
 * @param createDeps the composition root, which HTTP code must not import.
 */
export function requestContext(
  createDeps: (environment: Bindings, context: ExecutionContext) => Deps,
): MiddlewareHandler<AppEnv> {
  return async function requestContextMiddleware(context, next) {
    const requestId = newId('req')
    context.set('requestId', requestId)
    const surface = surfaceOf(context.req.path)
    context.set('surface', surface)
    context.set('errorCode', null)
    for (const name of requestIdHeaders(surface)) context.header(name, requestId)
    const deps = createDeps(context.env, context.executionCtx as ExecutionContext)
    context.set('deps', deps)
    context.set('startedAt', deps.clock())
    context.set('host', hostKind(context.req.header('host'), deps.configuration.LLM_HOST))
    // A caller that resets its connection cancels the request, without running its `finally`. `waitUntil` keeps it
    // going, so that bytes are released, calls are closed and changes are announced.
    const work = next()
    deps.waitUntil(work.catch(() => {}))
    await work
    if (surface === 'responses') {
      context.res.headers.set('openai-processing-ms', String(deps.clock() - context.get('startedAt')))
    }
  }
}
