import { Hono } from 'hono'
import { RegExpRouter } from 'hono/router/reg-exp-router'
import type { AppContext, AppEnv } from './context.ts'
import { renderError } from './errors.ts'
import { audit } from './middleware/audit.ts'
import { drainBody } from './middleware/drain-body.ts'
import { type CreateDeps, setRequestIdHeaders } from './middleware/request-context.ts'
import { everyRequest, KEYED_REQUEST } from './request-steps.ts'
import { MODEL_CALLS } from './routes/model-calls.ts'

/**
 * The short path of model calls: for a request that passes each step without its middleware, such as one with a small body whose
 * key this isolate knows to be valid. Routing and the chain of middleware take about a tenth of a whole call. The handlers are
 * the same as in `app`, which serves every other request.
 */
export function withKnownCallers(app: Hono<AppEnv>, createDeps: CreateDeps): Hono<AppEnv> {
  const steps = [...everyRequest(createDeps), ...KEYED_REQUEST]
  const throughApp = (context: AppContext) =>
    app.fetch(context.req.raw, context.env, context.executionCtx as ExecutionContext)
  // Each path has a single handler: with more, Hono makes a chain of promises.
  const calls = new Hono<AppEnv>({ router: new RegExpRouter() })
  for (const [path, handle] of MODEL_CALLS) {
    calls.post(path, (context) => {
      if (!steps.every(({ passes }) => passes(context))) return throughApp(context)
      const work = answer(context, handle)
      // Same as in `request-context`, which this path skips.
      context.get('deps').waitUntil(work)
      return work
    })
  }
  calls.notFound(throughApp)
  return calls
}

/** The answer of a call, or its error as after the chain of middleware. Never rejects. */
async function answer(
  context: AppContext,
  handle: (context: AppContext) => Promise<Response>,
): Promise<Response> {
  const response = await handle(context).catch((error: unknown) => failed(context, error))
  // Same as in `cross-origin`, which this path skips.
  if (context.get('deps').configuration.CORS_ORIGINS.length > 0) response.headers.append('vary', 'Origin')
  return response
}

async function failed(context: AppContext, error: unknown): Promise<Response> {
  setRequestIdHeaders(context)
  context.error = error instanceof Error ? error : new Error('a call failed', { cause: error })
  context.res = renderError(error, context)
  await audit(context, ended)
  await drainBody(context, ended)
  return context.res
}

const ended = async (): Promise<void> => {}
