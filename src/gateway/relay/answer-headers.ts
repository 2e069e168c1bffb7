import type { ProviderCredential } from '../providers/credential.ts'
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

/**
 * Bytes of all of them together. Clients give up on more than they take for a head: Node on 16 KB
 * (https://nodejs.org/api/cli.html#--max-http-header-sizesize).
 */
const MOST_BYTES = 8 * 1024

/**
 * What does not fit into `MOST_BYTES` is left out, limits before all others and of them the longest.
 * @param credential cut out of every value, should an upstream repeat it.
 * @returns values by name in lower case: a record costs a fraction of what `Headers` do.
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

/** With a colon, a space and a line end. Characters of a header may take up to three bytes on the way out. */
const lengthOf = ([name, value]: [string, string]) => name.length + Buffer.byteLength(value) + 4

/** Headers of a stream. `no-transform` keeps compressors on the way from holding frames back. */
export const streamHeaders = (
  upstream: Headers,
  credential: Pick<ProviderCredential, 'secrets'>,
): Record<string, string> => ({
  ...answerHeaders(upstream, credential),
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
})
