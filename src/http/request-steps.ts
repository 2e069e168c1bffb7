import type { MiddlewareHandler } from 'hono'
import type { AppContext, AppEnv } from './context.ts'
import { isSmallBody } from './governed-body.ts'
import { audit } from './middleware/audit.ts'
import { authenticate, recallCaller } from './middleware/authenticate.ts'
import { crossOrigin } from './middleware/cross-origin.ts'
import { limitDeclaredLength } from './middleware/declared-length.ts'
import { drainBody } from './middleware/drain-body.ts'
import { beginRequest, type CreateDeps, requestContext } from './middleware/request-context.ts'
import { isServedHost, requireServedHost } from './unknown-route.ts'

/** One step of a request before its route. */
interface RequestStep {
  middleware: MiddlewareHandler<AppEnv>
  /**
   * Whether a request passes without the middleware: the middleware would not act on it, or `passes` did its work. Used by the
   * short path of known callers.
   */
  passes: (context: AppContext) => boolean
}

/** The steps of every request, in order. */
export const everyRequest = (createDeps: CreateDeps): RequestStep[] => [
  // The short path reads small bodies whole, and drains what a failure leaves.
  { middleware: drainBody, passes: () => true },
  { middleware: requestContext(createDeps), passes: (context) => beginRequest(context, createDeps) },
  { middleware: crossOrigin, passes: ({ req }) => req.raw.headers.get('origin') === null },
  { middleware: requireServedHost, passes: isServedHost },
]

/** The steps of a request that needs a key, after those of every request. */
export const KEYED_REQUEST: readonly RequestStep[] = [
  // The short path calls it for a failure; other calls are recorded with their admission.
  { middleware: audit, passes: () => true },
  { middleware: limitDeclaredLength, passes: isSmallBody },
  { middleware: authenticate, passes: recallCaller },
]

export const middlewareOf = (steps: readonly RequestStep[]): Array<MiddlewareHandler<AppEnv>> =>
  steps.map(({ middleware }) => middleware)
