import { beforeAll, describe, expect, it } from 'vitest'
import { NO_USAGE } from '../../../src/calls/usage.ts'
import type { ModelEvent } from '../../../src/gateway/translation/model-events.ts'
import { provideIdentityStream } from './identity-stream.ts'
import { type UpstreamFixture, upstreamFixtures } from './translated-call-fixtures.ts'
import {
  type CallOptions,
  encoder,
  type Json,
  relayed,
  resultOf,
  TRANSLATIONS,
} from './translated-call-harness.ts'
import { CHAT_CLIENTS, MESSAGES_CLIENTS } from './translation/events/sdk-accumulators.ts'
import { SeededRandom } from './translation/events/seeded-random.ts'

beforeAll(provideIdentityStream)

/** How often each stream is cut at random. */
const SEEDS = Number(process.env.CHUNKING_SEEDS ?? 1)

/** Scripts that count tokens of a stream and of a whole answer differently. */
const COUNTED_APART = /script (fenced-json|refusal|usage-nulls)$/
/**
 * Input of a call that is cut off has no form in a whole answer of messages, and a whole answer of chat completions does
 * not say whether text came before or after its calls.
 */
const SAID_APART = /script (cut-arguments|text-after-tools)$/

/** Ids that are made anew with each answer. */
const settled = (text: string) =>
  text.replace(/\b(chatcmpl-|cmpl-|msg_|toolu_|srvtoolu_|call_|req_)[0-9a-zA-Z_-]+/g, '$1id')

const single = (bytes: Uint8Array) => [...bytes].map((byte) => Uint8Array.of(byte))

/** Cut anywhere, in pieces of one byte up to several frames. */
function randomly(bytes: Uint8Array, random: SeededRandom): Uint8Array[] {
  const pieces: Uint8Array[] = []
  const longest = random.pick([2, 7, 50, 400, 3_000])
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + random.below(longest)
    pieces.push(bytes.slice(at, end))
    at = end
  }
  return pieces
}

/** Two frames at a time. */
function merged(bytes: Uint8Array): Uint8Array[] {
  const frames = new TextDecoder().decode(bytes).split(/(?<=\n\n|\r\n\r\n|\r\r)/)
  const pairs: Uint8Array[] = []
  for (let at = 0; at < frames.length; at += 2) pairs.push(encoder.encode(frames.slice(at, at + 2).join('')))
  return pairs
}

/** @param isSingle whether byte by byte, too. */
function chunkings(bytes: Uint8Array, isSingle: boolean): Array<[name: string, chunks: Uint8Array[]]> {
  const seeds = Array.from({ length: SEEDS }, (_, seed) => seed)
  return [
    ...(isSingle ? [['byte by byte', single(bytes)] as [string, Uint8Array[]]] : []),
    ['two frames at a time', merged(bytes)],
    ...seeds.map((seed): [string, Uint8Array[]] => [`seed ${seed}`, randomly(bytes, new SeededRandom(seed))]),
  ]
}

describe.each(TRANSLATIONS)('%s on %s', (caller, upstream) => {
  const options: CallOptions = { caller, upstream }
  const fixtures = upstreamFixtures(upstream).map((fixture) => [fixture.name, fixture] as const)
  // What reads bytes is the same for all callers: each stream arrives byte by byte for one of them.
  const callers = TRANSLATIONS.filter(([, other]) => other === upstream).map(([each]) => each)
  const arrivals = fixtures.map(([name, fixture], index) => {
    const isSingle = callers[index % callers.length] === caller
    return [name, chunkings(fixture.bytes, isSingle), fixture] as const
  })

  it('has fixtures enough', () => {
    expect(fixtures.length).toBeGreaterThan(40)
    expect(fixtures.filter(([, { whole }]) => whole).length).toBeGreaterThan(25)
  })

  it.each(arrivals)('tells %s the same however its bytes arrive', async (_, chunked, { bytes }) => {
    const atOnce = await relayed(options, [bytes])
    for (const [name, chunks] of chunked) {
      const cut = await relayed(options, chunks)
      expect(settled(cut.text), name).toBe(settled(atOnce.text))
      expect(cut.end, name).toEqual(atOnce.end)
      expect(cut.meter.usage(), name).toEqual(atOnce.meter.usage())
      const { inspected, uninspected, released, withheld } = cut.inspection.counts
      expect(inspected + uninspected, name).toBe(released + withheld)
    }
  })

  const inBothForms = fixtures.filter(([name, { whole }]) => whole && !SAID_APART.test(name))
  it.each(inBothForms)('tells %s streamed as it tells it whole', async (name, fixture) => {
    const { text, end } = await relayed(options, [fixture.bytes])
    if (end.kind !== 'completed') return expect(name).toMatch(/error|cut|end|no-done/)
    // Turns of responses are always streams.
    const asked = caller === 'responses' ? {} : { request: { stream: false } }
    const result = resultOf({ ...options, ...asked }, fixture.whole ?? {})
    const expected =
      caller === 'responses' ? saidEvents(result.events as ModelEvent[]) : saidWhole(caller, result)
    const uncounted = COUNTED_APART.test(name) ? { usage: 'apart' } : {}
    for (const streamed of await reassembled(caller, text, fixture)) {
      expect(settled(JSON.stringify({ ...streamed, ...uncounted }))).toBe(
        settled(JSON.stringify({ ...expected, ...uncounted })),
      )
    }
  })
})

/** What the official clients make of a caller's stream. */
async function reassembled(caller: string, text: string, fixture: UpstreamFixture): Promise<Json[]> {
  if (caller === 'completions') return [completionOf(text)]
  if (caller === 'responses') return [saidEvents(eventsIn(text))]
  const clients = caller === 'messages' ? MESSAGES_CLIENTS : CHAT_CLIENTS
  const random = new SeededRandom(fixture.bytes.length)
  const answers = clients.map(async ([, accumulate]) => {
    const answer = await accumulate([encoder.encode(text)], random)
    return caller === 'messages' ? saidMessage(answer) : saidChat(answer)
  })
  return Promise.all(answers)
}

const eventsIn = (text: string): ModelEvent[] =>
  text
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: '))
    .map((frame) => JSON.parse(frame.slice('data: '.length)) as ModelEvent)

/** What events tell together, however it is cut. */
function saidEvents(told: readonly ModelEvent[]): Json {
  const spoken: Record<string, string> = {}
  for (const event of told) {
    const key = 'call' in event ? `${event.choice} call ${event.call}` : event.type
    const pieces = [
      'text' in event ? event.text : '',
      'json' in event ? event.json : '',
      // Made anew with each answer.
      'signature' in event ? 'signed ' : '',
      'name' in event ? `${event.id} ${event.name} ` : '',
      'citation' in event ? JSON.stringify(event.citation) : '',
      'reason' in event ? event.reason : '',
    ]
    spoken[key] = (spoken[key] ?? '') + pieces.join('')
  }
  const sorted = Object.entries(spoken).sort(([left], [right]) => (left < right ? -1 : 1))
  const last = told.findLast((event) => event.type === 'usage')?.usage ?? NO_USAGE
  // A stream may tell what was written to the cache without its classes.
  const { cacheWrite5Minutes, cacheWrite1Hour, ...usage } = last
  return {
    spoken: sorted.filter(([, said]) => said !== ''),
    usage: { ...usage, cacheWrite: cacheWrite5Minutes + cacheWrite1Hour },
  }
}

const saidWhole = (caller: string, answer: Json): Json => {
  if (caller === 'messages') return saidMessage(answer)
  return caller === 'completions' ? saidCompletion(answer) : saidChat(answer)
}

function saidMessage(message: Json): Json {
  const { id, role, model, content, stop_reason, stop_sequence, usage } = message
  const { input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens } = usage as Json
  const usageTold = { input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens }
  return { id, role, model, content, stop_reason, stop_sequence, usage: usageTold }
}

interface SaidMessage {
  content?: string | null
  refusal?: string | null
  annotations?: Json[]
  tool_calls?: Array<{ id: string; type: string; function: { name: string; arguments: string } }>
}

function saidChat(completion: Json): Json {
  const choices = completion.choices as Array<{ index: number; finish_reason: string; message: SaidMessage }>
  return {
    id: completion.id,
    model: completion.model,
    usage: completion.usage,
    choices: choices.map(({ index, finish_reason, message }) => ({
      index,
      finish_reason,
      content: message.content || null,
      refusal: message.refusal || null,
      annotations: message.annotations ?? [],
      calls: (message.tool_calls ?? []).map(({ id, type, function: made }) => [
        id,
        type,
        made.name,
        made.arguments,
      ]),
    })),
  }
}

const saidCompletion = ({ id, model, usage, choices }: Json): Json => ({
  id,
  model,
  usage,
  choices: (choices as Json[]).map(({ index, text, finish_reason }) => ({ index, text, finish_reason })),
})

/** The official client of completions hands chunks on as they are. */
function completionOf(stream: string): Json {
  const chunks = stream
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: {'))
    .map((frame) => JSON.parse(frame.slice('data: '.length)) as Json)
  const choices: Array<{ index: number; text: string; finish_reason: unknown }> = []
  for (const { index, text, finish_reason } of chunks.flatMap((chunk) => chunk.choices as typeof choices)) {
    const choice = choices[index] ?? { index, text: '', finish_reason: null }
    choices[index] = choice
    choice.text += text
    choice.finish_reason ??= finish_reason
  }
  const usage = chunks.findLast((chunk) => chunk.usage)?.usage
  return { id: chunks[0]?.id, model: chunks[0]?.model, usage, choices }
}
