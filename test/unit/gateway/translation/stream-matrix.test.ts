import { beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../../../../src/gateway/protocols/json.ts'
import { provideIdentityStream } from '../identity-stream.ts'
import { SeededRandom } from './events/seeded-random.ts'
import { assembled } from './fidelity/assemble.ts'
import { type Pair, pairs, type Wire } from './fidelity/features.ts'
import { answerStreamed, answerWhole } from './fidelity/run-answer.ts'
import { streamText } from './fidelity/stream-of.ts'
import { BROKEN_STREAMS } from './fixtures/broken-streams.ts'
import { CHAT_STREAMS } from './fixtures/chat-streams.ts'
import { COMPLETION_STREAMS } from './fixtures/completion-streams.ts'
import { MESSAGES_STREAMS } from './fixtures/messages-streams.ts'

beforeAll(provideIdentityStream)

const STREAMS: Record<Wire, Record<string, Json[]>> = {
  chat: CHAT_STREAMS,
  messages: MESSAGES_STREAMS,
  completions: COMPLETION_STREAMS,
}
/** Entries of `STREAMS` without an end. */
const UNENDED = new Set(['cutOff'])

/** Fixtures of each shape that a stream can have, for each protocol of an upstream. */
const SHAPES: Record<string, Record<Wire, readonly string[]>> = {
  text: { chat: ['text', 'contentParts'], messages: ['text'], completions: ['text', 'severalChoices'] },
  tools: {
    chat: ['tool', 'parallelTools', 'toolWithoutArguments', 'legacyFunction'],
    messages: ['tool', 'parallelTools', 'wholeInput'],
    completions: [],
  },
  thinking: {
    chat: ['reasoningContent', 'reasoningDetails', 'reasoningWithTools'],
    messages: ['thinking', 'thinkingOmitted', 'thinkingWithTools'],
    completions: [],
  },
  'cut off': {
    chat: ['cutInText', 'cutInReasoning', 'cutInArguments', 'cutBetweenCalls'],
    messages: ['cutInText', 'cutInThinking', 'cutInArguments', 'cutBetweenBlocks', 'cutBeforeReason'],
    completions: ['cutInText'],
  },
  'error in the middle': {
    chat: ['errorInText', 'errorInArguments', 'errorAsText'],
    messages: ['errorInText', 'errorInThinking', 'errorInArguments'],
    completions: ['errorInText'],
  },
  'out of order': {
    chat: ['interleavedTools', 'severalChoices', 'oddIndexes', 'textAfterTool', 'nameLate'],
    messages: ['outOfOrder', 'interleavedTools', 'textAfterTool', 'noBlockStops'],
    completions: ['severalChoices'],
  },
}

/**
 * No whole answer says the same: it has no text of a block that never began, and one of chat does not say whether text
 * came before its calls or after them.
 */
const hasWhole = (pair: Pair, name: string) =>
  name !== 'unknownThings' && (name !== 'textAfterTool' || pair.name !== 'messages:chat')

interface Fixture {
  name: string
  text: string
  broken: boolean
}

function fixturesOf(wire: Wire): Fixture[] {
  const end = wire === 'messages' ? [] : ['[DONE]']
  const whole = Object.entries(STREAMS[wire])
    .filter(([name]) => !UNENDED.has(name))
    .map(([name, stream]) => ({ name, text: streamText(wire, [...stream, ...end]), broken: false }))
  const broken = Object.entries(BROKEN_STREAMS[wire] as Record<string, readonly Json[]>)
  return [
    ...whole,
    ...broken.map(([name, stream]) => ({ name, text: streamText(wire, stream), broken: true })),
  ]
}

const encoder = new TextEncoder()

/** The bytes at once, one by one, and cut at random. */
function chunkings(text: string): Array<[name: string, chunks: Uint8Array[]]> {
  const bytes = encoder.encode(text)
  const seeds = [1, 2, 3].map((seed): [string, Uint8Array[]] => [`seed ${seed}`, randomly(bytes, seed)])
  return [['byte by byte', [...bytes].map((byte) => Uint8Array.of(byte))], ...seeds]
}

function randomly(bytes: Uint8Array, seed: number): Uint8Array[] {
  const random = new SeededRandom(seed)
  const longest = random.pick([3, 40, 300])
  const pieces: Uint8Array[] = []
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + random.below(longest)
    pieces.push(bytes.slice(at, end))
    at = end
  }
  return pieces
}

/** Without ids that are made anew with each answer, and without members that say nothing. */
function meaning(value: unknown): unknown {
  if (typeof value === 'string') {
    return value.replace(/\b(chatcmpl-|cmpl-|msg_|toolu_|call_)[0-9a-zA-Z_-]+/g, '$1id')
  }
  if (Array.isArray(value)) return value.map(meaning)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([name, each]) => [name, meaning(each)] as const)
  return Object.fromEntries(members.filter(([, each]) => !SAYS_NOTHING.has(JSON.stringify(each))))
}
const SAYS_NOTHING = new Set(['null', '""', '[]', '{}', undefined as unknown as string])

describe('fixtures', () => {
  it.each(Object.entries(SHAPES))('have the shape: %s', (_shape, names) => {
    for (const wire of ['chat', 'messages', 'completions'] as const) {
      const known = fixturesOf(wire).map(({ name }) => name)
      expect(known).toEqual(expect.arrayContaining([...names[wire]]))
      if (wire !== 'completions') expect(names[wire].length).toBeGreaterThan(0)
    }
  })
})

describe.each(pairs)('$caller on $upstream', (pair) => {
  const fixtures = fixturesOf(pair.upstream).map((fixture) => [fixture.name, fixture] as const)
  const ended = fixtures.filter(([name, { broken }]) => !broken && hasWhole(pair, name))
  const broken = fixtures.filter(([, fixture]) => fixture.broken)

  it.each(fixtures)('sends the same for %s wherever its bytes are split', async (_name, { text }) => {
    const atOnce = await answerStreamed(pair, [encoder.encode(text)])
    for (const [name, chunks] of chunkings(text)) {
      expect(settled(await answerStreamed(pair, chunks)), name).toBe(settled(atOnce))
    }
  })

  it.each(ended)('sends the same for %s streamed and whole', async (name, { text }) => {
    const streamed = assembled(pair.caller, await answerStreamed(pair, [encoder.encode(text)]))
    expect(streamed.ended).toBe(true)
    const whole = answerWhole(pair, wholeOf(pair, name, text))
    expect(meaning(streamed)).toEqual(meaning({ ...whole, ended: true }))
  })

  it.each(broken)('marks %s as cut off', async (_name, { text }) => {
    const streamed = assembled(pair.caller, await answerStreamed(pair, [encoder.encode(text)]))
    expect(streamed.error).toMatchObject({
      message: expect.stringMatching(/Overloaded\.|ended its answer early/),
    })
    // It gets no reason that the upstream did not send.
    if (endsOf(assembled(pair.upstream, text)).length === 0) expect(endsOf(streamed)).toEqual([])
  })
})

const endsOf = ({ stop_reason, choices }: Json): unknown[] =>
  [stop_reason, ...((choices as Json[] | undefined) ?? []).map((each) => each.finish_reason)].filter(Boolean)

const settled = (text: string) => text.replace(/\b(chatcmpl-|cmpl-|msg_|toolu_|call_)[0-9a-zA-Z_-]+/g, '$1id')

/** Whole answers of servers that leave out or repeat keys in streams: id, name and arguments of each call. */
const WHOLE_CALLS: Record<string, Array<[id: string, name: string, json: string]>> = {
  sameIndex: [
    ['call_a', 'look', '{"q":1}'],
    ['call_b', 'look', '{"q":2}'],
  ],
  sameIndexNoArguments: [
    ['call_a', 'look', '{}'],
    ['call_b', 'look', '{}'],
  ],
  noIndex: [
    ['call_a', 'look', '{"q":1}'],
    ['call_b', 'look', '{"q":2}'],
  ],
  noIndexInFragments: [['call_a', 'look', '{"q":1}']],
  noIndexManyInChunk: [
    ['call_a', 'look', '{"q":1}'],
    ['call_b', 'find', '{"q":2}'],
  ],
  sameIndexAndId: [
    ['call_a', 'look', '{"q":1}'],
    ['call_b', 'find', '{"q":2}'],
  ],
  nameInPieces: [['call_a', 'look', '{"q":1}']],
}

/** The whole answer that a stream stands for. */
function wholeOf(pair: Pair, name: string, text: string): Json {
  const { ended: _ended, ...answer } = assembled(pair.upstream, text)
  const calls = pair.upstream === 'chat' ? WHOLE_CALLS[name] : undefined
  if (!calls || pair.caller === 'chat') return answer
  const [choice] = answer.choices as Array<{ message: Json }>
  const tool_calls = calls.map(([id, called, json]) => ({
    id,
    type: 'function',
    function: { name: called, arguments: json },
  }))
  return { ...answer, choices: [{ ...choice, message: { ...choice?.message, tool_calls } }] }
}
