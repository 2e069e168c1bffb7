import { describe, expect, it } from 'vitest'
import { MessagesEncoder } from '../../../../../src/gateway/translation/events/messages-encoder.ts'
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

const encoder = () => new MessagesEncoder('model-1')
/** Events that an encoder writes between the beginning and the end of the message. */
const blocksOf = (events: ModelEvent[]) => payloads(encoder(), [start(), ...events, end]).slice(1, -2)
const finalOf = (events: ModelEvent[]) => payloads(encoder(), [start(), ...events, end]).at(-2) as Json
const answerOf = (events: ModelEvent[]) => encoder().answer([start(), ...events, end])

const begin = (index: number, content_block: Json) => ({ type: 'content_block_start', index, content_block })
const delta = (index: number, type: string, more: Json) => ({
  type: 'content_block_delta',
  index,
  delta: { type, ...more },
})
const over = (index: number) => ({ type: 'content_block_stop', index })
const textBlock = (index: number, ...pieces: string[]) => [
  begin(index, { type: 'text', text: '' }),
  ...pieces.map((piece) => delta(index, 'text_delta', { text: piece })),
  over(index),
]
const toolBlock = (index: number, number: number, name: string, ...pieces: string[]) => [
  begin(index, { type: 'tool_use', id: `call_${number}`, name, input: {} }),
  ...pieces.map((json) => delta(index, 'input_json_delta', { partial_json: json })),
  over(index),
]
const NO_COUNTS = {
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 0,
  output_tokens_details: null,
}

describe('a stream to a caller of the messages protocol', () => {
  it('names every event, and begins with a placeholder for usage', () => {
    const events = [start(), text('Hi'), stop('end'), end]
    const frames = readFrames(events.flatMap((event) => encoder().frames(event)))
    for (const { event, data } of frames) expect(event).toBe((data as Json).type)
    const all = payloads(encoder(), events)
    expect(all).toEqual([
      {
        type: 'message_start',
        message: {
          id: 'msg_x-1',
          type: 'message',
          role: 'assistant',
          model: 'model-1',
          content: [],
          stop_reason: null,
          stop_sequence: null,
          stop_details: null,
          usage: {
            ...NO_COUNTS,
            cache_creation: null,
            output_tokens: 1,
            server_tool_use: null,
            service_tier: null,
          },
        },
      },
      ...textBlock(0, 'Hi'),
      {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn', stop_sequence: null, stop_details: null },
        usage: NO_COUNTS,
      },
      { type: 'message_stop' },
    ])
  })

  it.each([
    ['msg_1', /^msg_1$/],
    ['chatcmpl-1', /^msg_chatcmpl-1$/],
    ['', /^msg_[0-9A-Za-z]{22}$/],
  ])('has an id of its own protocol for "%s"', (id, expected) => {
    const [first] = payloads(encoder(), [start(id)]) as Array<{ message: Json }>
    expect(first?.message.id).toMatch(expected)
  })

  it('begins once, whatever the upstream repeats', () => {
    expect(payloads(encoder(), [start(), start()])).toHaveLength(1)
  })

  it('sends the final usage, cumulative', () => {
    const usage = {
      input: 1,
      cacheRead: 2,
      cacheWrite5Minutes: 3,
      cacheWrite1Hour: 4,
      output: 5,
      reasoning: 2,
    }
    expect(
      finalOf([
        { type: 'usage', usage: { ...usage, output: 1 } },
        { type: 'usage', usage },
      ]).usage,
    ).toEqual({
      input_tokens: 1,
      cache_creation_input_tokens: 7,
      cache_read_input_tokens: 2,
      output_tokens: 5,
      output_tokens_details: { thinking_tokens: 2 },
    })
  })

  it('sends only the first choice', () => {
    expect(blocksOf([text('b', 1), text('a'), stop('end')])).toEqual(textBlock(0, 'a'))
  })
})

const blockRows: Array<[name: string, events: ModelEvent[], blocks: unknown[]]> = [
  ['nothing at all', [], []],
  ['text in pieces', [text('a'), text('b')], textBlock(0, 'a', 'b')],
  [
    'reasoning without a signature, which stays empty',
    [reasoning('Hm'), reasoning('.'), text('4')],
    [
      begin(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, 'thinking_delta', { thinking: 'Hm' }),
      delta(0, 'thinking_delta', { thinking: '.' }),
      over(0),
      ...textBlock(1, '4'),
    ],
  ],
  [
    'reasoning in two signed parts, one of them unreadable',
    [reasoning('a'), signature('s1'), signature('s2'), text('4')],
    [
      begin(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, 'thinking_delta', { thinking: 'a' }),
      delta(0, 'signature_delta', { signature: 's1' }),
      over(0),
      begin(1, { type: 'thinking', thinking: '', signature: '' }),
      delta(1, 'signature_delta', { signature: 's2' }),
      over(1),
      ...textBlock(2, '4'),
    ],
  ],
  [
    'sealed reasoning',
    [
      { type: 'redacted_reasoning', choice: 0, data: 'x' },
      { type: 'redacted_reasoning', choice: 0, data: 'y' },
    ],
    [
      begin(0, { type: 'redacted_thinking', data: 'x' }),
      over(0),
      begin(1, { type: 'redacted_thinking', data: 'y' }),
      over(1),
    ],
  ],
  [
    'a source',
    [text('a'), { type: 'citation', choice: 0, citation: { url: 'u' }, length: 1 }, text('b')],
    [
      begin(0, { type: 'text', text: '' }),
      delta(0, 'text_delta', { text: 'a' }),
      delta(0, 'citations_delta', { citation: { url: 'u' } }),
      delta(0, 'text_delta', { text: 'b' }),
      over(0),
    ],
  ],
  [
    'a call, text before and after it',
    [text('a'), call(0, 'look'), args(0, '{"q"'), args(0, ':1}'), text('b')],
    [...textBlock(0, 'a'), ...toolBlock(1, 0, 'look', '{"q"', ':1}'), ...textBlock(2, 'b')],
  ],
  ['a call without arguments', [call(0, 'now')], toolBlock(0, 0, 'now')],
  [
    'calls one after the other',
    [call(0, 'look'), args(0, '{"q":"}\\""}'), call(1, 'find'), args(1, '{}')],
    [...toolBlock(0, 0, 'look', '{"q":"}\\""}'), ...toolBlock(1, 1, 'find', '{}')],
  ],
  [
    'calls that take turns',
    [call(0, 'look'), call(1, 'find'), args(1, '{"r"'), args(0, '{"q"'), args(1, ':2}'), args(0, ':1}')],
    [...toolBlock(0, 0, 'look', '{"q"', ':1}'), ...toolBlock(1, 1, 'find', '{"r"', ':2}')],
  ],
  [
    'a call that is left amid a text with brackets and quotation marks',
    [call(0, 'look'), args(0, '{"q":"}'), call(1, 'find'), args(0, '\\"}'), args(1, '{}'), args(0, '"}')],
    [...toolBlock(0, 0, 'look', '{"q":"}', '\\"}', '"}'), ...toolBlock(1, 1, 'find', '{}')],
  ],
  [
    'three calls that take turns, the second without arguments',
    [call(0, 'a'), call(1, 'b'), call(2, 'c'), args(2, '{"r":1}'), args(0, '{}')],
    [...toolBlock(0, 0, 'a', '{}'), ...toolBlock(1, 1, 'b'), ...toolBlock(2, 2, 'c', '{"r":1}')],
  ],
  [
    'text amid a call',
    [call(0, 'look'), args(0, '{"q"'), text('a'), text('b'), args(0, ':1}'), text('c')],
    [...toolBlock(0, 0, 'look', '{"q"', ':1}'), ...textBlock(1, 'a', 'b', 'c')],
  ],
  ['arguments of a call that was never begun', [args(3, '{}'), text('a')], textBlock(0, 'a')],
  [
    'white space after arguments that were over',
    [call(0, 'a'), args(0, '{}'), call(1, 'b'), args(0, '\n'), args(1, '{}')],
    [...toolBlock(0, 0, 'a', '{}'), ...toolBlock(1, 1, 'b', '{}')],
  ],
]

describe('blocks follow each other', () => {
  it.each(blockRows)('%s', (_name, events, blocks) => {
    expect(blocksOf(events)).toEqual(blocks)
  })

  it('streams a call, and the next one as soon as it is complete', () => {
    const one = encoder()
    const at = (event: ModelEvent) => payloads(one, [event]).length
    expect([start(), call(0, 'look'), args(0, '{"q"'), args(0, ':[1]'), args(0, '}')].map(at)).toEqual([
      1, 1, 1, 1, 1,
    ])
    // The stop of the first and the beginning of the second.
    expect([call(1, 'find'), args(1, '{')].map(at)).toEqual([2, 1])
    // Text waits for the call, which is not over.
    expect([text('a'), args(1, '}')].map(at)).toEqual([0, 4])
  })
})

const reasons: Array<[events: ModelEvent[], reason: string, details: unknown]> = [
  [[text('a'), stop('end')], 'end_turn', null],
  [[text('a'), stop('length')], 'max_tokens', null],
  [[text('a'), stop('context_window')], 'model_context_window_exceeded', null],
  [[call(0, 'a'), stop('tool_calls')], 'tool_use', null],
  [[text('a')], 'end_turn', null],
  [[call(0, 'a')], 'tool_use', null],
  [[call(0, 'a'), stop('length')], 'max_tokens', null],
  [[stop('refusal')], 'refusal', { type: 'refusal', category: null, explanation: null }],
  [
    [stop('refusal', { explanation: 'Not that.' })],
    'refusal',
    { type: 'refusal', category: null, explanation: 'Not that.' },
  ],
  [
    [refusal('I '), refusal('cannot.'), stop('end')],
    'refusal',
    { type: 'refusal', category: null, explanation: 'I cannot.' },
  ],
  [[stop('end'), stop('length')], 'max_tokens', null],
]

describe('the reason of the end', () => {
  it.each(reasons)('%j', (events, reason, details) => {
    expect(finalOf(events).delta).toEqual({ stop_reason: reason, stop_sequence: null, stop_details: details })
  })

  it('comes with the sequence that matched', () => {
    const { delta: expected } = finalOf([stop('stop_sequence', { stopSequence: '###' })])
    expect(expected).toEqual({ stop_reason: 'stop_sequence', stop_sequence: '###', stop_details: null })
  })

  it('shows a refusal as text', () => {
    expect(blocksOf([refusal('I '), refusal('cannot.')])).toEqual(textBlock(0, 'I ', 'cannot.'))
  })
})

describe('a whole message', () => {
  it('is what the stream would have been', () => {
    const events = [
      reasoning('Hm.'),
      signature('s'),
      text('a'),
      { type: 'citation', choice: 0, citation: { url: 'u' }, length: 1 } as const,
      call(0, 'look'),
      call(1, 'now'),
      args(0, '{"q":1}'),
      stop('tool_calls'),
    ]
    expect(answerOf(events)).toEqual({
      id: 'msg_x-1',
      type: 'message',
      role: 'assistant',
      model: 'model-1',
      content: [
        { type: 'thinking', thinking: 'Hm.', signature: 's' },
        { type: 'text', text: 'a', citations: [{ url: 'u' }] },
        { type: 'tool_use', id: 'call_0', name: 'look', input: { q: 1 } },
        { type: 'tool_use', id: 'call_1', name: 'now', input: {} },
      ],
      stop_reason: 'tool_use',
      stop_sequence: null,
      stop_details: null,
      usage: { ...NO_COUNTS, cache_creation: null, server_tool_use: null, service_tier: null },
    })
  })

  it('keeps every digit of a number in arguments', () => {
    const body = JSON.stringify(answerOf([call(0, 'look'), args(0, '{"q":12345678901234567891}')]))
    expect(body).toContain('{"q":12345678901234567891}')
  })

  it.each(["{'q': 1}", '{"q":', '[1]', 'null', '"q"', '{}{}'])(
    'shows arguments that are no object: %s',
    (json) => {
      const { content } = answerOf([call(0, 'look'), args(0, json)]) as { content: Json[] }
      expect(content[0]?.input).toEqual({ INVALID_JSON: json })
    },
  )

  it('takes blank arguments as none', () => {
    const { content } = answerOf([call(0, 'look'), args(0, ' ')]) as { content: Json[] }
    expect(content[0]?.input).toEqual({})
  })
})
