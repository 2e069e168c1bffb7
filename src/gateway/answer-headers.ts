import { withoutCredential } from './credential-spellings.ts'

/** Which headers of an upstream reach the caller. Cookies, hop-by-hop and infrastructure headers do not. */
const FORWARDED = new Set([
  'content-type',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'openai-processing-ms',
  'openai-version',
])
const FORWARDED_PREFIXES = ['x-ratelimit-', 'anthropic-ratelimit-']

/** The upstream's id of the request, for its support: under another name, because `x-request-id` is ours. */
const REQUEST_ID_SOURCES = ['request-id', 'x-request-id']

/** @param credential cut out of every value, should an upstream repeat it. */
export function answerHeaders(upstream: Headers, credential: string): Headers {
  const headers = new Headers()
  for (const [name, value] of upstream) {
    if (FORWARDED.has(name) || FORWARDED_PREFIXES.some((prefix) => name.startsWith(prefix))) {
      headers.set(name, withoutCredential(value, credential))
    }
  }
  const id = REQUEST_ID_SOURCES.map((name) => upstream.get(name)).find((value) => value)
  if (id) headers.set('x-upstream-request-id', withoutCredential(id, credential))
  return headers
}

/** Headers of a stream. `no-transform` keeps compressors on the way from holding frames back. */
export function streamHeaders(upstream: Headers, credential: string): Headers {
  const headers = answerHeaders(upstream, credential)
  headers.set('content-type', 'text/event-stream; charset=utf-8')
  headers.set('cache-control', 'no-cache, no-transform')
  headers.set('x-accel-buffering', 'no')
  return headers
}
