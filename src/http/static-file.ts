import { notFound } from '../lib/api-error.ts'
import { redactEncoded } from '../lib/log.ts'
import type { AppContext } from './context.ts'

/**
 * Answers with the static file at the path of the request, or 304 for the version that the caller has (RFC 9110, 13.1.2).
 * @throws ApiError `not_found` where there is none, or the installation serves no files.
 */
export async function staticFile(context: AppContext): Promise<Response> {
  const { path } = context.req
  const answer = await context.env.ASSETS?.fetch(context.req.raw)
  if (!answer || (answer.status !== 200 && answer.status !== 304)) {
    throw notFound('File', redactEncoded(path.slice(0, 100)))
  }
  const headers: Record<string, string> = {}
  for (const name of ['content-type', 'etag', 'cache-control']) {
    const value = answer.headers.get(name)
    if (value !== null) headers[name] = value
  }
  return context.newResponse(answer.body as never, answer.status as 200, headers)
}
