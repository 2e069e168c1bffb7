import type {
  EventDecoder,
  EventEncoder,
  ModelEvent,
} from '../../../../../src/gateway/translation/model-events.ts'
import { parseFrame, SseSplitter } from '../../../../../src/lib/sse.ts'

type Json = Record<string, unknown>

/** Frames as `{ event, data }`; `[DONE]` stays text. */
export function readFrames(bytes: Uint8Array[]): Array<{ event: string | null; data: unknown }> {
  const splitter = new SseSplitter()
  return bytes
    .flatMap((piece) => splitter.push(piece))
    .map((frame) => {
      const { event, data } = parseFrame(frame)
      const text = new TextDecoder().decode(data ?? new Uint8Array())
      return { event, data: text === '[DONE]' ? text : JSON.parse(text) }
    })
}

/** Payloads of what an encoder writes for the events. */
export const payloads = (encoder: EventEncoder, events: ModelEvent[]): unknown[] =>
  readFrames(events.flatMap((event) => encoder.frames(event))).map(({ data }) => data)

/** Reads payloads as a stream. Payloads of the messages protocol name their event in `type`. */
export const decoded = (decoder: EventDecoder, stream: Json[]): ModelEvent[] =>
  stream.flatMap((data) => decoder.frame(typeof data.type === 'string' ? data.type : null, data))

export const start = (id = 'x-1'): ModelEvent => ({
  type: 'start',
  id,
  model: 'upstream-1',
  createdSeconds: 1_700_000_000,
  usage: null,
})
export const text = (words: string, choice = 0): ModelEvent => ({ type: 'text', choice, text: words })
export const reasoning = (words: string, choice = 0): ModelEvent => ({
  type: 'reasoning',
  choice,
  text: words,
})
export const signature = (proof: string): ModelEvent => ({
  type: 'reasoning_signature',
  choice: 0,
  signature: proof,
})
export const refusal = (words: string): ModelEvent => ({ type: 'refusal', choice: 0, text: words })
export const call = (number: number, name: string, id = `call_${number}`): ModelEvent => ({
  type: 'tool_call',
  choice: 0,
  call: number,
  id,
  name,
})
export const args = (number: number, json: string): ModelEvent => ({
  type: 'tool_arguments',
  choice: 0,
  call: number,
  json,
})
export const stop = (
  reason: Extract<ModelEvent, { type: 'stop' }>['reason'],
  more: { choice?: number; stopSequence?: string; explanation?: string } = {},
): ModelEvent => ({
  type: 'stop',
  choice: more.choice ?? 0,
  reason,
  stopSequence: more.stopSequence ?? null,
  explanation: more.explanation ?? null,
})
export const end: ModelEvent = { type: 'end' }
