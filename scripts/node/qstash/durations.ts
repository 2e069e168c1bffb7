const UNIT_MS: Record<string, number> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** QStash never waits longer than a day between two attempts, in milliseconds. */
const LONGEST_RETRY_DELAY_MS = 86_400_000

/**
 * Reads a duration such as `10s`, `1d10h30m` or `6m5s`; a bare number counts as seconds.
 *
 * @returns milliseconds, or nothing if the text is no duration
 */
export function parseDuration(text: string): number | undefined {
  const trimmed = text.trim()
  if (/^\d+(\.\d+)?$/.test(trimmed)) return Number(trimmed) * 1_000
  if (!/^(\d+(\.\d+)?(ns|us|µs|ms|s|m|h|d))+$/.test(trimmed)) return undefined
  let total = 0
  for (const [, amount, unit = ''] of trimmed.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)/g)) {
    total += Number(amount) * (UNIT_MS[unit] ?? 0)
  }
  return total
}

/**
 * The documented backoff, min(86400, e^(2.5 n)) seconds. https://upstash.com/docs/qstash/features/retry
 *
 * @param retry which retry it is, from 1
 * @returns milliseconds
 */
export function defaultBackoff(retry: number): number {
  return Math.min(LONGEST_RETRY_DELAY_MS, Math.exp(2.5 * retry) * 1_000)
}

/** Headers by which an endpoint sets the time of its next attempt, in the order of precedence. */
const RETRY_HEADERS = [
  'retry-after',
  'x-ratelimit-reset',
  'x-ratelimit-reset-requests',
  'x-ratelimit-reset-tokens',
]

/**
 * The delay that an answer requests: seconds, a duration or an HTTP date in one of the headers above.
 *
 * @param headers the answer's headers, with lower-case names
 * @param now milliseconds since 1970
 * @returns milliseconds, or nothing if no header requests a delay of at most one day
 */
export function requestedDelay(headers: Record<string, string[]>, now: number): number | undefined {
  for (const name of RETRY_HEADERS) {
    const text = headers[name]?.[0]
    if (text === undefined) continue
    const date = Date.parse(text)
    const delay = parseDuration(text) ?? (Number.isNaN(date) ? undefined : Math.max(0, date - now))
    if (delay !== undefined && delay <= LONGEST_RETRY_DELAY_MS) return delay
  }
  return undefined
}
