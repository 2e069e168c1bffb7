import { Hono } from 'hono'
import type { AppContext, AppEnv } from '../context.ts'
import { staticFile } from '../static-file.ts'

/**
 * The policy of the pages: nothing but files of this gateway, no script in a page, no evaluated text. Redoc makes its styles by
 * `insertRule` in an empty element, whose hash is that of the empty text, and has one fixed style; it searches in a worker that it
 * makes from itself (`blob:`).
 */
const STYLE_HASHES =
  "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' 'sha256-QMIg+bpjm3JdElJ388KYke01izlUW0UoNOeKjpMxdgc='"
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  `style-src 'self' ${STYLE_HASHES}`,
  "img-src 'self' data:",
  "connect-src 'self'",
  'worker-src blob:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const FILES = ['redoc.js', 'reference.js', 'reference.css']

/** The reference of the APIs for people, made by Redoc from their documents. The pages themselves hold nothing that is secret. */
export const referencePageRoutes = new Hono<AppEnv>()
  .get('/docs/api', (context) => page(context, '/docs/api/public.html'))
  .get('/docs/api/management', (context) => page(context, '/docs/api/management.html'))

for (const file of FILES) referencePageRoutes.get(`/docs/api/${file}`, (context) => staticFile(context))

async function page(context: AppContext, path: string): Promise<Response> {
  const answer = await staticFile(context, path)
  for (const [name, value] of Object.entries(HEADERS)) answer.headers.set(name, value)
  return answer
}

const HEADERS = {
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}
