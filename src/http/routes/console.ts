import { Hono } from 'hono'
import { notFound } from '../../lib/api-error.ts'
import { redactEncoded } from '../../lib/log.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { staticFile } from '../static-file.ts'

/**
 * The policy of the console: nothing but files of this gateway, no style or script in the page, and no text that becomes markup.
 * Scripts set styles as properties, which the policy does not concern.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const PAGE_HEADERS = {
  'cache-control': 'no-cache',
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

/** The name of a file has a digest of its content. */
const ASSET_HEADERS = {
  'cache-control': 'public, max-age=31536000, immutable',
  'x-content-type-options': 'nosniff',
}

/** The console: one page for every path below `/console`, and its files. The host of models has none of it. */
export const consoleRoutes = new Hono<AppEnv>()
  .get('/console/assets/:file', (context) => consoleFile(context, context.req.path, ASSET_HEADERS))
  .get('/console', (context) => consoleFile(context, '/console/index.html', PAGE_HEADERS))
  .get('/console/*', (context) => consoleFile(context, '/console/index.html', PAGE_HEADERS))

async function consoleFile(
  context: AppContext,
  path: string,
  headers: Record<string, string>,
): Promise<Response> {
  if (context.var.host === 'llm') {
    throw notFound('Page', redactEncoded(context.req.path.slice(0, 100)))
  }
  const answer = await staticFile(context, path)
  for (const [name, value] of Object.entries(headers)) answer.headers.set(name, value)
  return answer
}
