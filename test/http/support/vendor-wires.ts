import { encoded } from '../../../scripts/local/model-upstream/vendors/bedrock/binary-events.ts'
import type { ScriptStep } from '../../harness/upstream.ts'
import { framesOf, say, wholeOf } from './dlp-answers.ts'
import { payloadsOf } from './translated-pairs.ts'
import type { Vendor } from './vendor-kinds.ts'

// Answers in the wires of vendors, byte for byte, for scripts that are played as they are written.

type Json = Record<string, unknown>

const JSON_TYPE = { 'content-type': 'application/json' }
const EVENT_STREAM = { 'content-type': 'text/event-stream' }
const AWS_STREAM = { 'content-type': 'application/vnd.amazon.eventstream' }

const sse = (data: unknown) => `data: ${JSON.stringify(data)}\r\n\r\n`
const geminiUsage = { promptTokenCount: 3, candidatesTokenCount: 5, totalTokenCount: 8 }
const candidate = (text: string, finishReason?: string) => ({
  candidates: [
    { content: { role: 'model', parts: [{ text }] }, index: 0, ...(finishReason && { finishReason }) },
  ],
})
const converseUsage = { inputTokens: 3, outputTokens: 5, totalTokens: 8 }

/** A whole answer with a text; its usage is 3 tokens of input and 5 of output. */
export function wholeAnswer({ wire }: Vendor, text: string): ScriptStep[] {
  const bodies: Record<Vendor['wire'], () => Json> = {
    chat: () => wholeOf('chat', [say(text)]),
    messages: () => wholeOf('messages', [say(text)]),
    gemini: () => ({ ...candidate(text, 'STOP'), usageMetadata: geminiUsage }),
    converse: () => ({
      output: { message: { role: 'assistant', content: [{ text }] } },
      stopReason: 'end_turn',
      usage: converseUsage,
    }),
  }
  return [{ status: 200, headers: JSON_TYPE, body: JSON.stringify(bodies[wire]()) }]
}

/** A streamed answer with the same text and usage. */
export function streamedAnswer(vendor: Vendor, text: string): ScriptStep[] {
  return playing(vendor, [...opening(vendor, text), ...ending(vendor)])
}

/** A stream that begins with a text, and ends with an error of the vendor. */
export function failingStream(vendor: Vendor, text: string, message: string): ScriptStep[] {
  return playing(vendor, [...opening(vendor, text), failureOf(vendor, message)])
}

/** A stream that begins with a text and is cut off. */
export function cutStream(vendor: Vendor, text: string): ScriptStep[] {
  return [...playing(vendor, opening(vendor, text)).slice(0, -1), { destroy: true }]
}

const isBinary = ({ kind }: Vendor): boolean => kind === 'bedrock'

function playing(vendor: Vendor, frames: ReadonlyArray<string | Uint8Array>): ScriptStep[] {
  const chunks = frames.map((frame) => ({ chunkBase64: Buffer.from(frame).toString('base64') }))
  return [{ status: 200, headers: isBinary(vendor) ? AWS_STREAM : EVENT_STREAM }, ...chunks, { end: true }]
}

/** Events of messages as Bedrock frames them. */
const framed = (vendor: Vendor, events: readonly string[]): Array<string | Uint8Array> =>
  isBinary(vendor) ? payloadsOf(events.join('')).map(chunkOf) : [...events]

const chunkOf = (event: Json): Uint8Array =>
  encoded('event', 'chunk', { bytes: Buffer.from(JSON.stringify(event)).toString('base64'), p: 'abc' })

function opening(vendor: Vendor, text: string): Array<string | Uint8Array> {
  const { wire } = vendor
  if (wire === 'gemini') return [sse(candidate(text))]
  if (wire === 'converse') {
    return [
      encoded('event', 'messageStart', { role: 'assistant' }),
      encoded('event', 'contentBlockDelta', { contentBlockIndex: 0, delta: { text } }),
    ]
  }
  const whole = framesOf(wire, [say(text)], [text.length], false)
  return framed(vendor, whole)
}

function ending(vendor: Vendor): Array<string | Uint8Array> {
  const { wire } = vendor
  if (wire === 'gemini') return [sse({ ...candidate('', 'STOP'), usageMetadata: geminiUsage })]
  if (wire === 'converse') {
    return [
      encoded('event', 'contentBlockStop', { contentBlockIndex: 0 }),
      encoded('event', 'messageStop', { stopReason: 'end_turn' }),
      encoded('event', 'metadata', { usage: converseUsage, metrics: { latencyMs: 1 } }),
    ]
  }
  const text = 'x'
  const begun = framesOf(wire, [say(text)], [1], false)
  return framed(vendor, framesOf(wire, [say(text)], [1]).slice(begun.length))
}

function failureOf(vendor: Vendor, message: string): string | Uint8Array {
  if (isBinary(vendor)) return encoded('exception', 'modelStreamErrorException', { message })
  if (vendor.wire === 'gemini') return sse({ error: { code: 503, message, status: 'UNAVAILABLE' } })
  if (vendor.wire === 'chat') return sse({ error: { message, type: 'server_error', code: 'x' } })
  const error = { type: 'api_error', message }
  return `event: error\n${sse({ type: 'error', error })}`
}

/** The body of an error in the form of the vendor. */
export function errorBody({ kind }: Vendor, status: number, message: string): string {
  if (kind === 'bedrock') return JSON.stringify(status === 403 ? { Message: message } : { message })
  if (kind === 'vertex' || kind === 'gemini') {
    return JSON.stringify({ error: { code: status, message, status: 'UNKNOWN' } })
  }
  if (kind === 'mistral') return JSON.stringify({ object: 'error', message: { detail: message }, code: 1 })
  return JSON.stringify({ error: { code: String(status), message } })
}
