import type { ModelPrices } from '../../schema/models.ts'

/** Money is integers: micro-credits, a millionth of a credit. Prices are micro-credits per million tokens. */
export type Prices = ModelPrices

/** Tokens by the class they are charged in; classes never overlap (cached input is not in `input`). */
export interface Usage {
  input: number
  cacheRead: number
  cacheWrite5Minutes: number
  cacheWrite1Hour: number
  output: number
  /** Part of `output`, for the record only. */
  reasoning: number
}

/** `reported` by the upstream, `estimated` from request and answer, `unknown` for a call that was never closed. */
export type UsageProvenance = 'reported' | 'estimated' | 'unknown'

export const NO_USAGE: Usage = {
  input: 0,
  cacheRead: 0,
  cacheWrite5Minutes: 0,
  cacheWrite1Hour: 0,
  output: 0,
  reasoning: 0,
}

/** Cost in micro-credits, rounded up once over all classes. */
export function costOf(usage: Usage, prices: Prices): number {
  const total =
    usage.input * prices.input +
    usage.cacheRead * prices.cacheRead +
    usage.cacheWrite5Minutes * prices.cacheWrite5Minutes +
    usage.cacheWrite1Hour * prices.cacheWrite1Hour +
    usage.output * prices.output
  return Math.ceil(total / 1_000_000)
}

/**
 * The most that a call can cost, in micro-credits: what has to be available before it is dispatched.
 * @param inputTokens an upper bound. @param outputTokens an upper bound over all choices.
 */
export function reservationFor(inputTokens: number, outputTokens: number, prices: Prices): number {
  const { input, cacheRead, cacheWrite5Minutes, cacheWrite1Hour } = prices
  const dearestInput = Math.max(input, cacheRead, cacheWrite5Minutes, cacheWrite1Hour)
  return Math.ceil((inputTokens * dearestInput + outputTokens * prices.output) / 1_000_000)
}

/** Sum of the usage of two requests to upstreams. */
export function addUsage(left: Usage | null, right: Usage): Usage {
  if (left === null) return right
  return {
    input: left.input + right.input,
    cacheRead: left.cacheRead + right.cacheRead,
    cacheWrite5Minutes: left.cacheWrite5Minutes + right.cacheWrite5Minutes,
    cacheWrite1Hour: left.cacheWrite1Hour + right.cacheWrite1Hour,
    output: left.output + right.output,
    reasoning: left.reasoning + right.reasoning,
  }
}
