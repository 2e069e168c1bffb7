import type { MiddlewareHandler } from 'hono'
import type { Deps } from '../../deps.ts'
import type { Bindings } from '../../env.ts'
import { newId } from '../../lib/ids.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { hostKind, requestIdHeaders, surfaceOf } from '../surfaces.ts'

/** Makes the clients of a request: the composition root, which HTTP code must not import. */
export type CreateDeps = (environment: Bindings, context: ExecutionContext) => Deps

/** Sets the request's id, start, clients, surface and host. */
export function requestContext(createDeps: CreateDeps): MiddlewareHandler<AppEnv> {
  return async function requestContextMiddleware(context, next) {
    beginRequest(context, createDeps)
    setRequestIdHeaders(context)
    const { deps, surface } = context.var
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

/** Sets the values that every request has. @returns true, as a step that each request passes. */
export function beginRequest(context: AppContext, createDeps: CreateDeps): true {
  const deps = createDeps(context.env, context.executionCtx as ExecutionContext)
  context.set('deps', deps)
  context.set('startedAt', deps.clock())
  context.set('requestId', newId('req'))
  context.set('surface', surfaceOf(context.req.path))
  context.set('errorCode', null)
  context.set('host', hostKind(context.req.header('host'), deps.configuration.LLM_HOST))
  return true
}

/** Sets the headers on answers that are created through Hono's context. */
export function setRequestIdHeaders(context: AppContext): void {
  const { requestId, surface } = context.var
  for (const name of requestIdHeaders(surface)) context.header(name, requestId)
}
