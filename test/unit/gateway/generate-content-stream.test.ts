import { describe, expect, it } from 'vitest'
import { Inspection } from '../../../src/dlp/inspection.ts'
import { TokenVault } from '../../../src/dlp/policy/actions.ts'
import { PolicyEngine } from '../../../src/dlp/policy/policy-engine.ts'
import type { TextDetector } from '../../../src/dlp/stream/text-stream.ts'
import { generateContent } from '../../../src/gateway/protocols/generate-content.ts'
import { applyEdits, joinBytes } from '../../../src/lib/byte-edits.ts'
import { drained } from '../../../src/lib/slices.ts'
import { parseFrame, SseSplitter } from '../../../src/lib/sse.ts'
import { inOneSlice } from '../dlp/finding.ts'
import { SeededRandom } from '../lib/seeded-random.ts'
import { chunks, notingEngine, readStream } from './stream-reading.ts'
import {
  chunk,
  functionCall,
  GENERATE_CONTENT_STREAMS,
  last,
  text,
  thought,
} from './translation/fixtures/generate-content-streams.ts'

type Json = Record<string, unknown>
const encoder = new TextEncoder()
const decoder = new TextDecoder()

describe('a stream of generateContent', () => {
  it.each(Object.entries(GENERATE_CONTENT_STREAMS))(
    'passes, and ends with its last chunk: %s',
    (_name, stream) => {
      const source = chunks(...stream)
      const { text: read, reader } = readStream(generateContent, source)
      expect(read).toBe(source)
      expect(reader.ended).toBe(true)
      expect(reader.usage()?.final).toBe(true)
      expect(reader.passesUnread).toBe(false)
      expect(drained(reader.closingFrames())).toEqual([])
    },
  )

  it('that was cut off has not ended', () => {
    const { reader } = readStream(generateContent, chunks(chunk([text('Hel')])))
    expect(reader.ended).toBe(false)
    expect(reader.usage()).toMatchObject({ final: false, usage: { input: 20 } })
    expect(drained(reader.closingFrames())).toBeNull()
  })

  it('waits for usage that its last chunk does not have', () => {
    const { usageMetadata: _usage, ...withoutUsage } = last()
    const { reader } = readStream(generateContent, chunks(withoutUsage))
    expect([reader.ended, reader.usagePending]).toEqual([false, true])
    expect(drained(reader.closingFrames())).toEqual([])
  })

  it('takes the last usage, with thoughts as output', () => {
    const { reader } = readStream(generateContent, chunks(...(GENERATE_CONTENT_STREAMS.thinking ?? [])))
    expect(reader.usage()?.usage).toEqual({
      input: 15,
      cacheRead: 5,
      cacheWrite5Minutes: 0,
      cacheWrite1Hour: 0,
      output: 37,
      reasoning: 30,
    })
    expect(reader.reasoned).toBe(true)
    expect(reader.textBytes).toBe('**So.** Then.Yes'.length)
  })

  it('fails with an error in it', () => {
    const error = { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' }
    const { verdicts } = readStream(generateContent, chunks(chunk([text('Hel')]), { error }))
    expect(verdicts[1]).toEqual({
      kind: 'failure',
      message: 'The model is overloaded.',
      forward: null,
      body: { error },
      isOverload: true,
    })
  })

  it.each(['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS', 'MALFORMED_RESPONSE'])(
    'fails with %s, which is no empty answer',
    (reason) => {
      const { verdicts, reader } = readStream(
        generateContent,
        chunks(last(reason, null, { finishMessage: 'print(1)' })),
      )
      const message = `The model's answer ended with ${reason}: print(1)`
      expect(verdicts).toEqual([{ kind: 'failure', message, forward: null }])
      // The upstream charges for it.
      expect(reader.usage()).toMatchObject({ final: true, usage: { output: 37 } })
    },
  )

  it('fails with a frame that is not JSON', () => {
    expect(readStream(generateContent, 'data: {"candidates":[\n\n').verdicts).toMatchObject([
      { kind: 'failure' },
    ])
  })
})

describe('texts of generateContent', () => {
  it('are all inspected but the words of the vendor', () => {
    const engine = notingEngine()
    const source = chunks(
      chunk([
        thought('think'),
        text('say'),
        functionCall('f', { 'a b': 'c', n: 123 }, { id: 'f1', signature: 'sig' }),
      ]),
      { ...last('STOP', null, { finishMessage: 'done' }), a_member_of_tomorrow: 'new' },
    )
    readStream(generateContent, source, { engine })
    expect(engine.seen.map((each) => each.split('=')[1]).sort()).toEqual(
      ['123', 'a b', 'c', 'done', 'f', 'n', 'new', 'say…', 'think…'].sort(),
    )
  })

  it('in an answer are edited, and the signature of what was edited is emptied', () => {
    const body = encoder.encode(
      JSON.stringify(
        last('STOP', [
          functionCall('f', { a: 'secret' }, { signature: 'one' }),
          functionCall('f', { a: 'plain' }, { signature: 'two' }),
          { text: 'a secret', thoughtSignature: 'three' },
        ]),
      ),
    )
    const inspection = new Inspection(notingEngine(/secret/))
    inspection.begin()
    const context = { inspection, modelId: null, usageRequested: true }
    const { edits, usage, isError } = drained(generateContent.readAnswer(body, context))
    const { candidates } = JSON.parse(decoder.decode(joinBytes(applyEdits(body, edits).pieces))) as {
      candidates: Array<{ content: { parts: unknown } }>
    }
    expect(candidates[0]?.content.parts).toEqual([
      { functionCall: { name: 'f', args: { a: '***' } }, thoughtSignature: '' },
      { functionCall: { name: 'f', args: { a: 'plain' } }, thoughtSignature: 'two' },
      { text: '***', thoughtSignature: '' },
    ])
    expect([usage?.output, isError]).toEqual([37, false])
  })

  it('of media are reported as content that cannot be inspected', () => {
    const engine = { ...notingEngine(), found: 0, uninspectable: () => void engine.found++ }
    const image = { inlineData: { mimeType: 'image/png', data: 'AAAA' } }
    readStream(generateContent, chunks(chunk([image])), { engine })
    expect(engine.found).toBe(1)
    expect(engine.seen).toEqual([])
  })
})

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

/** The parts that a caller gets, in their order, with neighbours of one kind joined; the counts are checked on the way. */
function received(stream: string): Array<[kind: string, value: unknown]> {
  const detectors = { request: detector, response: detector, tool_arguments: detector, tool_result: detector }
  const vault = new TokenVault(new Uint8Array(32), 'o')
  const inspection = new Inspection(
    new PolicyEngine({ detectors, policyVersion: 'v', kind: 'response', vault }),
  )
  const reader = generateContent.streamReader({ inspection, modelId: null, usageRequested: true })
  const parts: Array<[kind: string, value: unknown]> = []
  const tell = (bytes: Uint8Array) => {
    const { candidates } = JSON.parse(decoder.decode(parseFrame(bytes).data ?? new Uint8Array())) as {
      candidates: Array<{ content: { parts?: Json[] } }>
    }
    for (const part of candidates.flatMap(({ content }) => content.parts ?? [])) addPart(parts, part)
  }
  let read = 0
  for (const bytes of new SseSplitter().push(encoder.encode(stream))) {
    read += bytes.length
    const verdict = drained(reader.read(parseFrame(bytes)))
    if (verdict.kind !== 'forward') throw new Error(verdict.kind)
    for (const held of verdict.before ?? []) {
      inspection.sink(held.released, held.withheld)
      tell(held.bytes)
    }
    const edited = applyEdits(bytes, verdict.edits)
    inspection.sink(edited.released, edited.withheld)
    tell(joinBytes(edited.pieces))
  }
  expect(drained(reader.closingFrames())).toEqual([])
  const { inspected, uninspected, released, withheld } = inspection.counts
  expect([inspected + uninspected, released + withheld]).toEqual([read, read])
  return parts
}

function addPart(parts: Array<[kind: string, value: unknown]>, part: Json): void {
  if (part.functionCall) parts.push(['call', (part.functionCall as Json).args])
  const kind = part.thought === true ? 'thought' : 'text'
  const before = parts[parts.length - 1]
  if (typeof part.text !== 'string') return
  if (before?.[0] === kind) before[1] = `${before[1]}${part.text}`
  else if (part.text !== '') parts.push([kind, part.text])
  if (part.thoughtSignature) parts.push(['signature', part.thoughtSignature])
}

describe('a stream of generateContent under a policy', () => {
  const TEXT = 'Über 12345678 and 1234, "87654321"\n😀 11112222 7'
  const EDITED = 'Über [REDACTED:NUMBER] and 1234, "[REDACTED:NUMBER]"\n😀 [REDACTED:NUMBER] 7'
  const ARGS = { card: '12345678', amount: 11112222, note: 'a"b 87654321', other: [1, true] }
  const EDITED_ARGS = {
    card: '[REDACTED:NUMBER]',
    amount: '[REDACTED:NUMBER]',
    note: 'a"b [REDACTED:NUMBER]',
    other: [1, true],
  }

  it('tells every text as a whole answer would, in its place, however it is cut', () => {
    const random = new SeededRandom(11)
    for (let round = 0; round < 100; round++) {
      const cut = (make: (piece: string) => Json) => piecesOf(TEXT, random).map(make)
      const parts = [
        ...cut(thought),
        ...cut(text),
        functionCall('f', ARGS),
        ...cut(text),
        { text: '', thoughtSignature: 'sig' },
        ...cut(thought),
      ]
      const stream: Json[] = []
      while (parts.length > 0) stream.push(chunk(parts.splice(0, 1 + random.below(4))))
      const ending = random.below(2) === 0 ? last() : last('STOP', [text('')])
      const expected = [
        ['thought', EDITED],
        ['text', EDITED],
        ['call', EDITED_ARGS],
        ['text', EDITED],
        ['signature', 'sig'],
        ['thought', EDITED],
      ]
      expect(received(chunks(...stream, ending))).toEqual(expected)
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
