import type { ModelPrices } from '../../schema/models.ts'
import type { Usage } from '../ledger/audit-record.ts'

/** Money is integers: micro-credits, a millionth of a credit. Prices are micro-credits per million tokens. */
export type Prices = ModelPrices

export const NO_USAGE: Usage = {
  input: 0,
  cacheRead: 0,
  cacheWrite5Minutes: 0,
  cacheWrite1Hour: 0,
  output: 0,
  reasoning: 0,
}

/** Units that are tokens, and the class whose price they have where they have none of their own. */
const TOKEN_UNITS: Record<string, 'input' | 'output'> = {
  audio_input: 'input',
  audio_output: 'output',
  image_output: 'output',
}

/** Cost in micro-credits, rounded up once over all classes. Units without a price are free (`unpricedUnits`). */
export function costOf(usage: Usage, prices: Prices): number {
  const units = Object.entries(usage.units ?? {})
  const price = (name: string) => {
    const fallback = TOKEN_UNITS[name]
    return prices.units?.[name] ?? (fallback ? prices[fallback] : 0)
  }
  const sum = (kind: 'input' | 'output' | undefined) =>
    units.reduce((total, [name, count]) => total + (TOKEN_UNITS[name] === kind ? count * price(name) : 0), 0)
  const input =
    usage.input * prices.input +
    usage.cacheRead * prices.cacheRead +
    usage.cacheWrite5Minutes * prices.cacheWrite5Minutes +
    usage.cacheWrite1Hour * prices.cacheWrite1Hour +
    sum('input')
  const percent = contextPercent(prices, inputTokensOf(usage))
  const output = usage.output * prices.output + sum('output')
  const total = (input * percent.input + output * percent.output) / 100 + sum(undefined)
  return Math.ceil(total / 1_000_000)
}

const inputTokensOf = (usage: Usage): number =>
  usage.input +
  usage.cacheRead +
  usage.cacheWrite5Minutes +
  usage.cacheWrite1Hour +
  (usage.units?.audio_input ?? 0)

function contextPercent({ longContext }: Prices, inputTokens: number): { input: number; output: number } {
  if (!longContext || inputTokens <= longContext.above) return { input: 100, output: 100 }
  return { input: longContext.inputPercent, output: longContext.outputPercent }
}

/** Names of the units of a usage that have no price. */
export const unpricedUnits = (usage: Usage | null, prices: Prices): string[] =>
  Object.entries(usage?.units ?? {})
    .filter(([name, count]) => count > 0 && prices.units?.[name] === undefined)
    .map(([name]) => name)

/**
 * The most that a call can cost, in micro-credits: what has to be available before it is dispatched.
 * @param inputTokens an upper bound. @param outputTokens an upper bound over all choices.
 * @param units upper bounds of units that are billed apart; of tokens among them only the names count.
 */
export function reservationFor(
  inputTokens: number,
  outputTokens: number,
  prices: Prices,
  units: Record<string, number> = {},
): number {
  const { input, cacheRead, cacheWrite5Minutes, cacheWrite1Hour } = prices
  const price = (name: string) => prices.units?.[name] ?? 0
  const ofKind = (kind: 'input' | 'output') => Object.keys(units).filter((name) => TOKEN_UNITS[name] === kind)
  const dearestInput = Math.max(
    input,
    cacheRead,
    cacheWrite5Minutes,
    cacheWrite1Hour,
    ...ofKind('input').map(price),
  )
  const dearestOutput = Math.max(prices.output, ...ofKind('output').map(price))
  const fees = Object.entries(units).reduce(
    (sum, [name, most]) => sum + (TOKEN_UNITS[name] ? 0 : most * price(name)),
    0,
  )
  const percent = contextPercent(prices, inputTokens)
  const tokens =
    (inputTokens * dearestInput * Math.max(100, percent.input) +
      outputTokens * dearestOutput * Math.max(100, percent.output)) /
    100
  return Math.ceil((tokens + fees) / 1_000_000)
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
    ...((left.units || right.units) && { units: addUnits(left.units ?? {}, right.units ?? {}) }),
  }
}

function addUnits(left: Record<string, number>, right: Record<string, number>): Record<string, number> {
  const names = [...new Set([...Object.keys(left), ...Object.keys(right)])]
  return Object.fromEntries(names.map((name) => [name, (left[name] ?? 0) + (right[name] ?? 0)]))
}
