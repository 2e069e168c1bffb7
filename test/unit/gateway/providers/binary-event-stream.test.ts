import { describe, expect, it } from 'vitest'
import { Inspection, passAllEngine } from '../../../../src/dlp/inspection.ts'
import { messages } from '../../../../src/gateway/protocols/messages.ts'
import { drained } from '../../../../src/lib/slices.ts'
import { encodeFrame, type FrameReader, parseFrame, type SseFrame } from '../../../../src/lib/sse.ts'

/** The framing of a provider that streams in binary messages: a length of four bytes, then one event as JSON. */
class BinaryMessages implements FrameReader {
  /** None: only Server-Sent Events are passed to callers unread. */
  readonly unfinished = new Uint8Array(0)
  #pending: Buffer = Buffer.alloc(0)

  push(chunk: Uint8Array): SseFrame[] {
    this.#pending = Buffer.concat([this.#pending, chunk])
    const frames: SseFrame[] = []
    while (this.#pending.length >= 4 && this.#pending.length >= 4 + this.#pending.readUInt32BE()) {
      const end = 4 + this.#pending.readUInt32BE()
      const event = JSON.parse(this.#pending.subarray(4, end).toString()) as { type: string }
      frames.push(parseFrame(encodeFrame(event.type, event)))
      this.#pending = this.#pending.subarray(end)
    }
    return frames
  }
}

function binary(event: unknown): Uint8Array {
  const body = Buffer.from(JSON.stringify(event))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(body.length)
  return Buffer.concat([length, body])
}

const EVENTS = [
  {
    type: 'message_start',
    message: { id: 'm', role: 'assistant', usage: { input_tokens: 9, output_tokens: 1 } },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Grüße' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 4 } },
  { type: 'message_stop' },
]
const readerOf = () =>
  messages.streamReader({ inspection: new Inspection(passAllEngine), modelId: null, usageRequested: true })

describe('a binary event stream', () => {
  it('is read like Server-Sent Events by the protocol that it carries, in chunks of any length', () => {
    const stream = Buffer.concat(EVENTS.map(binary))
    for (const size of [1, 7, 64, stream.length]) {
      const frames = new BinaryMessages()
      const reader = readerOf()
      const told: string[] = []
      for (let at = 0; at < stream.length; at += size) {
        for (const frame of frames.push(stream.subarray(at, at + size))) {
          expect(drained(reader.read(frame)).kind).toBe('forward')
          told.push(Buffer.from(frame.bytes).toString())
        }
      }
      expect(told).toEqual(EVENTS.map((event) => Buffer.from(encodeFrame(event.type, event)).toString()))
      expect(reader.ended).toBe(true)
      expect(reader.usage()).toMatchObject({ usage: { input: 9, output: 4 }, final: true })
    }
  })

  it('fails with the exceptions of its provider', () => {
    const error = { type: 'error', error: { type: 'throttlingException', message: 'too many' } }
    const [frame] = new BinaryMessages().push(binary(error))
    if (!frame) throw new Error('no frame')
    expect(drained(readerOf().read(frame))).toMatchObject({ kind: 'failure', message: 'too many' })
  })
})
