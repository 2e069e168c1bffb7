import { describe, expect, it } from 'vitest'
import { Inspection } from '../../../src/dlp/inspection.ts'
import { TokenVault } from '../../../src/dlp/policy/actions.ts'
import { PolicyEngine } from '../../../src/dlp/policy/policy-engine.ts'
import type { TextDetector } from '../../../src/dlp/stream/text-stream.ts'
import { converse } from '../../../src/gateway/protocols/converse.ts'
import { ConverseDecoder } from '../../../src/gateway/translation/events/converse-decoder.ts'
import type { ModelEvent } from '../../../src/gateway/translation/model-events.ts'
import { applyEdits, joinBytes } from '../../../src/lib/byte-edits.ts'
import { drained } from '../../../src/lib/slices.ts'
import { parseFrame, SseSplitter } from '../../../src/lib/sse.ts'
import { inOneSlice } from '../dlp/finding.ts'
import { SeededRandom } from '../lib/seeded-random.ts'
import { notingEngine, readStream } from './stream-reading.ts'
import {
  begin,
  CONVERSE_STREAMS,
  type ConverseEvent,
  callStart,
  delta,
  end,
  frames,
  input,
  signature,
  stop,
  text,
  thought,
  wholeOf,
} from './translation/fixtures/converse-streams.ts'

type Json = Record<string, unknown>
const encoder = new TextEncoder()
const decoder = new TextDecoder()

describe('a stream of Converse', () => {
  it.each(Object.entries(CONVERSE_STREAMS))('passes, and ends with its usage: %s', (_name, stream) => {
    const source = frames(stream)
    const { text: read, reader } = readStream(converse, source)
    expect(read).toBe(source)
    expect([reader.ended, reader.usagePending, reader.passesUnread]).toEqual([true, false, false])
    expect(reader.usage()).toEqual({
      final: true,
      usage: {
        input: 20,
        cacheRead: 5,
        cacheWrite5Minutes: 2,
        cacheWrite1Hour: 1,
        output: 37,
        reasoning: 0,
      },
    })
    expect(drained(reader.closingFrames())).toEqual([])
  })

  it('that was cut off has not ended', () => {
    const { reader } = readStream(converse, frames([begin, text(0, 'Hel'), stop(0)]))
    expect([reader.ended, reader.usagePending]).toEqual([false, false])
    expect(drained(reader.closingFrames())).toBeNull()
  })

  it('waits for its usage after the stop reason', () => {
    const { reader } = readStream(converse, frames([begin, text(0, 'Hi'), stop(0), ...end().slice(0, 1)]))
    expect([reader.ended, reader.usagePending]).toEqual([false, true])
    expect(drained(reader.closingFrames())).toEqual([])
  })

  it('counts the texts and reasoning of the model', () => {
    const { reader } = readStream(converse, frames(CONVERSE_STREAMS.thinking ?? []))
    expect([reader.reasoned, reader.textBytes]).toEqual([true, '**So.** Then.Yes'.length])
    expect(readStream(converse, frames(CONVERSE_STREAMS.text ?? [])).reader.reasoned).toBe(false)
  })

  it('fails with an exception in it', () => {
    const error = { type: 'overloaded_error', message: 'Busy.' }
    const body = { type: 'error', error }
    const { verdicts } = readStream(converse, frames([begin, text(0, 'Hel'), ['error', body]]))
    expect(verdicts[2]).toEqual({ kind: 'failure', message: 'Busy.', forward: null, body, isOverload: true })
  })

  it.each(['malformed_model_output', 'malformed_tool_use'])('fails with %s, which is charged', (reason) => {
    const { verdicts, reader } = readStream(converse, frames([begin, ...end(reason)]))
    const message = `The model's answer ended with ${reason}.`
    expect(verdicts.slice(1)).toEqual([{ kind: 'drop' }, { kind: 'failure', message, forward: null }])
    expect(reader.usage()).toMatchObject({ final: true, usage: { output: 37 } })
    const cut = readStream(converse, frames([begin, ...end(reason).slice(0, 1)])).reader
    expect([cut.ended, cut.usagePending, drained(cut.closingFrames())]).toEqual([false, false, null])
  })

  it('fails with a frame that is not JSON', () => {
    expect(readStream(converse, 'event: messageStart\ndata: {"a":[\n\n').verdicts).toMatchObject([
      { kind: 'failure' },
    ])
  })
})

describe('texts of Converse', () => {
  it('are all inspected but the words of the vendor', () => {
    const engine = notingEngine()
    const stream = [
      begin,
      thought(0, 'think'),
      signature(0, 'sig'),
      stop(0),
      text(1, 'say'),
      delta(1, { a_member_of_tomorrow: 'new' }),
      callStart(2, 'tooluse_1', 'f'),
      input(2, '{"a":"c"}'),
      ...end(),
    ]
    readStream(converse, frames(stream), { engine })
    expect(engine.seen.map((each) => each.split('=')[1]).sort()).toEqual(
      ['think…', 'say…', 'new', 'f', '{\\"a\\":\\"c\\"}…'].sort(),
    )
  })

  it('in an answer are edited, and the signature of edited reasoning is emptied', () => {
    const answer = {
      output: {
        message: {
          role: 'assistant',
          content: [
            { reasoningContent: { reasoningText: { text: 'a secret', signature: 'one' } } },
            { reasoningContent: { reasoningText: { text: 'plain', signature: 'two' } } },
            { text: 'a secret' },
            { toolUse: { toolUseId: 'secret', name: 'f', input: { signature: 'secret', n: 1 } } },
          ],
        },
      },
      stopReason: 'tool_use',
      usage: { inputTokens: 1, outputTokens: 2 },
    }
    const { edited, reading } = readAnswer(answer, notingEngine(/secret/))
    expect((edited.output as typeof answer.output).message.content).toEqual([
      { reasoningContent: { reasoningText: { text: '***', signature: '' } } },
      { reasoningContent: { reasoningText: { text: 'plain', signature: 'two' } } },
      { text: '***' },
      { toolUse: { toolUseId: 'secret', name: 'f', input: { signature: '***', n: 1 } } },
    ])
    expect([reading.usage?.output, reading.isError]).toEqual([2, false])
  })

  it('of images are reported as content that cannot be inspected', () => {
    const engine = { ...notingEngine(), found: 0, uninspectable: () => void engine.found++ }
    const image = { image: { format: 'png', source: { bytes: 'AAAA' } } }
    readAnswer({ output: { message: { role: 'assistant', content: [image] } } }, engine)
    expect([engine.found, engine.seen]).toEqual([1, []])
  })

  it('an error in place of an answer is none', () => {
    expect(readAnswer({ message: 'Broken.' }, notingEngine()).reading.isError).toBe(true)
  })
})

function readAnswer(answer: Json, engine: ReturnType<typeof notingEngine>) {
  const body = encoder.encode(JSON.stringify(answer))
  const inspection = new Inspection(engine)
  inspection.begin()
  const context = { inspection, modelId: null, usageRequested: true }
  const reading = drained(converse.readAnswer(body, context))
  const edited = JSON.parse(decoder.decode(joinBytes(applyEdits(body, reading.edits).pieces))) as Json
  return { reading, edited }
}

const numbersIn = (value: string) =>
  [...value.matchAll(/\d{8}/g)].map(({ index }) => ({
    start: index,
    end: index + 8,
    detector: 'number',
    category: 'custom' as const,
    score: 1,
  }))

/** Eight digits are a number; digits at the end may become one. */
const detector: TextDetector = {
  tail: inOneSlice((_context: string, value: string) => {
    const spans = numbersIn(value)
    const rest = value.slice(spans.at(-1)?.end ?? 0)
    return { safe: value.length - (/\d{1,7}$/.exec(rest)?.[0].length ?? 0), spans }
  }),
  rest: inOneSlice((_context: string, value: string) => numbersIn(value)),
  passes: 0,
  actionOf: () => 'redact',
}

/** The events that a stream becomes under the policy; the counts are checked on the way. */
function received(stream: string): ModelEvent[] {
  const detectors = { request: detector, response: detector, tool_arguments: detector, tool_result: detector }
  const vault = new TokenVault(new Uint8Array(32), 'o')
  const inspection = new Inspection(
    new PolicyEngine({ detectors, policyVersion: 'v', kind: 'response', vault }),
  )
  const reader = converse.streamReader({ inspection, modelId: null, usageRequested: true })
  const decoding = new ConverseDecoder()
  const events: ModelEvent[] = []
  const decode = (bytes: Uint8Array) => {
    const { event, data } = parseFrame(bytes)
    for (const each of decoding.frame(event, JSON.parse(decoder.decode(data ?? new Uint8Array())) as Json)) {
      events.push(each)
    }
  }
  let read = 0
  for (const bytes of new SseSplitter().push(encoder.encode(stream))) {
    read += bytes.length
    const verdict = drained(reader.read(parseFrame(bytes)))
    if (verdict.kind !== 'forward') throw new Error(verdict.kind)
    for (const held of verdict.before ?? []) {
      inspection.sink(held.released, held.withheld)
      decode(held.bytes)
    }
    const edited = applyEdits(bytes, verdict.edits)
    inspection.sink(edited.released, edited.withheld)
    decode(joinBytes(edited.pieces))
  }
  expect(drained(reader.closingFrames())).toEqual([])
  const { inspected, uninspected, released, withheld } = inspection.counts
  expect([inspected + uninspected, released + withheld]).toEqual([read, read])
  return joined(events)
}

/** Events with the neighbours of one kind joined, and without those of the frame. */
function joined(events: readonly ModelEvent[]): ModelEvent[] {
  const result: ModelEvent[] = []
  for (const event of events) {
    const last = result[result.length - 1]
    if (event.type === 'start' || event.type === 'usage' || event.type === 'stop') continue
    if (last && last.type === event.type && 'text' in last && 'text' in event) last.text += event.text
    else if (last?.type === 'tool_arguments' && event.type === 'tool_arguments') last.json += event.json
    else result.push({ ...event })
  }
  return result
}

describe('a stream of Converse under a policy', () => {
  const TEXT = 'Über 12345678 and 1234, "87654321"\n😀 11112222 7'
  const EDITED = 'Über [REDACTED:NUMBER] and 1234, "[REDACTED:NUMBER]"\n😀 [REDACTED:NUMBER] 7'
  const JSON_INPUT = JSON.stringify({ card: '12345678', note: 'a"b 87654321', other: [1, true] })
  const EDITED_INPUT = JSON.stringify({
    card: '[REDACTED:NUMBER]',
    note: 'a"b [REDACTED:NUMBER]',
    other: [1, true],
  })

  it('is the same as without cuts, each text in its block, and loses the signature of what was edited', () => {
    const random = new SeededRandom(11)
    for (let round = 0; round < 100; round++) {
      const stops = random.below(2) === 0
      const ending = (block: number): ConverseEvent[] => (stops ? [stop(block)] : [])
      const cut = (value: string, make: (piece: string) => ConverseEvent) => piecesOf(value, random).map(make)
      const stream = [
        begin,
        ...cut(TEXT, (piece) => thought(0, piece)),
        signature(0, 'lost'),
        ...ending(0),
        ...cut('Plain.', (piece) => thought(1, piece)),
        signature(1, 'kept'),
        ...ending(1),
        ...cut(TEXT, (piece) => text(2, piece)),
        ...ending(2),
        callStart(3, 'tooluse_1', 'f'),
        ...cut(JSON_INPUT, (piece) => input(3, piece)),
        ...ending(3),
        ...cut(TEXT, (piece) => text(4, piece)),
        ...ending(4),
        ...end(),
      ]
      const events = received(frames(stream))
      // Signatures wait for the end of their block, which may be missing.
      expect(events.filter(({ type }) => type === 'reasoning_signature')).toEqual([
        { type: 'reasoning_signature', choice: 0, signature: 'kept' },
      ])
      expect(joined(events.filter(({ type }) => type !== 'reasoning_signature'))).toEqual([
        { type: 'reasoning', choice: 0, text: `${EDITED}Plain.` },
        { type: 'text', choice: 0, text: EDITED },
        { type: 'tool_call', choice: 0, call: 0, id: 'tooluse_1', name: 'f' },
        { type: 'tool_arguments', choice: 0, call: 0, json: EDITED_INPUT },
        { type: 'text', choice: 0, text: EDITED },
      ])
    }
  })
})

function piecesOf(value: string, random: SeededRandom): string[] {
  const pieces: string[] = []
  for (let at = 0; at < value.length; ) {
    const length = 1 + random.below(9)
    pieces.push(value.slice(at, at + length))
    at += length
  }
  return pieces
}

describe('the decoder of Converse', () => {
  const decoded = (stream: readonly ConverseEvent[]) => {
    const decoding = new ConverseDecoder()
    return stream.flatMap(([name, payload]) => decoding.frame(name, payload))
  }
  const meaning = (events: readonly ModelEvent[]) => [
    ...joined(events),
    ...events.filter(({ type }) => type === 'stop' || type === 'usage'),
  ]

  it.each(Object.entries(CONVERSE_STREAMS))('reads the same from the whole answer: %s', (_name, stream) => {
    expect(meaning(new ConverseDecoder().answer(wholeOf(stream)))).toEqual(meaning(decoded(stream)))
  })

  it.each([
    ['end_turn', 'end'],
    ['tool_use', 'tool_calls'],
    ['max_tokens', 'length'],
    ['stop_sequence', 'stop_sequence'],
    ['model_context_window_exceeded', 'context_window'],
    ['guardrail_intervened', 'refusal'],
    ['content_filtered', 'refusal'],
    ['a_reason_of_tomorrow', 'end'],
  ])('takes %s for %s', (stopReason, reason) => {
    expect(decoded([begin, text(0, 'Hi'), ...end(stopReason)])).toContainEqual(
      expect.objectContaining({ type: 'stop', reason }),
    )
  })

  it('ends a turn of calls as one, whatever reason the model gives, and gives an empty call an object', () => {
    const events = decoded(CONVERSE_STREAMS.toolWithoutArguments ?? [])
    expect(events).toContainEqual({ type: 'tool_arguments', choice: 0, call: 0, json: '{}' })
    expect(events).toContainEqual(expect.objectContaining({ type: 'stop', reason: 'tool_calls' }))
  })

  it('holds a signature to the end of its block, because a later one replaces it', () => {
    const events = decoded([begin, thought(0, 'Hm'), signature(0, 'a'), signature(0, 'b'), ...end()])
    expect(events.filter(({ type }) => type === 'reasoning_signature')).toEqual([
      { type: 'reasoning_signature', choice: 0, signature: 'b' },
    ])
  })

  it('takes texts with sources for texts', () => {
    const content = [{ citationsContent: { content: [{ text: 'A' }, { text: 'B' }], citations: [] } }]
    const events = new ConverseDecoder().answer({ output: { message: { content } }, stopReason: 'end_turn' })
    expect(joined(events)).toEqual([{ type: 'text', choice: 0, text: 'AB' }])
  })
})
