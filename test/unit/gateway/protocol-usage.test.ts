import { describe, expect, it } from 'vitest'
import { usageOfChat, usageOfMessages } from '../../../src/gateway/protocols/usage.ts'
import { NO_USAGE, type Usage } from '../../../src/governance/usage.ts'

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
      { input: 0, cacheRead: 9 },
    ],
    ['negative figures', { prompt_tokens: -5, completion_tokens: -1 }, null],
    ['fractions', { prompt_tokens: 5.9, completion_tokens: 1.5 }, { input: 5, output: 1 }],
    ['infinity', JSON.parse('{"prompt_tokens":1e999,"completion_tokens":2}'), null],
  ])('reads %s', (_name, value, expected) => {
    const usage = usageOfChat(value)
    if (expected === null) expect(usage).toBeNull()
    else expect(usage).toMatchObject(expected)
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
    expect(usage).toEqual({ ...NO_USAGE, output: 1, cacheWrite1Hour: 9 })
  })
})
