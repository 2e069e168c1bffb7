import { withoutCredential } from './credential-spellings.ts'
import type { Credential } from './providers/credential.ts'

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

/**
 * Bytes of all of them together. Clients give up on more than they take for a head: Node on 16 KB
 * (https://nodejs.org/api/cli.html#--max-http-header-sizesize).
 */
const MOST_BYTES = 8 * 1024

/**
 * What does not fit into `MOST_BYTES` is left out, limits before all others and of them the longest.
 * @param credential cut out of every value, should an upstream repeat it.
 */
export function answerHeaders(upstream: Headers, credential: Pick<Credential, 'secrets'>): Headers {
  const id = REQUEST_ID_SOURCES.map((name) => upstream.get(name)).find((value) => value)
  const all = [...upstream]
  const limits = all.filter(([name]) => FORWARDED_PREFIXES.some((prefix) => name.startsWith(prefix)))
  const ordered: Array<[string, string]> = [
    ...all.filter(([name]) => FORWARDED.has(name)),
    ...(id ? [['x-upstream-request-id', id] satisfies [string, string]] : []),
    ...limits.sort((left, right) => lengthOf(left) - lengthOf(right)),
  ]
  const headers = new Headers()
  let room = MOST_BYTES
  for (const [name, value] of ordered) {
    if (lengthOf([name, value]) > room) continue
    headers.set(name, withoutCredential(value, credential))
    room -= lengthOf([name, value])
  }
  return headers
}

/** With a colon, a space and a line end. Characters of a header may take up to three bytes on the way out. */
const lengthOf = ([name, value]: [string, string]) => name.length + Buffer.byteLength(value) + 4

/** Headers of a stream. `no-transform` keeps compressors on the way from holding frames back. */
export function streamHeaders(upstream: Headers, credential: Pick<Credential, 'secrets'>): Headers {
  const headers = answerHeaders(upstream, credential)
  headers.set('content-type', 'text/event-stream; charset=utf-8')
  headers.set('cache-control', 'no-cache, no-transform')
  headers.set('x-accel-buffering', 'no')
  return headers
}
