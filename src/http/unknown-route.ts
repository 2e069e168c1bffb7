import type { Hono, Next } from 'hono'
import { ApiError } from '../lib/api-error.ts'
import { redactEncoded } from '../lib/log.ts'
import type { AppContext, AppEnv } from './context.ts'
import { KEY_HEADERS } from './surfaces.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
/** Segments of a path in which a known path is searched for. */
const MOST_SEGMENTS = 12

/**
 * The error for a path or method that nothing serves. It names the methods of a known path, and the path that a wrong
 * base URL has probably missed. Redacted, because a key can be pasted into an address.
 */
export function unknownRoute(app: Hono<AppEnv>, context: AppContext): ApiError {
  const { path } = context.req
  const methods = methodsOf(app, path)
  if (methods.length === 0) return notServed(context, `.${baseUrlHint(app, path)}`)
  const taken = methods.join(', ')
  context.header('allow', taken)
  // RFC 9110, 15.5.6. The interface has no 405 for the public API: there it is a 404 with the same header.
  if (context.get('surface') === 'management') {
    return new ApiError('method_not_allowed', `This path takes ${taken}.`, { code: 'method_not_allowed' })
  }
  return notServed(context, `: this path takes ${taken}.`)
}

/** Refuses surfaces that the host of the request does not serve. @throws ApiError not_found */
export async function requireServedHost(context: AppContext, next: Next): Promise<void> {
  if (!isServedHost(context)) {
    throw notServed(context, ' on this host, which serves chat completions, completions and models.')
  }
  await next()
}

/** Whether the host of a request serves its surface. */
export const isServedHost = (context: AppContext): boolean =>
  context.get('host') !== 'llm' || KEY_HEADERS.llm[context.get('surface')] !== undefined

function notServed({ req }: AppContext, reason: string): ApiError {
  const route = redactEncoded(`${req.method} ${req.path}`.slice(0, 200))
  return new ApiError('not_found', `Route ${route} not found${reason}`, { code: 'not_found' })
}

/**
 * The methods that a path takes. Where a route has exactly this path, routes with parameters do not count: `runs` is no agent, so that
 * `/v1/agents/runs` does not take the methods of `/v1/agents/{agentId}`.
 */
function methodsOf(app: Hono<AppEnv>, path: string): string[] {
  const routesOf = (method: string) =>
    // Middleware is registered for all methods.
    app.router.match(method, path)[0].filter(([[, route]]) => route.method !== 'ALL')
  const served = METHODS.map((method) => [method, routesOf(method).map(([[, route]]) => route.path)] as const)
  const isExact = served.some(([, paths]) => paths.includes(path))
  const methods = served
    .filter(([, paths]) => (isExact ? paths.includes(path) : paths.length > 0))
    .map(([method]) => method)
  return methods.includes('GET') ? ['GET', 'HEAD', ...methods.slice(1)] : methods
}

/** Names the path that was probably meant: base URLs lack `/v1`, repeat it, or end with a whole path. */
function baseUrlHint(app: Hono<AppEnv>, path: string): string {
  const segments = path.split('/').filter((segment) => segment !== '')
  if (segments.length > MOST_SEGMENTS) return ''
  for (let start = 0; start < segments.length; start++) {
    const meant = `/v1/${segments.slice(start).join('/')}`
    if (meant === path || methodsOf(app, meant).length === 0) continue
    const versions = segments.filter((segment) => segment.toLowerCase() === 'v1').length
    const fault =
      versions === 0 ? 'lacks /v1' : versions > 1 ? 'has /v1 once too often' : 'is probably not right'
    return ` The path is ${redactEncoded(meant.slice(0, 200))}: the base URL of the client ${fault}.`
  }
  return ''
}
