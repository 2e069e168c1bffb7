import { describe, expect, it } from 'vitest'
import { type Json, objectOf } from '../../../../../src/gateway/translation/json.ts'
import { completionToChat } from '../../../../../src/gateway/translation/requests/completions-to-chat.ts'
import {
  cutLargeStrings,
  restoreLargeStrings,
} from '../../../../../src/gateway/translation/requests/large-strings.ts'
import { originalToolNames } from '../../../../../src/gateway/translation/requests/tool-names.ts'
import {
  assistant,
  call,
  fromChat,
  fromMessages,
  functionTool,
  refusal,
  target,
  text,
  toolMessage,
  user,
} from './requests.ts'
import { answers, calls, item, ofFamily, reasoning, toChat, toMessages, tool } from './responses.ts'

/** Linear work takes sixteen times as long for sixteen times the size, or some more in larger memory; quadratic 256 times. */
const TIMES = 16
const MOST_TIMES = 80
const ROUNDS = 3

/** Processor time of this thread, so that neighbours on the same machine do not count. */
function microseconds(work: () => unknown): number {
  const before = process.threadCpuUsage()
  work()
  const { user: inUser, system } = process.threadCpuUsage(before)
  return inUser + system
}

/** The least of some rounds: what the collector of memory takes by chance is left out. */
function leastTime(work: () => unknown): number {
  return Math.min(...Array.from({ length: ROUNDS }, () => microseconds(work)))
}

/** Whether the work takes less than this in one of some rounds. */
const takesLess = (work: () => unknown, most: number): boolean =>
  Array.from({ length: ROUNDS }).some(() => microseconds(work) < most)

const list = <Item>(count: number, make: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, i) => make(i))
const members = (count: number, make: (index: number) => unknown): Json =>
  Object.fromEntries(list(count, (index) => [`member_${index}`, make(index)]))
const strictObject = (count: number): Json => {
  const properties = members(count, () => ({ type: 'string' }))
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false }
}
const toolNamed = (name: string): Json => ({ name, input_schema: { type: 'object' } })
const use = (id: string): Json => ({ type: 'tool_use', id, name: 'look', input: {} })
const resultOf = (id: string): Json => ({ type: 'tool_result', tool_use_id: id, content: 'r' })
const format = (schema: Json): Json => ({ response_format: { type: 'json_schema', json_schema: { schema } } })
/** A chain of parts within parts as deep as a body may be, of which the innermost is large. */
const chainOfAll = (count: number, depth: number): Json =>
  depth === 0 ? strictObject(count) : { allOf: [chainOfAll(count, depth - 1)] }

const fromCompletion = (request: Json): unknown => completionToChat(request, target('reasoning'))

type Case = [
  name: string,
  size: number,
  translate: (request: Json) => unknown,
  request: (size: number) => Json,
]

const CASES: Case[] = [
  [
    'results of one call, for messages',
    1_000,
    fromChat,
    (size) => ({
      messages: [
        user('q'),
        assistant(null, { tool_calls: [call('a')] }),
        ...list(size, () => toolMessage('a', 'r')),
      ],
    }),
  ],
  [
    'results of one call, for chat',
    1_000,
    fromMessages,
    (size) => ({
      messages: [user('q'), assistant([use('a')]), user(list(size, () => resultOf('a')))],
    }),
  ],
  [
    'calls of one id, for messages',
    1_000,
    fromChat,
    (size) => ({
      messages: [
        user('q'),
        assistant(null, { tool_calls: list(size, () => call('a')) }),
        ...list(size, () => toolMessage('a', 'r')),
      ],
    }),
  ],
  [
    'ids that look like those that are given, for messages',
    1_000,
    fromChat,
    (size) => ({
      messages: [
        user('q'),
        assistant(null, {
          tool_calls: list(size, (index) => call(index % 2 === 0 ? `call_${index}` : `odd:${index}`)),
        }),
        ...list(size, (index) => toolMessage(index % 2 === 0 ? `call_${index}` : `odd:${index}`, 'r')),
      ],
    }),
  ],
  [
    'messages of one role, for messages',
    2_000,
    fromChat,
    (size) => ({ messages: list(size, () => user('a')) }),
  ],
  [
    'turns, for messages',
    2_000,
    fromChat,
    (size) => ({ messages: [...list(size, (i) => (i % 2 === 0 ? user('a') : assistant('b'))), user('c')] }),
  ],
  [
    'turns, for chat',
    2_000,
    fromMessages,
    (size) => ({ messages: [...list(size, (i) => (i % 2 === 0 ? user('a') : assistant('b'))), user('c')] }),
  ],
  [
    'tools that are allowed one by one',
    1_000,
    fromChat,
    (size) => ({
      tools: list(size, (index) => functionTool(`tool_${index}`)),
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: {
          mode: 'auto',
          tools: list(size, (index) => ({
            type: 'function',
            function: { name: `tool_${size - 1 - index}` },
          })),
        },
      },
    }),
  ],
  [
    'strict tool with many members, for chat',
    1_000,
    fromMessages,
    (size) => ({ tools: [{ ...toolNamed('f'), strict: true, input_schema: strictObject(size) }] }),
  ],
  [
    'strict tool with many members, for messages',
    1_000,
    fromChat,
    (size) => ({ tools: [functionTool('f', { strict: true, parameters: strictObject(size) })] }),
  ],
  ['schema with many members, for messages', 1_000, fromChat, (size) => format(strictObject(size))],
  [
    'schema of many parts',
    1_000,
    fromChat,
    (size) => format({ allOf: list(size, (i) => ({ properties: { [`p${i}`]: {} }, required: [`p${i}`] })) }),
  ],
  [
    'schema of parts that contradict each other',
    1_000,
    fromChat,
    (size) => format({ allOf: list(size, (index) => ({ ...strictObject(1), minimum: index })) }),
  ],
  [
    'schema with limits that are told in words',
    1_000,
    fromChat,
    (size) => format({ type: 'object', properties: {}, ...members(size, () => ({ a: [1] })) }),
  ],
  ['stop sequences', 2_000, fromChat, (size) => ({ stop: list(size, (index) => `stop ${index}`) })],
  [
    'tools of earlier calls',
    1_000,
    fromChat,
    (size) => ({
      messages: [
        user('q'),
        assistant(null, { tool_calls: list(size, (index) => call(`id_${index}`, `odd.name:${index}`)) }),
        ...list(size, (index) => toolMessage(`id_${index}`, 'r')),
      ],
    }),
  ],
  [
    'parts of a document, for chat',
    2_000,
    fromMessages,
    (size) => ({
      messages: [
        user([{ type: 'document', source: { type: 'content', content: list(size, () => text('a')) } }]),
      ],
    }),
  ],
  [
    'prompts, and stops, of a legacy completion',
    2_000,
    fromCompletion,
    (size) => ({ prompt: ['a'], stop: list(size, () => 'stop') }),
  ],
  [
    'items of the assistant, for chat',
    2_000,
    toChat,
    (size) => ({ input: [item('user', 'a'), ...list(size, () => item('assistant', 'b'))] }),
  ],
  [
    'calls of one id, of responses',
    1_000,
    (request) => [toChat(request), toMessages(request)],
    (size) => ({ input: list(size, () => [calls('a'), answers('a')]).flat() }),
  ],
  [
    'calls before all of their outputs, of responses',
    1_000,
    (request) => [toChat(request), toMessages(request)],
    (size) => ({
      input: [...list(size, (index) => calls(`c${index}`)), ...list(size, (index) => answers(`c${index}`))],
    }),
  ],
  [
    'instructions and reasoning by turns',
    1_000,
    (request) => [toChat(request), toMessages(request, ofFamily('reasoning'))],
    (size) => ({
      input: list(size, () => [item('system', 'a'), reasoning('b'), item('assistant', 'c')]).flat(),
    }),
  ],
  [
    'tools within a namespace that are allowed one by one',
    1_000,
    toChat,
    (size) => ({
      tools: [{ type: 'namespace', name: 'n', tools: list(size, (index) => tool(`tool_${index}`)) }],
      tool_choice: {
        type: 'allowed_tools',
        mode: 'auto',
        tools: list(size, (index) => ({ type: 'function', name: `tool_${size - 1 - index}` })),
      },
    }),
  ],
  [
    'long strings',
    40,
    (request) => {
      const { text: skeleton, cut } = cutLargeStrings(new TextEncoder().encode(JSON.stringify(request)))
      return restoreLargeStrings(JSON.stringify(fromChat(objectOf(JSON.parse(skeleton)))), cut)
    },
    (size) => ({ messages: list(size, () => user('a'.repeat(17_000))) }),
  ],
]

describe('the cost of a request', () => {
  // Times of a busy machine jump.
  it.each(CASES)('grows with its size alone: %s', { retry: 2 }, (_case, size, translate, request) => {
    const small = request(size)
    const large = request(size * TIMES)
    leastTime(() => translate(small))
    // Below a millisecond the clock tells little.
    const before = Math.max(
      leastTime(() => translate(small)),
      1_000,
    )
    expect(takesLess(() => translate(large), before * MOST_TIMES)).toBe(true)
  })

  it('does not depend on how deep the parts of a schema are', () => {
    const chain = (depth: number) => () => fromChat(format(chainOfAll(20_000, depth)))
    expect(takesLess(chain(100), 5 * leastTime(chain(1)))).toBe(true)
    const limited = (depth: number) => () =>
      fromChat(format({ ...chainOfAll(20_000, depth), minimum: 1, type: 'array' }))
    expect(takesLess(limited(100), 5 * leastTime(limited(1)))).toBe(true)
  })

  it('of a name as long as a body is that of reading it a few times', () => {
    const name = 'é'.repeat(1_000_000)
    let sum = 0
    const reading = leastTime(() => {
      for (let index = 0; index < name.length; index++) sum = (sum + name.charCodeAt(index)) | 0
    })
    expect(sum).not.toBe(0)
    for (const telling of [
      () => fromChat({ tools: [functionTool(name)] }),
      () => fromMessages({ tools: [toolNamed(name)] }),
      () => originalToolNames({ tools: [functionTool(name)] }),
    ]) {
      expect(takesLess(telling, Math.max(reading, 1_000) * 30)).toBe(true)
    }
  })
})

describe('lists longer than a call takes arguments', () => {
  // A call takes about 120,000.
  const MANY = 150_000
  const parts = list(MANY, () => text('a'))
  const inputs = list(MANY, () => ({ type: 'input_text', text: 'a' }))

  it.each<[string, () => unknown]>([
    ['parts of two messages of one role', () => fromChat({ messages: [user(parts), user(parts)] })],
    ['parts of the assistant', () => fromChat({ messages: [user('a'), assistant(parts), user('b')] })],
    [
      'parts of a result',
      () =>
        fromChat({
          messages: [
            user('q'),
            assistant(null, { tool_calls: [call('a')] }),
            toolMessage('a', parts),
            toolMessage('a', parts),
          ],
        }),
    ],
    [
      'parts of system messages',
      () => fromChat({ messages: [{ role: 'system', content: parts }, user('a')] }),
    ],
    ['parts of an item', () => toChat({ input: [item('user', inputs), item('assistant', inputs)] })],
    [
      'parts of an output',
      () =>
        toMessages({
          input: [item('user', inputs), calls('a'), answers('a', inputs), item('system', inputs)],
        }),
    ],
    ['items', () => toMessages({ input: list(MANY, () => item('user', 'a')) })],
    ['blocks', () => fromMessages({ messages: [user(parts)], system: parts })],
    [
      'blocks of a document',
      () =>
        fromMessages({
          messages: [user([{ type: 'document', source: { type: 'content', content: parts } }])],
        }),
    ],
    [
      'media of a result',
      () => {
        const image = { type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } }
        const shown = { ...resultOf('a'), content: list(MANY, () => image) }
        return fromMessages({ messages: [user('q'), assistant([use('a')]), user([shown])] })
      },
    ],
  ])('%s', (_case, translate) => {
    expect(refusal(translate)).toBe('not refused')
  })
})
