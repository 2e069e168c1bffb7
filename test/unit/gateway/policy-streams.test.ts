import { describe, expect, it } from 'vitest'
import { Inspection } from '../../../src/dlp/inspection.ts'
import { TokenVault } from '../../../src/dlp/policy/actions.ts'
import { PolicyEngine } from '../../../src/dlp/policy/policy-engine.ts'
import type { TextDetector } from '../../../src/dlp/stream/text-stream.ts'
import type { Action, Finding } from '../../../src/dlp/types.ts'
import { chatCompletions } from '../../../src/gateway/protocols/chat-completions.ts'
import { messages } from '../../../src/gateway/protocols/messages.ts'
import type { Protocol } from '../../../src/gateway/protocols/protocol.ts'
import { ApiError } from '../../../src/lib/api-error.ts'
import { applyEdits, joinBytes } from '../../../src/lib/byte-edits.ts'
import { drained } from '../../../src/lib/slices.ts'
import { parseFrame, SseSplitter } from '../../../src/lib/sse.ts'
import { inOneSlice } from '../dlp/finding.ts'
import { SeededRandom } from '../lib/seeded-random.ts'
import { chunks, events } from './stream-reading.ts'

const numbersIn = (text: string): Finding[] =>
  [...text.matchAll(/\d{8}/g)].map(({ index }) => ({
    start: index,
    end: index + 8,
    detector: 'number',
    category: 'custom',
    score: 1,
  }))

/** Eight digits are a number; digits at the end may become one. */
const detecting = (action: Action): TextDetector => ({
  tail: inOneSlice((_context: string, text: string) => {
    const spans = numbersIn(text)
    const rest = text.slice(spans.at(-1)?.end ?? 0)
    const safe = text.length - (/\d{1,7}$/.exec(rest)?.[0].length ?? 0)
    return { safe, spans }
  }),
  rest: inOneSlice((_context: string, text: string) => numbersIn(text)),
  passes: 0,
  actionOf: () => action,
})

function inspectionWith(action: Action): Inspection {
  const detector = detecting(action)
  const detectors = { request: detector, response: detector, tool_arguments: detector, tool_result: detector }
  const vault = new TokenVault(new Uint8Array(32), 'o')
  return new Inspection(new PolicyEngine({ detectors, policyVersion: 'v', kind: 'response', vault }))
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** Payloads that a caller gets, as the relay sends them; the counts are checked on the way. */
function received(protocol: Protocol, stream: string, action: Action = 'redact') {
  const inspection = inspectionWith(action)
  const reader = protocol.streamReader({ inspection, modelId: null, usageRequested: true })
  const payloads: Array<Record<string, never>> = []
  let read = 0
  const tell = (bytes: Uint8Array) => {
    const { data } = parseFrame(bytes)
    const text = data ? decoder.decode(data) : ''
    if (text.startsWith('{')) payloads.push(JSON.parse(text))
  }
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
  for (const held of drained(reader.closingFrames()) ?? []) inspection.sink(held.released, held.withheld)
  const { inspected, uninspected, released, withheld } = inspection.counts
  expect(inspected + uninspected).toBe(read)
  expect(released + withheld).toBe(read)
  const findings: Record<string, number> = {}
  for (const { findings: found } of inspection.engine.findings()) {
    for (const [name, count] of Object.entries(found)) findings[name] = (findings[name] ?? 0) + count
  }
  return { payloads, findings }
}

const random = new SeededRandom(7)

/** A text in pieces of any length. */
function pieces(text: string): string[] {
  const parts: string[] = []
  for (let at = 0; at < text.length; ) {
    const length = 1 + random.below(6)
    parts.push(text.slice(at, at + length))
    at += length
  }
  return parts
}

const TEXT = 'Über 12345678 and 1234, "87654321"\n😀 11112222 7'
const EDITED = 'Über [REDACTED:NUMBER] and 1234, "[REDACTED:NUMBER]"\n😀 [REDACTED:NUMBER] 7'
const ARGUMENTS = JSON.stringify({
  card: '12345678',
  amount: 11112222,
  note: 'a"b 87654321',
  other: [1, true],
})
const EDITED_ARGUMENTS = {
  card: '[REDACTED:NUMBER]',
  amount: '[REDACTED:NUMBER]',
  note: 'a"b [REDACTED:NUMBER]',
  other: [1, true],
}

describe('a chat stream under a policy', () => {
  const delta = (index: number, part: object) => ({ id: 'c', model: 'm', choices: [{ index, delta: part }] })

  it('tells every text as a whole answer would, however it is cut', () => {
    for (let round = 0; round < 100; round++) {
      const contents = [pieces(TEXT), pieces(`${TEXT} x`)]
      const calls = [pieces(ARGUMENTS), pieces(ARGUMENTS)]
      const frames: object[] = []
      while ([...contents, ...calls].some((left) => left.length > 0)) {
        const pick = random.below(4)
        const part = [...contents, ...calls][pick]?.shift()
        if (part === undefined) continue
        if (pick < 2) frames.push(delta(pick, { content: part }))
        else frames.push(delta(0, { tool_calls: [{ function: { arguments: part }, index: pick - 2 }] }))
      }
      for (const index of [1, 0])
        frames.push({ choices: [{ index, delta: {}, finish_reason: 'stop' }], id: 'c' })
      const { payloads, findings } = received(chatCompletions, chunks(...frames, '[DONE]'))
      const told: Record<string, string> = {}
      for (const choice of payloads.flatMap((payload) => payload.choices ?? []) as never[]) {
        const { index, delta: part } = choice as { index: number; delta: Record<string, never> }
        if (part.content) told[index] = (told[index] ?? '') + part.content
        for (const call of (part.tool_calls ?? []) as Array<{
          index: number
          function: { arguments: string }
        }>) {
          told[`call ${call.index}`] = (told[`call ${call.index}`] ?? '') + call.function.arguments
        }
      }
      expect(told[0]).toBe(EDITED)
      expect(told[1]).toBe(`${EDITED} x`)
      expect(JSON.parse(told['call 0'] ?? '')).toEqual(EDITED_ARGUMENTS)
      expect(JSON.parse(told['call 1'] ?? '')).toEqual(EDITED_ARGUMENTS)
      expect(findings).toEqual({ number: 12 })
    }
  })

  it('tells the rest of a text in the frame that ends it', () => {
    const stream = chunks(
      { choices: [{ index: 0, delta: { content: '1234' } }] },
      { choices: [{ index: 0, delta: { content: '56' }, finish_reason: 'stop' }] },
      '[DONE]',
    )
    const { payloads } = received(chatCompletions, stream)
    expect(payloads.map((payload) => (payload.choices as unknown as object[])[0])).toEqual([
      { index: 0, delta: { content: '' } },
      { index: 0, delta: { content: '123456' }, finish_reason: 'stop' },
    ])
  })

  it('leaves log probabilities out, which repeat the text', () => {
    const logprobs = { content: [{ token: '12345678', bytes: [49], logprob: 0, top_logprobs: [] }] }
    const { payloads } = received(
      chatCompletions,
      chunks({ choices: [{ index: 0, delta: { content: 'a' }, logprobs, finish_reason: 'stop' }] }, '[DONE]'),
    )
    expect(payloads[0]).toEqual({
      choices: [{ index: 0, delta: { content: 'a' }, logprobs: null, finish_reason: 'stop' }],
    })
  })

  it('ends at what is blocked, and shows nothing of it', () => {
    const stream = chunks(
      { choices: [{ index: 0, delta: { content: 'so 123' } }] },
      { choices: [{ index: 0, delta: { content: '45678 there' } }] },
    )
    expect(() => received(chatCompletions, stream, 'block')).toThrow(ApiError)
  })
})

describe('a messages stream under a policy', () => {
  const delta = (index: number, part: object) => ({ type: 'content_block_delta', index, delta: part })
  const stop = (index: number) => ({ type: 'content_block_stop', index })

  it('tells every text as a whole answer would, however it is cut', () => {
    for (let round = 0; round < 100; round++) {
      const stream = events(
        ...pieces(TEXT).map((thinking) => delta(0, { type: 'thinking_delta', thinking })),
        delta(0, { type: 'signature_delta', signature: 'proof' }),
        stop(0),
        ...pieces(TEXT).map((text) => delta(1, { text, type: 'text_delta' })),
        stop(1),
        ...pieces(ARGUMENTS).map((partial_json) => delta(2, { type: 'input_json_delta', partial_json })),
        stop(2),
        { type: 'message_stop' },
      )
      const { payloads } = received(messages, stream)
      const told = ['', '', '']
      let open = 0
      for (const payload of payloads as unknown as Array<
        ReturnType<typeof delta> & { delta: Record<string, string> }
      >) {
        if (payload.type === 'content_block_stop') open++
        if (payload.type !== 'content_block_delta') continue
        expect(payload.index).toBe(open)
        const { text, thinking, partial_json, signature } = payload.delta
        told[payload.index] += text ?? thinking ?? partial_json ?? ''
        // The signed text differs from the released one.
        if (signature !== undefined) expect(signature).toBe('')
      }
      expect(told.slice(0, 2)).toEqual([EDITED, EDITED])
      expect(JSON.parse(told[2] ?? '')).toEqual(EDITED_ARGUMENTS)
    }
  })

  it('passes byte for byte where nothing is found or held', () => {
    const stream = events(
      delta(0, { type: 'thinking_delta', thinking: 'hm' }),
      delta(0, { type: 'signature_delta', signature: 'proof' }),
      stop(0),
      { type: 'message_stop' },
    )
    const { payloads } = received(messages, stream)
    expect(payloads[1]).toEqual(delta(0, { type: 'signature_delta', signature: 'proof' }))
  })
})
