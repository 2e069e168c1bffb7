import { withoutCredential } from '../../lib/secret-spellings.ts'
import type { ProviderCredential } from '../providers/credential.ts'
import { BETA_HEADERS } from '../providers/forwarded-headers.ts'

/**
 * Headers of an upstream that are forwarded. Cookies, hop-by-hop and infrastructure headers are not, nor are the
 * provider's rate limits, which all callers of the gateway share.
 */
const FORWARDED = [
  'content-type',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'openai-processing-ms',
  'openai-version',
]

/** The upstream's request id, for its support; forwarded under another name, because `x-request-id` is the gateway's. */
const REQUEST_ID_SOURCES = ['request-id', 'x-request-id']

/**
 * Bytes of all forwarded headers. Clients fail when the head of an answer exceeds their limit: 16 KB for Node
 * (https://nodejs.org/api/cli.html#--max-http-header-sizesize).
 */
const MOST_BYTES = 8 * 1024

/**
 * The headers to forward; one that exceeds what is left of `MOST_BYTES` is dropped.
 * @param credential cut out of every value, in case an upstream repeats it.
 * @returns values by name in lower case: a record costs a fraction of `Headers`.
 */
export function answerHeaders(
  upstream: Headers,
  credential: Pick<ProviderCredential, 'secrets'>,
): Record<string, string> {
  const headers: Record<string, string> = {}
  let room = MOST_BYTES
  const forward = (name: string, value: string) => {
    // The length includes a colon, a space and a line end. A character of a value may become several bytes when it is sent.
    const length = name.length + Buffer.byteLength(value) + 4
    if (length > room) return
    headers[name] = withoutCredential(value, credential)
    room -= length
  }
  for (const name of FORWARDED) {
    const value = upstream.get(name)
    if (value !== null) forward(name, value)
  }
  for (const name of REQUEST_ID_SOURCES) {
    const id = upstream.get(name)
    if (!id) continue
    forward('x-upstream-request-id', id)
    break
  }
  return headers
}

/** Lists members of the request that its translation dropped. */
const DROPPED = 'x-headgate-dropped'
/** The longest list, in characters: names come from the caller. */
const LONGEST_LIST = 1_000

/** Names as protocols have them, with the places of those in lists. Another name may be a text of the caller. */
const PROTOCOL_NAME = /^(?=.{1,60}$)[A-Za-z_]+(?:\.(?:[A-Za-z_]+|\d{1,4}))*$/

/** @returns the header for dropped members and betas; none without one. Only names of protocols are listed. */
export function droppedHeaders(dropped: readonly string[]): Record<string, string> {
  const names = dropped.filter((name) => PROTOCOL_NAME.test(name) || BETA_HEADERS.includes(name))
  return names.length === 0 ? {} : { [DROPPED]: names.join(', ').slice(0, LONGEST_LIST) }
}

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
