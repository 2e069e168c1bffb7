import { describe, expect, it } from 'vitest'
import { MessagesDecoder } from '../../../../../src/gateway/translation/events/messages-decoder.ts'
import type { ModelEvent } from '../../../../../src/gateway/translation/model-events.ts'
import { DOCUMENT_CITATION, MESSAGES_STREAMS as streams, WEB_CITATION } from '../fixtures/messages-streams.ts'
import { args, call, decoded, reasoning, signature, stop, text } from './events-support.ts'

const startUsage = {
  input: 12,
  cacheRead: 5,
  cacheWrite5Minutes: 10,
  cacheWrite1Hour: 20,
  output: 1,
  reasoning: 0,
}
const started: ModelEvent = {
  type: 'start',
  id: 'msg_7',
  model: 'upstream-1',
  createdSeconds: null,
  usage: startUsage,
}
const usage = (more = {}): ModelEvent => ({ type: 'usage', usage: { ...startUsage, output: 9, ...more } })
const citation = (source: Record<string, unknown>, length: number): ModelEvent => ({
  type: 'citation',
  choice: 0,
  citation: source,
  length,
})
const redacted: ModelEvent = { type: 'redacted_reasoning', choice: 0, data: 'c2VhbGVk' }
const thought = [reasoning('Let me '), reasoning('see.'), signature('c2ln'), redacted, text('4')]

const rows: Array<[name: keyof typeof streams, events: ModelEvent[]]> = [
  ['text', [text('Hel'), text('lo'), stop('end'), usage()]],
  ['empty', [stop('end'), usage()]],
  ['cutOff', [text('Hal')]],
  [
    'tool',
    [
      text('Looking.'),
      call(0, 'look', 'toolu_a'),
      args(0, '{"q"'),
      args(0, ':1}'),
      stop('tool_calls'),
      usage(),
    ],
  ],
  [
    'parallelTools',
    [
      call(0, 'look', 'toolu_a'),
      args(0, '{"q":1}'),
      call(1, 'now', 'toolu_b'),
      args(1, '{}'),
      stop('tool_calls'),
      usage(),
    ],
  ],
  ['wholeInput', [call(0, 'look', 'toolu_a'), args(0, '{"q":1}'), stop('tool_calls'), usage()]],
  ['wholeInputTwice', [call(0, 'look', 'toolu_a'), args(0, '{"q":1}'), stop('tool_calls'), usage()]],
  ['thinking', [...thought, stop('end'), usage({ reasoning: 6 })]],
  ['thinkingOmitted', [signature('c2ln'), text('4'), stop('end'), usage()]],
  [
    'webSearch',
    [
      text('I will look. '),
      text('It is '),
      text('cold'),
      citation(WEB_CITATION, 10),
      text(', they say'),
      citation(DOCUMENT_CITATION, 10),
      text('.'),
      stop('end'),
      usage(),
    ],
  ],
  ['paused', [text('One moment.'), stop('length'), usage()]],
  ['refused', [text('Well'), stop('refusal', { explanation: 'Not that.' }), usage()]],
  ['stopSequence', [text('a'), stop('stop_sequence', { stopSequence: '###' }), usage()]],
  ['maxTokens', [text('a'), stop('length'), usage()]],
  ['contextWindow', [text('a'), stop('context_window'), usage()]],
  ['unknownReason', [text('a'), stop('end'), usage()]],
  ['noBlockStops', [...thought, call(0, 'now', 'toolu_a'), args(0, '{}'), stop('tool_calls'), usage()]],
  [
    'outOfOrder',
    [text('He'), call(0, 'look', 'toolu_a'), text('llo'), args(0, '{"q":1}'), stop('tool_calls'), usage()],
  ],
  ['unknownThings', [text('of no block'), text('a'), stop('end'), usage()]],
  ['usageCumulative', [text('a'), usage({ output: 4 }), stop('end'), usage({ input: 40, cacheRead: 6 })]],
]

describe('a stream whose blocks all have the same index', () => {
  it('loses nothing that a block held back', () => {
    const begin = (content_block: Record<string, unknown>) => ({
      type: 'content_block_start',
      index: 0,
      content_block,
    })
    const stream = [
      begin({ type: 'tool_use', id: 'a', name: 'look', input: { q: 1 } }),
      begin({ type: 'text', text: 'It is cold.', citations: [WEB_CITATION] }),
      begin({ type: 'tool_use', id: 'b', name: 'look', input: { q: 2 } }),
      { type: 'message_delta', delta: { stop_reason: 'tool_use' } },
    ]
    expect(decoded(new MessagesDecoder(), stream)).toEqual([
      call(0, 'look', 'a'),
      args(0, '{"q":1}'),
      text('It is cold.'),
      citation(WEB_CITATION, 11),
      call(1, 'look', 'b'),
      args(1, '{"q":2}'),
      stop('tool_calls'),
    ])
  })
})

describe('a stream of the messages protocol', () => {
  it.each(rows)('%s', (name, expected) => {
    expect(decoded(new MessagesDecoder(), streams[name])).toEqual([started, ...expected])
  })

  it('takes the name of an event from its payload where the frame has none', () => {
    const decoder = new MessagesDecoder()
    const events = streams.text.flatMap((data) => decoder.frame(null, data))
    expect(events).toEqual(decoded(new MessagesDecoder(), streams.text))
  })

  it('passes over payloads of other types', () => {
    const decoder = new MessagesDecoder()
    const events = ['message_start', 'content_block_start', 'content_block_delta', 'message_delta'].flatMap(
      (event) => decoder.frame(event, { message: 3, content_block: 'x', delta: null, usage: [], index: {} }),
    )
    expect(events).toEqual([{ type: 'start', id: '', model: '', createdSeconds: null, usage: null }])
  })
})

describe('a whole message', () => {
  it('is read as the events it would have streamed', () => {
    const body = {
      id: 'msg_7',
      type: 'message',
      role: 'assistant',
      model: 'upstream-1',
      content: [
        { type: 'thinking', thinking: 'Let me see.', signature: 'c2ln' },
        { type: 'redacted_thinking', data: 'c2VhbGVk' },
        { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'Bern' } },
        { type: 'text', text: 'It is cold', citations: [WEB_CITATION] },
        { type: 'tool_use', id: 'toolu_a', name: 'look', input: { q: 1 } },
        { type: 'tool_use', id: 'toolu_b', name: 'now', input: {} },
      ],
      stop_reason: 'stop_sequence',
      stop_sequence: '###',
      usage: { input_tokens: 12, output_tokens: 9 },
    }
    const events = new MessagesDecoder().answer(body)
    const counted = { ...startUsage, cacheRead: 0, cacheWrite5Minutes: 0, cacheWrite1Hour: 0, output: 9 }
    expect(events).toEqual([
      { ...started, usage: counted },
      reasoning('Let me see.'),
      signature('c2ln'),
      redacted,
      text('It is cold'),
      citation(WEB_CITATION, 10),
      call(0, 'look', 'toolu_a'),
      args(0, '{"q":1}'),
      call(1, 'now', 'toolu_b'),
      args(1, '{}'),
      stop('stop_sequence', { stopSequence: '###' }),
      { type: 'usage', usage: counted },
    ])
  })

  it.each([
    ['nothing', {}],
    ['members of other types', { id: 1, content: 'x', stop_reason: 3, usage: 'y' }],
    ['blocks of other types', { content: [null, 7, {}, { type: 'constructor' }] }],
  ])('may hold %s', (_name, body) => {
    const types = new MessagesDecoder().answer(body).map(({ type }) => type)
    expect(types).toEqual(['start'])
  })
})
