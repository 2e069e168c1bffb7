import { describe, expect, it } from 'vitest'
import { NO_USAGE } from '../../../src/calls/usage.ts'
import { correctedUsage, lacksInput, lacksOutput } from '../../../src/gateway/protocols/plausible-usage.ts'
import { usageOfChat, usageOfMessages } from '../../../src/gateway/protocols/reported-usage.ts'
import type { Usage } from '../../../src/ledger/audit-record.ts'
import { SeededRandom } from '../lib/seeded-random.ts'

describe('usageOfChat', () => {
  it('takes cached and written tokens out of the prompt, which includes them there', () => {
    expect(
      usageOfChat({
        prompt_tokens: 100,
        completion_tokens: 20,
        total_tokens: 120,
        prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 15 },
        completion_tokens_details: { reasoning_tokens: 12 },
      }),
    ).toEqual({
      input: 25,
      cacheRead: 60,
      cacheWrite5Minutes: 15,
      cacheWrite1Hour: 0,
      output: 20,
      reasoning: 12,
    })
  })

  it.each<[string, unknown, Partial<Usage> | null]>([
    ['null', null, null],
    ['text', 'x', null],
    ['a list', [1], null],
    ['an empty object', {}, null],
    ['figures that are texts', { prompt_tokens: '5' }, null],
    ['only a prompt', { prompt_tokens: 5 }, { input: 5, output: 0 }],
    ['only a completion', { completion_tokens: 5 }, { input: 0, output: 5 }],
    ['null details', { prompt_tokens: 5, prompt_tokens_details: null }, { input: 5, cacheRead: 0 }],
    [
      'more cached than prompt',
      { prompt_tokens: 5, prompt_tokens_details: { cached_tokens: 9 } },
      { input: 0, cacheRead: 5 },
    ],
    ['negative figures', { prompt_tokens: -5, completion_tokens: -1 }, NO_USAGE],
    ['fractions', { prompt_tokens: 5.9, completion_tokens: 1.5 }, { input: 6, output: 2 }],
    [
      'infinity',
      JSON.parse(
        '{"prompt_tokens":1e999,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":-1e999}}',
      ),
      { input: 1e15, cacheRead: 0, output: 2 },
    ],
  ])('reads %s', (_name, value, expected) => {
    const usage = usageOfChat(value)
    if (expected === null) expect(usage).toBeNull()
    else expect(usage && correctedUsage(usage).usage).toMatchObject(expected)
  })
})

describe('usageOfMessages', () => {
  it('reads every class, and sums of cache writes without classes as the shorter one', () => {
    expect(
      usageOfMessages(
        {
          input_tokens: 5,
          cache_read_input_tokens: 6,
          cache_creation_input_tokens: 30,
          cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
          output_tokens: 7,
          output_tokens_details: { thinking_tokens: 3 },
        },
        null,
      ),
    ).toEqual({
      input: 5,
      cacheRead: 6,
      cacheWrite5Minutes: 10,
      cacheWrite1Hour: 20,
      output: 7,
      reasoning: 3,
    })
    const written = { input_tokens: 5, cache_creation_input_tokens: 30, output_tokens: 7 }
    expect(usageOfMessages(written, null)).toMatchObject({ cacheWrite5Minutes: 30, cacheWrite1Hour: 0 })
    const hour = { ...written, cache_creation: { ephemeral_1h_input_tokens: 20 } }
    expect(usageOfMessages(hour, null)).toMatchObject({ cacheWrite5Minutes: 10, cacheWrite1Hour: 20 })
  })

  it.each([null, undefined, 'x', 5, [], {}, { input_tokens: null }, { cache_read_input_tokens: 5 }])(
    'reads nothing from %j',
    (value) => {
      expect(usageOfMessages(value, null)).toBeNull()
      expect(usageOfMessages(value, { ...NO_USAGE, input: 4 })).toBeNull()
    },
  )

  it('is never negative nor fractional', () => {
    const usage = usageOfMessages(
      { input_tokens: -3, output_tokens: 1.7, cache_creation_input_tokens: 5 },
      { ...NO_USAGE, cacheWrite1Hour: 9 },
    )
    expect(usage && correctedUsage(usage).usage).toEqual({ ...NO_USAGE, output: 2, cacheWrite1Hour: 2 })
  })
})

describe('a usage is corrected', () => {
  const limits = { input: 500, sent: 100, output: 50, units: { web_search: 5_000 } }
  const used = (more: Partial<Usage>): Usage => ({ ...NO_USAGE, input: 40, output: 20, ...more })

  it.each<[string, Usage]>([
    ['of plain tokens', used({})],
    ['of every class', used({ cacheRead: 30, cacheWrite5Minutes: 20, cacheWrite1Hour: 10, reasoning: 20 })],
    ['with what the provider adds', used({ input: 500, output: 50 })],
    [
      'with units',
      used({ units: { web_search: 5_000, search_queries: 1_000, audio_input: 7, audio_output: 3 } }),
    ],
    ['of nothing', NO_USAGE],
  ])('not where it can be true: %s', (_name, usage) => {
    expect(correctedUsage(usage, limits)).toEqual({ usage, isCorrected: false })
  })

  it.each<[string, Partial<Usage>, Partial<Usage>]>([
    ['cached tokens to what was sent', { cacheRead: 1e9 }, { input: 40, cacheRead: 60 }],
    ['cache writes to what was sent', { cacheWrite1Hour: 1e9 }, { input: 40, cacheWrite1Hour: 60 }],
    ['cached tokens to the prompt', { input: 20 - 1e9, cacheRead: 1e9 }, { input: 0, cacheRead: 20 }],
    ['an input to what was sent', { input: 501 }, { input: 100 }],
    ['an output to what can have been generated', { output: 1e9 }, { output: 50 }],
    ['reasoning to the output', { reasoning: 21 }, { output: 20, reasoning: 20 }],
    [
      'counts below zero',
      { cacheRead: -10, output: -1, reasoning: -1 },
      { input: 30, cacheRead: 0, output: 0, reasoning: 0 },
    ],
    ['fractions', { input: 7.1, output: 2.5, reasoning: 0.5 }, { input: 8, output: 3, reasoning: 1 }],
    ['what is no number', { input: Number.NaN, output: Number.POSITIVE_INFINITY }, { input: 0, output: 50 }],
    [
      'uses of tools',
      { units: { web_search: 1e9, other: 1e9 } },
      { units: { web_search: 5_000, other: 1_000 } },
    ],
    [
      'audio to its whole',
      { input: -60, units: { audio_input: 100 } },
      { input: 0, units: { audio_input: 40 } },
    ],
  ])('where it cannot: %s', (_name, more, expected) => {
    const { usage, isCorrected } = correctedUsage(used(more), limits)
    expect(usage).toMatchObject(expected)
    expect(isCorrected).toBe(true)
  })

  it('to whole tokens within the limits, whatever is reported', () => {
    const random = new SeededRandom(11)
    const figure = () => (random.fraction() - 0.3) * 10 ** random.below(16)
    for (let round = 0; round < 500; round++) {
      const reported: Usage = {
        ...{ input: figure(), cacheRead: figure(), cacheWrite5Minutes: figure(), cacheWrite1Hour: figure() },
        ...{
          output: figure(),
          reasoning: figure(),
          units: { audio_input: figure(), audio_output: figure() },
        },
      }
      const { usage } = correctedUsage(reported, limits)
      const { input, cacheRead, cacheWrite5Minutes, cacheWrite1Hour, output, reasoning, units } = usage
      const counts = [input, cacheRead, cacheWrite5Minutes, cacheWrite1Hour, output, reasoning]
      for (const count of [...counts, ...Object.values(units ?? {})]) {
        expect(Number.isSafeInteger(count) && count >= 0).toBe(true)
      }
      const read = input + cacheRead + cacheWrite5Minutes + cacheWrite1Hour + (units?.audio_input ?? 0)
      expect(read).toBeLessThanOrEqual(limits.input)
      expect(output + (units?.audio_output ?? 0)).toBeLessThanOrEqual(limits.output)
      expect(reasoning).toBeLessThanOrEqual(output)
    }
  })

  it('where it counts less than the visible text', () => {
    expect(lacksOutput(used({ output: 1 }), 1_000)).toBe(false)
    expect(lacksOutput(used({ output: 1 }), 1_001)).toBe(true)
    expect(lacksOutput(NO_USAGE, 0)).toBe(false)
    expect(lacksOutput(used({ output: 0, units: { audio_output: 9 } }), 9_000)).toBe(false)
    expect(lacksInput(NO_USAGE)).toBe(true)
    expect(lacksInput({ ...NO_USAGE, cacheRead: 1 })).toBe(false)
  })
})
