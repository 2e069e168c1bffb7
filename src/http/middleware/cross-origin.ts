import type { Next } from 'hono'
import { cors } from 'hono/cors'
import type { AppContext } from '../context.ts'

/** How long a browser may reuse the answer to a preflight; Chromium caps it at two hours. */
const PREFLIGHT_SECONDS = 7_200

const allowOrigin = cors({
  origin: (origin) => origin,
  allowMethods: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'],
  // Keys travel in headers that the page sets, never in cookies. Without credentials, the wildcard exposes every header
  // (https://fetch.spec.whatwg.org/#cors-protocol-and-credentials).
  exposeHeaders: ['*'],
  maxAge: PREFLIGHT_SECONDS,
})

/**
 * Lets pages of the configured origins (CORS_ORIGINS) call the API, and answers their preflights. The management API is
 * excluded: its token does not belong in a page.
 */
export async function crossOrigin(context: AppContext, next: Next): Promise<Response | undefined> {
  const origins = context.get('deps').configuration.CORS_ORIGINS
  const origin = context.req.header('origin')
  const isExcluded = origins.length === 0 || context.get('surface') === 'management'
  if (!isExcluded && origin !== undefined && origins.includes(origin)) {
    return (await allowOrigin(context, next)) ?? undefined
  }
  await next()
  // A cache must not serve this answer to a page of an allowed origin.
  if (!isExcluded) context.res.headers.append('vary', 'Origin')
  return undefined
}
