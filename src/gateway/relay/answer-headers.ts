import type { ProviderCredential } from '../providers/credential.ts'
import { withoutCredential } from './credential-spellings.ts'

/** Headers of an upstream that are forwarded. Cookies, hop-by-hop and infrastructure headers are not. */
const FORWARDED = new Set([
  'content-type',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'openai-processing-ms',
  'openai-version',
])
const FORWARDED_PREFIXES = ['x-ratelimit-', 'anthropic-ratelimit-']

/** The upstream's request id, for its support; forwarded under another name, because `x-request-id` is the gateway's. */
const REQUEST_ID_SOURCES = ['request-id', 'x-request-id']

/**
 * Bytes of all forwarded headers. Clients fail when the head of an answer exceeds their limit: 16 KB for Node
 * (https://nodejs.org/api/cli.html#--max-http-header-sizesize).
 */
const MOST_BYTES = 8 * 1024

/**
 * The headers to forward, up to `MOST_BYTES`: of the others, those of rate limits are dropped first, the longest of them.
 * @param credential cut out of every value, in case an upstream repeats it.
 * @returns values by name in lower case: a record costs a fraction of `Headers`.
 */
export function answerHeaders(
  upstream: Headers,
  credential: Pick<ProviderCredential, 'secrets'>,
): Record<string, string> {
  const ordered: Array<[string, string]> = []
  const limits: Array<[string, string]> = []
  const ids: Array<string | undefined> = []
  for (const header of upstream) {
    const [name, value] = header
    if (FORWARDED.has(name)) ordered.push(header)
    else if (FORWARDED_PREFIXES.some((prefix) => name.startsWith(prefix))) limits.push(header)
    else if (REQUEST_ID_SOURCES.includes(name)) ids[REQUEST_ID_SOURCES.indexOf(name)] = value
  }
  const id = ids.find((value) => value)
  if (id) ordered.push(['x-upstream-request-id', id])
  if (limits.length > 0) ordered.push(...limits.sort((left, right) => lengthOf(left) - lengthOf(right)))
  const headers: Record<string, string> = {}
  let room = MOST_BYTES
  for (const header of ordered) {
    const length = lengthOf(header)
    if (length > room) continue
    headers[header[0]] = withoutCredential(header[1], credential)
    room -= length
  }
  return headers
}

/** With a colon, a space and a line end. A character of a value may become several bytes when it is sent. */
const lengthOf = ([name, value]: [string, string]) => name.length + Buffer.byteLength(value) + 4

/** Headers of a stream. `no-transform` prevents compressing proxies from holding frames back. */
export const streamHeaders = (
  upstream: Headers,
  credential: Pick<ProviderCredential, 'secrets'>,
): Record<string, string> => ({
  ...answerHeaders(upstream, credential),
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
})
