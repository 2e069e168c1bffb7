import { describe, expect, it } from 'vitest'
import { ChatEncoder } from '../../../../../src/gateway/translation/events/chat-encoder.ts'
import type { ModelEvent } from '../../../../../src/gateway/translation/model-events.ts'
import {
  args,
  call,
  end,
  payloads,
  readFrames,
  reasoning,
  refusal,
  signature,
  start,
  stop,
  text,
} from './events-support.ts'

type Json = Record<string, unknown>

const encoder = (usageRequested = false) =>
  new ChatEncoder({ modelId: 'model-1', usageRequested, nowSeconds: 1_800_000_000 })
const HEAD = {
  id: 'chatcmpl-x-1',
  object: 'chat.completion.chunk',
  created: 1_700_000_000,
  model: 'model-1',
}
const chunk = (delta: Json, finishReason: string | null = null, index = 0) => ({
  ...HEAD,
  choices: [{ index, delta, logprobs: null, finish_reason: finishReason }],
})
const FIRST = chunk({ role: 'assistant', content: '' })
const toolChunk = (index: number, json: string) =>
  chunk({ tool_calls: [{ index, function: { arguments: json } }] })
const newTool = (index: number, id: string, name: string) =>
  chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] })
const source = (url: unknown, length: number, title?: string): ModelEvent => ({
  type: 'citation',
  choice: 0,
  citation: { type: 'web_search_result_location', url, title },
  length,
})
const annotation = (url: string, title: string, start_index: number, end_index: number) => ({
  type: 'url_citation',
  url_citation: { url, title, start_index, end_index },
})

const rows: Array<[name: string, events: ModelEvent[], chunks: unknown[]]> = [
  ['nothing but its end', [stop('end')], [chunk({}, 'stop')]],
  [
    'text',
    [text('a'), text('b'), stop('end')],
    [chunk({ content: 'a' }), chunk({ content: 'b' }), chunk({}, 'stop')],
  ],
  [
    'reasoning, without what only its own family can read',
    [
      reasoning('Hm.'),
      signature('s'),
      { type: 'redacted_reasoning', choice: 0, data: 'x' },
      text('4'),
      stop('end'),
    ],
    [chunk({ reasoning_content: 'Hm.' }), chunk({ content: '4' }), chunk({}, 'stop')],
  ],
  [
    'a refusal',
    [refusal('No'), refusal('.'), stop('refusal', { explanation: 'No.' })],
    [chunk({ refusal: 'No' }), chunk({ refusal: '.' }), chunk({}, 'content_filter')],
  ],
  [
    'a refusal explained at its end',
    [text('a'), stop('refusal', { explanation: 'Not that.' })],
    [chunk({ content: 'a' }), chunk({ refusal: 'Not that.' }), chunk({}, 'content_filter')],
  ],
  [
    'calls, numbered without gaps, identity in the first fragment only',
    [
      text('a'),
      call(2, 'look'),
      args(2, '{"q"'),
      args(2, ':1}'),
      call(5, 'find'),
      args(5, '{}'),
      stop('tool_calls'),
    ],
    [
      chunk({ content: 'a' }),
      newTool(0, 'call_2', 'look'),
      toolChunk(0, '{"q"'),
      toolChunk(0, ':1}'),
      newTool(1, 'call_5', 'find'),
      toolChunk(1, '{}'),
      chunk({}, 'tool_calls'),
    ],
  ],
  [
    'calls that take turns, one of them without arguments',
    [call(0, 'a'), call(1, 'b'), args(1, '{"r"'), args(1, ':2}'), stop('tool_calls')],
    [
      newTool(0, 'call_0', 'a'),
      newTool(1, 'call_1', 'b'),
      toolChunk(1, '{"r"'),
      toolChunk(1, ':2}'),
      toolChunk(0, '{}'),
      chunk({}, 'tool_calls'),
    ],
  ],
  ['arguments of a call that was never begun', [args(0, '{}'), stop('end')], [chunk({}, 'stop')]],
  [
    'sources by the place of their text, those in documents left out',
    [
      text('See: '),
      text('cold'),
      source('https://a.example', 4, 'A'),
      source('https://b.example', 4),
      source(undefined, 4),
      text(', warm'),
      source('https://c.example', 6),
      stop('end'),
    ],
    [
      chunk({ content: 'See: ' }),
      chunk({ content: 'cold' }),
      chunk({ content: ', warm' }),
      chunk({
        annotations: [
          annotation('https://a.example', 'A', 5, 9),
          annotation('https://b.example', '', 5, 9),
          annotation('https://c.example', '', 9, 15),
        ],
      }),
      chunk({}, 'stop'),
    ],
  ],
  [
    'an end that is repeated',
    [text('a'), stop('end'), stop('length')],
    [chunk({ content: 'a' }), chunk({}, 'stop')],
  ],
  ['no reason of its end', [text('a')], [chunk({ content: 'a' }), chunk({}, 'stop')]],
  [
    'no reason of its end, after a call',
    [call(0, 'a')],
    [newTool(0, 'call_0', 'a'), toolChunk(0, '{}'), chunk({}, 'tool_calls')],
  ],
]

describe('a stream to a caller of chat completions', () => {
  it.each(rows)('has %s', (_name, events, chunks) => {
    const all = payloads(encoder(), [start(), ...events, end])
    expect(all).toEqual([FIRST, ...chunks, '[DONE]'])
  })

  it('has frames without a name', () => {
    const one = encoder()
    const frames = readFrames([start(), text('a'), stop('end'), end].flatMap((event) => one.frames(event)))
    expect(frames.map(({ event }) => event)).toEqual([null, null, null, null])
  })

  it('begins each choice with its role and ends each', () => {
    const all = payloads(encoder(), [start(), text('b', 1), text('a'), stop('end', { choice: 1 }), end])
    expect(all).toEqual([
      FIRST,
      chunk({ role: 'assistant', content: '' }, null, 1),
      chunk({ content: 'b' }, null, 1),
      chunk({ content: 'a' }),
      chunk({}, 'stop', 1),
      chunk({}, 'stop'),
      '[DONE]',
    ])
  })

  it('keeps the calls and sources of another choice', () => {
    const events: ModelEvent[] = [
      { type: 'tool_call', choice: 1, call: 0, id: 'call_0', name: 'look' },
      { type: 'tool_arguments', choice: 1, call: 0, json: '{"q":1}' },
      text('ab', 2),
      { ...source('https://a.example', 1, 'A'), choice: 2 } as ModelEvent,
    ]
    const { choices } = encoder().answer([start(), ...events, end]) as { choices: Array<{ message: Json }> }
    expect(choices[1]?.message.tool_calls).toEqual([
      { id: 'call_0', type: 'function', function: { name: 'look', arguments: '{"q":1}' } },
    ])
    expect(choices[2]?.message.annotations).toEqual([annotation('https://a.example', 'A', 1, 2)])
  })

  it('sends requested usage in a chunk of its own, before the end', () => {
    const usage = {
      input: 10,
      cacheRead: 4,
      cacheWrite5Minutes: 2,
      cacheWrite1Hour: 1,
      output: 7,
      reasoning: 3,
    }
    const events = [start(), text('a'), stop('end'), { type: 'usage', usage } as const, end]
    const expected = {
      prompt_tokens: 17,
      completion_tokens: 7,
      total_tokens: 24,
      prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 3 },
      completion_tokens_details: { reasoning_tokens: 3 },
    }
    const asked = payloads(encoder(true), events) as Json[]
    expect(asked.slice(-2)).toEqual([{ ...HEAD, choices: [], usage: expected }, '[DONE]'])
    expect(asked.slice(0, -2).some((payload) => 'usage' in payload)).toBe(false)
    expect(JSON.stringify(payloads(encoder(false), events))).not.toContain('usage')
    expect(encoder(false).answer(events).usage).toEqual(expected)
  })

  it('sends no usage where the upstream reported none', () => {
    expect(payloads(encoder(true), [start(), stop('end'), end])).toHaveLength(3)
    expect(encoder(true).answer([start(), stop('end'), end])).not.toHaveProperty('usage')
  })

  it.each([
    ['', null, /^chatcmpl-[0-9A-Za-z]{22}$/, 1_800_000_000],
    ['msg_1', 5, /^chatcmpl-msg_1$/, 5],
    ['chatcmpl-1', 5, /^chatcmpl-1$/, 5],
  ])('repeats one id and one time in all chunks: %j', (id, createdSeconds, expected, created) => {
    const first: ModelEvent = { type: 'start', id, model: 'm', createdSeconds, usage: null }
    const chunks = payloads(encoder(), [first, text('a'), stop('end')]) as Json[]
    expect(chunks[0]?.id).toMatch(expected)
    for (const each of chunks) expect(each).toMatchObject({ id: chunks[0]?.id, created, model: 'model-1' })
  })
})

const reasons: Array<[reason: Extract<ModelEvent, { type: 'stop' }>['reason'], expected: string]> = [
  ['end', 'stop'],
  ['stop_sequence', 'stop'],
  ['length', 'length'],
  ['context_window', 'length'],
  ['tool_calls', 'tool_calls'],
  ['refusal', 'content_filter'],
]

describe('a whole chat completion', () => {
  it.each(reasons)('ends with %s as %s', (reason, expected) => {
    const { choices } = encoder().answer([start(), text('a'), stop(reason), end]) as { choices: Json[] }
    expect(choices[0]?.finish_reason).toBe(expected)
  })

  it('is what the stream would have been', () => {
    const events = [
      reasoning('Hm.'),
      text('See '),
      text('this'),
      source('https://a.example', 4, 'A'),
      call(0, 'look'),
      args(0, '{"q"'),
      args(0, ':1}'),
      call(1, 'now'),
      stop('tool_calls'),
    ]
    expect(encoder().answer([start(), ...events, end])).toEqual({
      ...HEAD,
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: 'See this',
            refusal: null,
            reasoning_content: 'Hm.',
            tool_calls: [
              { id: 'call_0', type: 'function', function: { name: 'look', arguments: '{"q":1}' } },
              { id: 'call_1', type: 'function', function: { name: 'now', arguments: '{}' } },
            ],
            annotations: [annotation('https://a.example', 'A', 4, 8)],
          },
          logprobs: null,
          finish_reason: 'tool_calls',
        },
      ],
    })
  })

  it.each([
    ['nothing', [stop('end')], { role: 'assistant', content: '', refusal: null }],
    [
      'only a refusal',
      [refusal('No.'), stop('refusal')],
      { role: 'assistant', content: null, refusal: 'No.' },
    ],
  ] as Array<[string, ModelEvent[], Json]>)('says %s', (_name, events, message) => {
    const { choices } = encoder().answer([start(), ...events, end]) as { choices: Json[] }
    expect(choices[0]?.message).toEqual(message)
  })

  it('orders its choices', () => {
    const events = [start(), text('b', 1), text('a'), stop('end', { choice: 1 }), stop('end'), end]
    const { choices } = encoder().answer(events) as { choices: Array<{ index: number; message: Json }> }
    expect(choices.map(({ index, message }) => [index, message.content])).toEqual([
      [0, 'a'],
      [1, 'b'],
    ])
  })
})
