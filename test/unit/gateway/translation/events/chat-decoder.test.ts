import { describe, expect, it } from 'vitest'
import { ChatDecoder } from '../../../../../src/gateway/translation/events/chat-decoder.ts'
import type { ModelEvent } from '../../../../../src/gateway/translation/model-events.ts'
import { CHAT_STREAMS as streams, USAGE } from '../fixtures/chat-streams.ts'
import { args, call, decoded, reasoning, refusal, stop, text } from './events-support.ts'

type Chunks = Array<Record<string, unknown>>

const usage: ModelEvent = {
  type: 'usage',
  usage: { input: 16, cacheRead: 4, cacheWrite5Minutes: 0, cacheWrite1Hour: 0, output: 9, reasoning: 2 },
}
const toolCall = (json = '{"q":1}') => [call(0, 'look', 'call_a'), args(0, json)]
const bothCalls = [...toolCall(), call(1, 'look', 'call_b'), args(1, '{"q":2}')]

const rows: Array<[name: keyof typeof streams, events: ModelEvent[]]> = [
  ['text', [text('Hel'), text('lo'), stop('end'), usage]],
  ['contentWithFinish', [text('Hi'), stop('end')]],
  ['cutOff', [text('Hal')]],
  ['contentParts', [reasoning('Hm.'), text('AB'), stop('end')]],
  ['emptyFinishReasons', [text('a'), text('b'), stop('length')]],
  ['unknownFinishReason', [text('a'), stop('end')]],
  ['reasoningContent', [reasoning('Let me '), reasoning('see.'), text('4'), stop('end')]],
  ['reasoningTwice', [reasoning('Hm.'), text('4'), stop('end')]],
  ['reasoningDetails', [reasoning('Sum. Text.'), text('4'), stop('end')]],
  ['refusal', [refusal('I cannot '), refusal('do that.'), stop('end')]],
  ['filtered', [text('Well'), stop('refusal')]],
  ['audio', [text('x'), stop('end')]],
  ['tool', [call(0, 'look', 'call_a'), args(0, '{"q"'), args(0, ':1}'), stop('tool_calls')]],
  ['toolWithoutArguments', [call(0, 'now', 'call_a'), stop('tool_calls')]],
  [
    'parallelTools',
    [text('Both.'), ...toolCall(), call(1, 'find', 'call_b'), args(1, '{"q":2}'), stop('tool_calls')],
  ],
  [
    'interleavedTools',
    [
      call(0, 'look', 'call_a'),
      args(0, '{"q"'),
      call(1, 'find', 'call_b'),
      args(1, '{"r"'),
      args(1, ':2}'),
      args(0, ':1}'),
      stop('tool_calls'),
    ],
  ],
  ['oddIndexes', [...toolCall(), call(1, 'find', 'call_b'), args(1, '{"q":2}'), stop('tool_calls')]],
  ['toolInFinish', [...toolCall(), stop('tool_calls')]],
  // A turn with calls that the server closes with `stop` ends as one that calls tools.
  ['sameIndex', [...bothCalls, stop('tool_calls')]],
  ['sameIndexNoArguments', [call(0, 'look', 'call_a'), call(1, 'look', 'call_b'), stop('tool_calls')]],
  ['noIndex', [...bothCalls, stop('tool_calls')]],
  ['noIndexInFragments', [call(0, 'look', 'call_a'), args(0, '{"q"'), args(0, ':1}'), stop('tool_calls')]],
  ['idOfEachFragment', [call(0, 'look', 'call_a'), args(0, '{"q"'), args(0, ':1}'), stop('tool_calls')]],
  ['nameRepeated', [call(0, 'look', 'call_a'), args(0, '{"q"'), args(0, ':1}'), stop('tool_calls')]],
  ['nameInPieces', [...toolCall(), stop('tool_calls')]],
  ['nameLate', [call(0, 'look', 'call_a'), args(0, '{"q"'), args(0, ':1}'), stop('tool_calls')]],
  ['argumentsAsObject', [...toolCall(), stop('tool_calls')]],
  ['finishTwice', [...toolCall(), stop('tool_calls'), stop('tool_calls'), usage]],
  ['usageInFinish', [text('a'), stop('end'), usage]],
  ['usageOfGroq', [text('a'), stop('end'), usage]],
  ['usageOfMoonshot', [text('a'), stop('end'), usage]],
  ['usageNull', [text('a'), stop('end')]],
]

describe('a stream of chat completions', () => {
  it.each(rows)('%s', (name, expected) => {
    const events = decoded(new ChatDecoder(), streams[name] as Chunks)
    expect(events[0]).toEqual({
      type: 'start',
      id: 'chatcmpl-7',
      model: 'upstream-1',
      createdSeconds: 1_700_000_000,
      usage: null,
    })
    expect(events.slice(1)).toEqual(expected)
  })

  it('begins after Azure’s chunk about the prompt, which has no id, time and model', () => {
    expect(decoded(new ChatDecoder(), streams.promptFilterFirst)).toEqual(
      decoded(new ChatDecoder(), streams.contentWithFinish),
    )
  })

  it('passes over chunks of Azure’s filter, which have no delta', () => {
    expect(decoded(new ChatDecoder(), streams.filterWithoutDelta)).toEqual(
      decoded(new ChatDecoder(), streams.contentWithFinish),
    )
  })

  it.each([
    ['eos', 'end'],
    ['model_length', 'context_window'],
    ['error', 'length'],
    ['insufficient_system_resource', 'length'],
  ])('ends with %s', (finish_reason, reason) => {
    const events = new ChatDecoder().frame(null, { choices: [{ index: 0, delta: {}, finish_reason }] })
    expect(events.at(-1)).toMatchObject({ type: 'stop', reason })
  })

  it('has a piece of reasoning once where its maker repeats them, for each choice', () => {
    const chunk = (index: number, delta: object) => ({ id: 'c', choices: [{ index, delta }] })
    const frames = [
      chunk(0, { reasoning_content: 'Hm. ' }),
      chunk(0, { reasoning_content: 'Hm. ' }),
      chunk(1, { reasoning_content: 'Hm. ' }),
      chunk(0, { reasoning_content: 'So.' }),
      chunk(0, { content: 'a' }),
      chunk(0, { content: 'a' }),
    ]
    const once = decoded(new ChatDecoder(true), frames).slice(1)
    expect(once).toEqual([reasoning('Hm. '), reasoning('Hm. ', 1), reasoning('So.'), text('a'), text('a')])
    expect(decoded(new ChatDecoder(), frames)).toHaveLength(frames.length + 1)
  })

  it('keeps the choices apart', () => {
    const events = decoded(new ChatDecoder(), streams.severalChoices).slice(1)
    expect(events).toEqual([
      text('b', 1),
      text('a', 0),
      stop('end'),
      { type: 'tool_call', choice: 1, call: 0, id: 'call_b', name: 'find' },
      { type: 'tool_arguments', choice: 1, call: 0, json: '{}' },
      stop('tool_calls', { choice: 1 }),
    ])
  })

  it('counts usage of every chunk, the last one last', () => {
    const usages = decoded(new ChatDecoder(), streams.usageInEachChunk).filter(({ type }) => type === 'usage')
    expect(usages.map((event) => event.type === 'usage' && event.usage.output)).toEqual([1, 5, 9])
  })

  it('reads fragments without index, id and name by their place', () => {
    const events = decoded(new ChatDecoder(), streams.noIndexManyInChunk)
    expect(callsOf(events)).toEqual([
      ['look', '{"q":1}'],
      ['find', '{"q":2}'],
    ])
  })
})

describe('fragments under one index and id', () => {
  const of = (...made: Array<[name: string, json: string]>) =>
    callsOf(
      decoded(
        new ChatDecoder(),
        made.map(([name, json]) => ({
          choices: [
            {
              index: 0,
              delta: { tool_calls: [{ index: 0, id: 'call_a', function: { name, arguments: json } }] },
            },
          ],
        })),
      ),
    )

  it('are one call, whatever white space comes after its arguments', () => {
    expect(of(['look', '{"q":1}'], ['look', '\n'], ['', ' '])).toEqual([['look', '{"q":1}\n ']])
  })

  it('are another call when they bring other arguments', () => {
    expect(of(['look', '{"q":1}'], ['look', ' {"q":2}'])).toEqual([
      ['look', '{"q":1}'],
      ['look', ' {"q":2}'],
    ])
  })
})

describe('ids of calls', () => {
  const idsOf = (events: ModelEvent[]) =>
    events.flatMap((event) => (event.type === 'tool_call' ? [event.id] : []))

  it.each([
    ['noIds', ''],
    ['noIndexManyInChunk', ''],
    ['legacyFunction', ''],
    ['sameIndexAndId', 'call_a'],
  ] as const)('are made where the upstream gives none or gives one twice: %s', (name, kept) => {
    const ids = idsOf(decoded(new ChatDecoder(), streams[name] as Chunks))
    expect(new Set(ids).size).toBe(ids.length)
    for (const id of ids.filter((each) => each !== kept)) expect(id).toMatch(/^call_[0-9A-Za-z]{22}$/)
    if (kept !== '') expect(ids[0]).toBe(kept)
  })

  it('leave the calls as they are', () => {
    const two = [
      ['look', '{"q":1}'],
      ['find', '{"q":2}'],
    ]
    expect(callsOf(decoded(new ChatDecoder(), streams.sameIndexAndId))).toEqual(two)
    expect(callsOf(decoded(new ChatDecoder(), streams.noIds))).toEqual(two)
    expect(callsOf(decoded(new ChatDecoder(), streams.legacyFunction))).toEqual([['look', '{"q":1}']])
  })
})

describe('a whole chat completion', () => {
  const answer = (message: Record<string, unknown>, finishReason: unknown, more = {}) => ({
    id: 'chatcmpl-7',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: 'upstream-1',
    choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: finishReason }],
    ...more,
  })

  it('is read as the events it would have streamed', () => {
    const body = answer(
      {
        content: 'Both.',
        refusal: null,
        reasoning_content: 'Hm.',
        tool_calls: [
          { id: 'call_a', type: 'function', function: { name: 'look', arguments: '{"q":1}' } },
          { id: 'call_b', type: 'function', function: { name: 'now', arguments: '' } },
        ],
      },
      'tool_calls',
      { usage: USAGE },
    )
    expect(new ChatDecoder().answer(body).slice(1)).toEqual([
      reasoning('Hm.'),
      text('Both.'),
      ...toolCall(),
      call(1, 'now', 'call_b'),
      stop('tool_calls'),
      usage,
    ])
  })

  it('has as many calls as it lists, whatever index and id they carry', () => {
    const same = { index: 0, id: 'call_a', type: 'function', function: { name: 'look', arguments: '{}' } }
    const events = new ChatDecoder().answer(answer({ content: null, tool_calls: [same, same] }, 'tool_calls'))
    expect(callsOf(events)).toEqual([
      ['look', '{}'],
      ['look', '{}'],
    ])
  })

  it.each([
    ['no choices', { id: 'x', choices: [] }],
    ['nothing', {}],
    ['members of other types', { id: 7, created: 'x', choices: 'y', usage: 'z' }],
    ['choices of other types', { id: 'x', choices: [null, 3, { message: 'x', delta: [], index: 'y' }] }],
  ])('may hold %s', (_name, body) => {
    const types = new ChatDecoder().answer(body).map(({ type }) => type)
    expect(types).toEqual(['start'])
  })
})

/** Names and arguments in the order of the calls. */
function callsOf(events: ModelEvent[]): string[][] {
  const calls: string[][] = []
  for (const event of events) {
    if (event.type === 'tool_call') calls[event.call] = [event.name, '']
    else if (event.type === 'tool_arguments')
      calls[event.call]?.splice(1, 1, `${calls[event.call]?.[1]}${event.json}`)
  }
  return calls
}
