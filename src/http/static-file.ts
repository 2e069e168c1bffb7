import { notFound } from '../lib/api-error.ts'
import { redactEncoded } from '../lib/log.ts'
import type { AppContext } from './context.ts'

/**
 * Answers with a static file, or 304 for the version that the caller has (RFC 9110, 13.1.2).
 * @param path of the file; that of the request where left out.
 * @throws ApiError `not_found` where there is none, or the installation serves no files.
 */
export async function staticFile(context: AppContext, path = context.req.path): Promise<Response> {
  const { raw } = context.req
  const url = new URL(path, raw.url)
  const answer = await context.env.ASSETS?.fetch(
    new Request(url, { method: raw.method, headers: raw.headers }),
  )
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
