import { describe, expect, it } from 'vitest'
import { costOf } from '../../../src/calls/usage.ts'
import { answerCharge, type ChargeBasis } from '../../../src/gateway/calls/charges.ts'
import { usageOfChat, usageOfMessages } from '../../../src/gateway/protocols/reported-usage.ts'
import type { Usage } from '../../../src/ledger/audit-record.ts'
import { SeededRandom } from '../lib/seeded-random.ts'

/** The charge for any usage that an upstream may report: numbers of every kind, and values that are no numbers. */

const ROUNDS = 5_000
const PRICES = {
  input: 3_000_000,
  output: 15_000_000,
  cacheRead: 300_000,
  cacheWrite5Minutes: 3_750_000,
  cacheWrite1Hour: 6_000_000,
}
const BASIS: ChargeBasis = {
  prices: PRICES,
  bounds: { inputTokens: 3_000, outputTokens: 500, reserve: 1e6, mostInput: 13_000 },
  requestBytes: 3_000,
  charged: true,
}
/** Numbers that JSON may hold; 1e400 is infinite. */
const VALUES = [
  ...[0, 0, 1, 7, 20, 400, 3_000, 20_000, 1e9, 1e15, 1e308, Number.POSITIVE_INFINITY],
  ...[-1, -20, -1e9, Number.NEGATIVE_INFINITY, 0.2, 20.5, -0.5, -0, 2 ** 53],
  ...['20', '', null, true, [], {}],
]

type Random = SeededRandom
const any = (random: Random) => random.pick<unknown>(VALUES)

const chatUsage = (random: Random) => ({
  prompt_tokens: any(random),
  completion_tokens: any(random),
  total_tokens: any(random),
  prompt_tokens_details: {
    cached_tokens: any(random),
    cache_write_tokens: any(random),
    audio_tokens: any(random),
  },
  completion_tokens_details: {
    reasoning_tokens: any(random),
    audio_tokens: any(random),
    image_tokens: any(random),
  },
  num_sources_used: any(random),
})

const messagesUsage = (random: Random) => ({
  input_tokens: any(random),
  output_tokens: any(random),
  cache_read_input_tokens: any(random),
  cache_creation_input_tokens: any(random),
  cache_creation: { ephemeral_5m_input_tokens: any(random), ephemeral_1h_input_tokens: any(random) },
  output_tokens_details: { thinking_tokens: any(random) },
  server_tool_use: { web_search_requests: any(random) },
  iterations: [{ type: 'compaction', input_tokens: any(random), output_tokens: any(random) }],
})

const unit = (usage: Usage, name: string) => usage.units?.[name] ?? 0
const inputOf = (usage: Usage) =>
  usage.input +
  usage.cacheRead +
  usage.cacheWrite5Minutes +
  usage.cacheWrite1Hour +
  unit(usage, 'audio_input')
const outputOf = (usage: Usage) => usage.output + unit(usage, 'audio_output') + unit(usage, 'image_output')

function expectPossible(reported: Usage | null, textBytes: number, note: string): void {
  const { usage, cost, provenance, flags } = answerCharge(BASIS, reported, textBytes)
  if (!usage) throw new Error(`no usage: ${note}`)
  const { units = {}, ...classes } = usage
  for (const count of [...Object.values(classes), ...Object.values(units)]) {
    expect(Number.isSafeInteger(count) && count >= 0, note).toBe(true)
  }
  expect(usage.reasoning, note).toBeLessThanOrEqual(usage.output)
  expect(inputOf(usage), note).toBeGreaterThan(0)
  expect(inputOf(usage), note).toBeLessThanOrEqual(BASIS.bounds.mostInput)
  expect(outputOf(usage), note).toBeLessThanOrEqual(Math.max(BASIS.bounds.outputTokens, textBytes))
  expect(outputOf(usage) * 1_000, note).toBeGreaterThanOrEqual(textBytes)
  expect(cost, note).toBe(costOf(usage, PRICES))
  expect(cost, note).toBeGreaterThan(0)
  if (flags === undefined && reported !== null) {
    expect([inputOf(usage), outputOf(usage)], note).toEqual([inputOf(reported), outputOf(reported)])
    expect(provenance, note).toBe('reported')
  } else expect(provenance, note).toBe('estimated')
}

describe('what is charged for a usage, whatever an upstream reports', () => {
  it.each([
    ['chat completions', (random: Random) => [chatUsage(random), usageOfChat] as const],
    [
      'messages',
      (random: Random) => [messagesUsage(random), (value: unknown) => usageOfMessages(value, null)] as const,
    ],
  ])('can be true: %s', (_name, make) => {
    const random = new SeededRandom(1)
    for (let round = 0; round < ROUNDS; round++) {
      const [value, usageOf] = make(random)
      const textBytes = random.pick([0, 20, 999, 1_001, 6_000, 400_000])
      expectPossible(usageOf(value), textBytes, `${JSON.stringify(value)} for ${textBytes} bytes`)
    }
  })

  it.each([
    [
      'all of it from the cache, twice',
      { prompt_tokens: 20, prompt_tokens_details: { cached_tokens: 20, cache_write_tokens: -20 } },
    ],
    [
      'sound below zero',
      { prompt_tokens: 20, completion_tokens: 9, completion_tokens_details: { audio_tokens: -1e9 } },
    ],
    [
      'sound above the whole',
      { prompt_tokens: 20, completion_tokens: 9, completion_tokens_details: { audio_tokens: 1e9 } },
    ],
    [
      'sound of the prompt above the whole',
      { prompt_tokens: 20, prompt_tokens_details: { audio_tokens: 1e9 } },
    ],
  ])('is never less than the sums that are reported: %s', (_name, value) => {
    const usage = usageOfChat({ completion_tokens: 9, ...value })
    const charged = answerCharge(BASIS, usage, 20)
    expect(charged.flags).toEqual(['implausible_usage'])
    expect([inputOf(charged.usage as Usage), outputOf(charged.usage as Usage)]).toEqual([20, 9])
  })
})
