import { describe, expect, it } from 'vitest'
import { ChatDecoder } from '../../src/gateway/translation/events/chat-decoder.ts'
import { ChatEncoder } from '../../src/gateway/translation/events/chat-encoder.ts'
import { CompletionEncoder } from '../../src/gateway/translation/events/completion-encoder.ts'
import { MessagesDecoder } from '../../src/gateway/translation/events/messages-decoder.ts'
import { MessagesEncoder } from '../../src/gateway/translation/events/messages-encoder.ts'
import type { EventEncoder, ModelEvent } from '../../src/gateway/translation/model-events.ts'
import {
  args,
  call,
  decoded,
  end,
  start,
  stop,
  text,
} from '../unit/gateway/translation/events/events-support.ts'

type Json = Record<string, unknown>

const OPTIONS = { modelId: 'model-1', usageRequested: true, nowSeconds: 1_700_000_000 }
const SOURCE = { type: 'web_search_result_location', url: 'https://a.example', title: 'A', cited_text: 'a' }
const FEW = 3_000

const each = <Item>(count: number, make: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => make(index))

/** Frames of a chat stream. */
const chunk = (delta: Json, finishReason: string | null = null): Json => ({
  id: 'chatcmpl-1',
  choices: [{ index: 0, delta, finish_reason: finishReason }],
})
const fragment = (index: number, made: Json, id = `call_${index}`): Json =>
  chunk({ tool_calls: [{ index, id, function: made }] })

const chatStreams: Array<[string, (count: number) => Json[]]> = [
  ['calls', (count) => each(count, (index) => fragment(index, { name: 'look', arguments: '{}' }))],
  ['calls without arguments', (count) => each(count, (index) => fragment(index, { name: 'look' }))],
  [
    'calls under one index',
    (count) => each(count, (index) => fragment(0, { name: 'look', arguments: '{}' }, `call_${index}`)),
  ],
  [
    'calls that end again and again',
    (count) => [
      ...each(count, (index) => fragment(index, { name: 'look', arguments: '{}' })),
      ...each(count, () => chunk({}, 'tool_calls')),
    ],
  ],
  [
    'calls in turns',
    (count) => [
      ...each(count, (index) => fragment(index, { name: 'look' })),
      ...each(count, (index) => fragment(count - 1 - index, { arguments: '{}' })),
    ],
  ],
  ['a name without end', (count) => each(count, () => fragment(0, { name: 'n' }))],
  ['arguments without end', (count) => each(count, () => fragment(0, { name: 'n', arguments: '[' }))],
  ['choices', (count) => each(count, (index) => ({ choices: [{ index, delta: { content: 'a' } }] }))],
]

/** Frames of a messages stream. */
const begun = (index: number, content_block: Json): Json => ({
  type: 'content_block_start',
  index,
  content_block,
})
const delta = (index: number, part: Json): Json => ({ type: 'content_block_delta', index, delta: part })
const cited = (index: number): Json => delta(index, { type: 'citations_delta', citation: SOURCE })

const messagesStreams: Array<[string, (count: number) => Json[]]> = [
  ['blocks that never end', (count) => each(count, (index) => begun(index, { type: 'text', text: 'a' }))],
  [
    'calls that never end',
    (count) =>
      each(count, (index) => begun(index, { type: 'tool_use', id: `${index}`, name: 'look', input: {} })),
  ],
  [
    'blocks without a beginning',
    (count) => each(count, (index) => delta(index, { type: 'text_delta', text: 'a' })),
  ],
  [
    'blocks that never end in turns',
    (count) => [
      ...each(count, (index) => begun(index, { type: 'text', text: 'a' })),
      ...each(count, (index) => cited(index)),
      ...each(count, (index) => begun(count + index, { type: 'text', text: 'a' })),
    ],
  ],
  ['sources', (count) => [begun(0, { type: 'text', text: 'a' }), ...each(count, () => cited(0))]],
  [
    'texts',
    (count) => [
      begun(0, { type: 'text', text: '' }),
      ...each(count, () => delta(0, { type: 'text_delta', text: 'a' })),
    ],
  ],
  [
    'inputs',
    (count) => [
      begun(0, { type: 'tool_use', id: 'a', name: 'look', input: {} }),
      ...each(count, () => delta(0, { type: 'input_json_delta', partial_json: '[' })),
    ],
  ],
  ['indexes far apart', (count) => each(count, (index) => begun(index * 1_000, { type: 'text', text: 'a' }))],
]

const generations: Array<[string, (count: number) => ModelEvent[]]> = [
  ['calls', (count) => each(count, (index) => [call(index, 'look'), args(index, '{}')]).flat()],
  [
    'calls in turns',
    (count) => [
      ...each(count, (index) => call(index, 'look')),
      ...each(count, (index) => args(count - 1 - index, '{')),
      ...each(count, (index) => args(count - 1 - index, '}')),
    ],
  ],
  [
    'calls that wait for the first',
    (count) => [
      call(0, 'look'),
      ...each(count, (index) => [call(index + 1, 'look'), args(index + 1, '{}')]).flat(),
    ],
  ],
  [
    'calls that all end at once',
    (count) => [
      ...each(count, (index) => call(index, 'look')),
      ...each(count, (index) => args(index + 1, '{}')),
      args(0, '{}'),
    ],
  ],
  ['texts', (count) => each(count, () => text('a'))],
  ['texts and sealed reasoning', (count) => each(count, () => [text('a'), SEALED]).flat()],
  ['sources', (count) => [text('a'), ...each(count, () => CITED)]],
  ['choices', (count) => each(count, (index) => text('a', index))],
  ['choices far apart', (count) => each(count, (index) => text('a', index * 1_000))],
  [
    'ends',
    (count) => [...each(count, (index) => call(index, 'look')), ...each(count, () => stop('tool_calls'))],
  ],
]
const SEALED: ModelEvent = { type: 'redacted_reasoning', choice: 0, data: 'c2VhbGVk' }
const CITED: ModelEvent = { type: 'citation', choice: 0, citation: SOURCE, length: 1 }

const encoders: Array<[string, () => EventEncoder]> = [
  ['ChatEncoder', () => new ChatEncoder(OPTIONS)],
  ['MessagesEncoder', () => new MessagesEncoder('model-1')],
  ['CompletionEncoder', () => new CompletionEncoder(OPTIONS)],
]

describe('the work grows as the stream does', () => {
  it.each(chatStreams)('ChatDecoder: %s', (_name, stream) => {
    expectLinear((count) => {
      const frames = stream(count)
      return () => decoded(new ChatDecoder(), frames).length
    })
  })

  it.each(messagesStreams)('MessagesDecoder: %s', (_name, stream) => {
    expectLinear((count) => {
      const frames = stream(count)
      return () => decoded(new MessagesDecoder(), [...frames, { type: 'message_delta', delta: {} }]).length
    })
  })

  const cases = encoders.flatMap(([name, make]) =>
    generations.map(([what, events]) => [name, what, make, events] as const),
  )
  it.each(cases)('%s: %s', (_name, _what, make, events) => {
    expectLinear((count) => {
      const told = [start(), ...events(count), end]
      return () => {
        const encoder = make()
        return told.flatMap((event) => encoder.frames(event)).length
      }
    })
    expectLinear((count) => {
      const told = [start(), ...events(count), end]
      return () => JSON.stringify(make().answer(told)).length
    })
  })
})

// Lists by index would have thousands of millions of elements.
describe('absurd indexes', () => {
  const far = [4e9, 0, 1e300, 7]

  it('of blocks are names and nothing more', () => {
    const events = decoded(new MessagesDecoder(), [
      ...far.map((index) => begun(index, { type: 'text', text: `${index}` })),
      delta(4e9, { type: 'text_delta', text: '!' }),
    ])
    const said = events.flatMap((event) => (event.type === 'text' ? [event.text] : []))
    expect(said).toEqual(['4000000000', '0', '1e+300', '7', '!'])
  })

  it.each(encoders)('of choices are an order and nothing more: %s', (name, make) => {
    const { choices = [] } = make().answer([start(), ...far.map((index) => text('a', index)), end])
    const indexes = (choices as Json[]).map((choice) => choice.index)
    expect(indexes).toEqual(name === 'MessagesEncoder' ? [] : [0, 7, 4e9, 1e300])
  })

  it('of calls are names and nothing more', () => {
    const events = decoded(
      new ChatDecoder(),
      far.flatMap((index) => [
        fragment(index, { name: 'look', arguments: '{' }),
        fragment(index, { arguments: '}' }),
      ]),
    )
    expect(events.flatMap((event) => (event.type === 'tool_call' ? [event.call] : []))).toEqual([0, 1, 2, 3])
  })
})

// More than the arguments of one call of a function may be.
const WHOLE = 300_000

describe('whole answers of very many parts', () => {
  it('are read: sources of one text', () => {
    const block = { type: 'text', text: 'a', citations: each(WHOLE, () => SOURCE) }
    const events = new MessagesDecoder().answer({ content: [block] })
    expect(events.filter((event) => event.type === 'citation')).toHaveLength(WHOLE)
    const answer = new ChatEncoder(OPTIONS).answer([...events, end])
    expect(JSON.stringify(answer).split('url_citation"').length).toBeGreaterThan(WHOLE)
  })

  it('are read: calls', () => {
    const calls = each(WHOLE, (index) => ({ id: `${index}`, function: { name: 'look', arguments: '{}' } }))
    const events = new ChatDecoder().answer({ choices: [{ index: 0, message: { tool_calls: calls } }] })
    expect(new MessagesEncoder('model-1').answer([...events, end]).content).toHaveLength(WHOLE)
  })

  it('are read: parts within parts', () => {
    const depth = 100_000
    const source = `${'[{"type":"thinking","thinking":'.repeat(depth)}"Hm."${'}]'.repeat(depth)}`
    const frame = { choices: [{ index: 0, delta: { content: JSON.parse(source) } }] }
    expect(decoded(new ChatDecoder(), [frame])).toHaveLength(1)
  })
})

/** Eight times as much may take eight times as long, with room for a busy machine; sixty-four times is too much. */
function expectLinear(prepare: (count: number) => () => number): void {
  const ratio = () => {
    const few = shortestMilliseconds(prepare(FEW))
    return shortestMilliseconds(prepare(8 * FEW)) / Math.max(few, 2)
  }
  const ratios = [ratio()]
  while (Math.min(...ratios) >= 28 && ratios.length < 3) ratios.push(ratio())
  expect(Math.min(...ratios)).toBeLessThan(28)
}

function shortestMilliseconds(work: () => number): number {
  const runs = each(3, () => {
    const began = performance.now()
    work()
    return performance.now() - began
  })
  return Math.min(...runs)
}
