import { describe, expect, it } from 'vitest'
import {
  usageOfChat,
  usageOfChatBody,
  usageOfMessages,
} from '../../../../../src/gateway/protocols/reported-usage.ts'

const counted = (more: Record<string, number>) => ({
  input: 0,
  cacheRead: 0,
  cacheWrite5Minutes: 0,
  cacheWrite1Hour: 0,
  output: 0,
  reasoning: 0,
  ...more,
})

const chatRows: Array<[name: string, usage: unknown, expected: unknown]> = [
  [
    'the cache as part of the prompt',
    {
      prompt_tokens: 100,
      completion_tokens: 7,
      prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 },
    },
    counted({ input: 30, cacheRead: 60, cacheWrite5Minutes: 10, output: 7 }),
  ],
  [
    'reasoning as part of what was generated',
    {
      prompt_tokens: 10,
      completion_tokens: 50,
      total_tokens: 60,
      completion_tokens_details: { reasoning_tokens: 40 },
    },
    counted({ input: 10, output: 50, reasoning: 40 }),
  ],
  [
    'reasoning that xAI counts beside it',
    {
      prompt_tokens: 10_120,
      completion_tokens: 1_499,
      total_tokens: 14_428,
      prompt_tokens_details: { cached_tokens: 128 },
      completion_tokens_details: { reasoning_tokens: 2_809 },
    },
    counted({ input: 9_992, cacheRead: 128, output: 4_308, reasoning: 2_809 }),
  ],
  [
    'thoughts that Gemini counts in the total alone',
    { prompt_tokens: 10, completion_tokens: 5, total_tokens: 99 },
    counted({ input: 10, output: 89 }),
  ],
  [
    'a total that is too small, as it stands',
    {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 5,
      completion_tokens_details: { reasoning_tokens: 3 },
    },
    counted({ input: 10, output: 5, reasoning: 3 }),
  ],
  [
    'a total without a prompt, as it stands',
    { completion_tokens: 5, total_tokens: 99 },
    counted({ output: 5 }),
  ],
  [
    'the cache by DeepSeek’s name',
    {
      prompt_tokens: 100,
      completion_tokens: 1,
      prompt_cache_hit_tokens: 64,
      prompt_cache_miss_tokens: 36,
    },
    counted({ input: 36, cacheRead: 64, output: 1 }),
  ],
  [
    'the cache by Moonshot’s name',
    { prompt_tokens: 100, completion_tokens: 1, cached_tokens: 64 },
    counted({ input: 36, cacheRead: 64, output: 1 }),
  ],
  [
    'more from the cache than the prompt has, as it stands',
    { prompt_tokens: 10, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 64 } },
    counted({ input: -54, cacheRead: 64, output: 1 }),
  ],
  [
    'details that are none as nothing',
    {
      prompt_tokens: 0,
      completion_tokens: 0,
      prompt_tokens_details: null,
      completion_tokens_details: 'x',
    },
    counted({}),
  ],
  ['nothing in null', null, null],
  ['nothing in an object without counts', { total_tokens: 3 }, null],
]

describe('usage of chat completions', () => {
  it.each(chatRows)('counts %s', (_name, usage, expected) => {
    expect(usageOfChat(usage)).toEqual(expected)
    expect(usageOfChatBody({ usage })).toEqual(expected)
  })

  const usage = { prompt_tokens: 3, completion_tokens: 2 }
  it.each([
    ['beside the choices', { usage, choices: [] }],
    ['with the last choice', { usage: null, choices: [{}, { usage }] }],
    ['under x_groq', { x_groq: { usage }, choices: [] }],
  ])('is found %s', (_name, body) => {
    expect(usageOfChatBody(body)).toEqual(counted({ input: 3, output: 2 }))
  })

  it.each([[null], ['x'], [{}], [{ choices: 'x', x_groq: 7 }], [{ choices: [null] }]])(
    'is not in %j',
    (body) => {
      expect(usageOfChatBody(body)).toBeNull()
    },
  )
})

describe('usage of messages', () => {
  const known = counted({
    input: 12,
    cacheRead: 5,
    cacheWrite5Minutes: 10,
    cacheWrite1Hour: 20,
    output: 1,
    reasoning: 2,
  })

  it.each([
    ['replaces what came before', { output_tokens: 9, input_tokens: 13 }, { ...known, input: 13, output: 9 }],
    [
      'leaves what is null or absent',
      { output_tokens: 9, input_tokens: null, cache_read_input_tokens: null, output_tokens_details: null },
      { ...known, output: 9 },
    ],
    [
      'keeps the hour class when writes come in one figure',
      { output_tokens: 9, cache_creation_input_tokens: 33 },
      { ...known, output: 9, cacheWrite5Minutes: 13 },
    ],
    [
      'splits writes by their class',
      {
        output_tokens: 9,
        cache_creation_input_tokens: 9,
        cache_creation: { ephemeral_5m_input_tokens: 4, ephemeral_1h_input_tokens: 5 },
      },
      { ...known, output: 9, cacheWrite5Minutes: 4, cacheWrite1Hour: 5 },
    ],
    [
      'counts thinking',
      { output_tokens: 9, output_tokens_details: { thinking_tokens: 6 } },
      { ...known, output: 9, reasoning: 6 },
    ],
  ])('%s', (_name, usage, expected) => {
    expect(usageOfMessages(usage, known)).toEqual(expected)
  })

  it.each([[null], [[]], [{}], [{ output_tokens: null }]])('is not in %j', (usage) => {
    expect(usageOfMessages(usage, known)).toBeNull()
  })
})
