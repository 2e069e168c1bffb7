import { describe, expect, it } from 'vitest'
import { Inspection } from '../../../../../src/dlp/inspection.ts'
import { converse } from '../../../../../src/gateway/protocols/converse.ts'
import { generateContent } from '../../../../../src/gateway/protocols/generate-content.ts'
import { type Json, objectOf } from '../../../../../src/gateway/protocols/json.ts'
import type { Protocol } from '../../../../../src/gateway/protocols/protocol.ts'
import { completionToChat } from '../../../../../src/gateway/translation/requests/completions-to-chat.ts'
import {
  cutLargeStrings,
  restoreLargeStrings,
} from '../../../../../src/gateway/translation/requests/large-strings.ts'
import { originalToolNames } from '../../../../../src/gateway/translation/requests/tool-names.ts'
import { drained } from '../../../../../src/lib/slices.ts'
import { StepCounter } from '../../../../harness/counted-steps.ts'
import { notingEngine } from '../../stream-reading.ts'
import { last } from '../fixtures/generate-content-streams.ts'
import { ofMessages as toConverse } from './converse.ts'
import { chat, messages, ORIGIN, responses } from './generate-content.ts'
import {
  assistant,
  call,
  fromChat,
  fromMessages,
  functionTool,
  target,
  text,
  toolMessage,
  user,
} from './requests.ts'
import { answers, calls, item, ofFamily, reasoning, toChat, toMessages, tool } from './responses.ts'

/** Linear work takes eight times as many steps for eight times the size, quadratic work up to 64 times. */
const TIMES = 8
const MOST_TIMES = 12
/** A list that grows is copied now and then, so that the bytes of linear work jump. */
const MOST_TIMES_BYTES = 20
/** Below this, samples of bytes tell little. */
const LEAST_BYTES = 200_000
/** Entries of a list of the smaller request. */
const ENTRIES = 100

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

const ofChat = (request: Json): unknown => chat(request)
const ofMessages = (request: Json): unknown => messages(request)
const ofResponses = (request: Json): unknown => responses(request)

/** Reads an answer under a policy that changes its texts. */
const readBy = (protocol: Protocol) => (answer: Json) => {
  const inspection = new Inspection(notingEngine(/secret/))
  inspection.begin()
  const context = { inspection, modelId: null, usageRequested: true }
  return drained(protocol.readAnswer(new TextEncoder().encode(JSON.stringify(answer)), context))
}

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
    ENTRIES,
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
    ENTRIES,
    fromMessages,
    (size) => ({
      messages: [user('q'), assistant([use('a')]), user(list(size, () => resultOf('a')))],
    }),
  ],
  [
    'calls of one id, for messages',
    ENTRIES,
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
    ENTRIES,
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
    ENTRIES,
    fromChat,
    (size) => ({ messages: list(size, () => user('a')) }),
  ],
  [
    'turns, for messages',
    ENTRIES,
    fromChat,
    (size) => ({ messages: [...list(size, (i) => (i % 2 === 0 ? user('a') : assistant('b'))), user('c')] }),
  ],
  [
    'turns, for chat',
    ENTRIES,
    fromMessages,
    (size) => ({ messages: [...list(size, (i) => (i % 2 === 0 ? user('a') : assistant('b'))), user('c')] }),
  ],
  [
    'tools that are allowed one by one',
    ENTRIES,
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
    ENTRIES,
    fromMessages,
    (size) => ({ tools: [{ ...toolNamed('f'), strict: true, input_schema: strictObject(size) }] }),
  ],
  [
    'strict tool with many members, for messages',
    ENTRIES,
    fromChat,
    (size) => ({ tools: [functionTool('f', { strict: true, parameters: strictObject(size) })] }),
  ],
  ['schema with many members, for messages', ENTRIES, fromChat, (size) => format(strictObject(size))],
  [
    'schema of many parts',
    ENTRIES,
    fromChat,
    (size) => format({ allOf: list(size, (i) => ({ properties: { [`p${i}`]: {} }, required: [`p${i}`] })) }),
  ],
  [
    'schema of parts that contradict each other',
    ENTRIES,
    fromChat,
    (size) => format({ allOf: list(size, (index) => ({ ...strictObject(1), minimum: index })) }),
  ],
  [
    'schema with limits that are told in words',
    ENTRIES,
    fromChat,
    (size) => format({ type: 'object', properties: {}, ...members(size, () => ({ a: [1] })) }),
  ],
  ['stop sequences', ENTRIES, fromChat, (size) => ({ stop: list(size, (index) => `stop ${index}`) })],
  [
    'tools of earlier calls',
    ENTRIES,
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
    ENTRIES,
    fromMessages,
    (size) => ({
      messages: [
        user([{ type: 'document', source: { type: 'content', content: list(size, () => text('a')) } }]),
      ],
    }),
  ],
  [
    'prompts, and stops, of a legacy completion',
    ENTRIES,
    fromCompletion,
    (size) => ({ prompt: ['a'], stop: list(size, () => 'stop') }),
  ],
  [
    'items of the assistant, for chat',
    ENTRIES,
    toChat,
    (size) => ({ input: [item('user', 'a'), ...list(size, () => item('assistant', 'b'))] }),
  ],
  [
    'calls of one id, of responses',
    ENTRIES,
    (request) => [toChat(request), toMessages(request)],
    (size) => ({ input: list(size, () => [calls('a'), answers('a')]).flat() }),
  ],
  [
    'calls before all of their outputs, of responses',
    ENTRIES,
    (request) => [toChat(request), toMessages(request)],
    (size) => ({
      input: [...list(size, (index) => calls(`c${index}`)), ...list(size, (index) => answers(`c${index}`))],
    }),
  ],
  [
    'instructions and reasoning by turns',
    ENTRIES,
    (request) => [toChat(request), toMessages(request, ofFamily('reasoning'))],
    (size) => ({
      input: list(size, () => [item('system', 'a'), reasoning('b'), item('assistant', 'c')]).flat(),
    }),
  ],
  [
    'tools within a namespace that are allowed one by one',
    ENTRIES,
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
    'calls and results, for generateContent',
    ENTRIES,
    ofChat,
    (size) => ({
      messages: [
        user('q'),
        assistant(null, { tool_calls: list(size, (index) => call(`c${index}`)) }),
        ...list(size, (index) => toolMessage(`c${size - 1 - index}`, 'r')),
      ],
    }),
  ],
  [
    'results of one call, and turns, for generateContent',
    ENTRIES,
    ofMessages,
    (size) => ({
      messages: [
        ...list(size, (i) => (i % 2 === 0 ? user('a') : assistant('b'))),
        user('q'),
        assistant([use('a')]),
        user(list(size, () => resultOf('a'))),
      ],
    }),
  ],
  [
    'thoughts, calls and tools of responses, for generateContent',
    ENTRIES,
    ofResponses,
    (size) => ({
      input: list(size, (index) => [
        reasoning('b', { signature: 's', origin: ORIGIN }),
        calls(`c${index}`),
        answers(`c${index}`),
      ]).flat(),
      tools: list(size, (index) => tool(`tool_${index}`)),
    }),
  ],
  [
    'schemas of parts and of old definitions, for generateContent',
    ENTRIES,
    ofChat,
    (size) =>
      format({ ...chainOfAll(size, 20), definitions: members(size, () => ({ const: 1, pattern: 'a' })) }),
  ],
  [
    'parts of an answer, and their signatures, of generateContent',
    ENTRIES,
    readBy(generateContent),
    (size) =>
      last(
        'STOP',
        list(size, () => ({
          functionCall: { name: 'f', args: { a: 'secret', b: 1 } },
          thoughtSignature: 's',
        })),
      ),
  ],
  [
    'turns, calls, results and cache marks, for Converse',
    ENTRIES,
    (request) => toConverse(request),
    (size) => ({
      messages: [
        ...list(size, (i) => (i % 2 === 0 ? user('a') : assistant(' '))),
        user(list(size, () => ({ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }))),
        assistant(list(size, (index) => ({ ...use(`c${index}`), name: `f${index}` }))),
        user(list(size, (index) => resultOf(`c${size - 1 - index}`))),
      ],
      tools: list(size, (index) => toolNamed(`f${2 * index}`)),
    }),
  ],
  [
    'blocks of an answer, and their signatures, of Converse',
    ENTRIES,
    readBy(converse),
    (size) => ({
      output: {
        message: {
          content: list(size, () => [
            { reasoningContent: { reasoningText: { text: 'a secret', signature: 's' } } },
            { toolUse: { toolUseId: 't', name: 'f', input: { a: 'secret', b: 1 } } },
          ]).flat(),
        },
      },
    }),
  ],
  [
    'long strings',
    5,
    (request) => {
      const { text: skeleton, cut } = cutLargeStrings(new TextEncoder().encode(JSON.stringify(request)))
      return restoreLargeStrings(JSON.stringify(fromChat(objectOf(JSON.parse(skeleton)))), cut)
    },
    (size) => ({ messages: list(size, () => user('a'.repeat(17_000))) }),
  ],
]

describe('the cost of a request', () => {
  it.each(CASES)('grows with its size alone: %s', (_case, size, translate, request) => {
    using counter = new StepCounter()
    const small = request(size)
    const large = request(size * TIMES)
    // One-off preparation does not count.
    translate(small)
    const steps = Math.max(
      size,
      counter.stepsOf(() => translate(small)),
    )
    expect(counter.stepsOf(() => translate(large))).toBeLessThan(steps * MOST_TIMES)
    const bytes = counter.allocationOf(() => translate(large))
    if (bytes < LEAST_BYTES * MOST_TIMES_BYTES) return
    expect(bytes).toBeLessThan(counter.allocationOf(() => translate(small)) * MOST_TIMES_BYTES)
  })

  it('does not depend on how deep the parts of a schema are', () => {
    using counter = new StepCounter()
    const chain = (depth: number) => () => void fromChat(format(chainOfAll(500, depth)))
    const limited = (depth: number) => () =>
      void fromChat(format({ ...chainOfAll(500, depth), minimum: 1, type: 'array' }))
    for (const of of [chain, limited]) {
      of(1)()
      // The counts differ by a half from one time to the next; a cost for each level would be a hundredfold.
      expect(counter.stepsOf(of(100))).toBeLessThan(6 * counter.stepsOf(of(1)))
      expect(counter.allocationOf(of(100))).toBeLessThan(5 * counter.allocationOf(of(1)))
    }
  })

  it('of a name as long as a body is that of reading it a few times', () => {
    using counter = new StepCounter()
    const name = 'é'.repeat(30_000)
    for (const telling of [
      () => void fromChat({ tools: [functionTool(name)] }),
      () => void fromMessages({ tools: [toolNamed(name)] }),
      () => void originalToolNames({ tools: [functionTool(name)] }),
    ]) {
      expect(counter.stepsOf(telling)).toBeLessThan(30 * name.length)
      expect(counter.allocationOf(telling)).toBeLessThan(30 * name.length)
    }
  })
})
