import { crc32 } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { messages } from '../../../../src/gateway/protocols/messages.ts'
import { Inspection, passAllEngine } from '../../../../src/governance/dlp/inspection.ts'
import { type EventMessage, EventMessageSplitter } from '../../../../src/lib/event-messages.ts'
import { encodeFrame, type FrameReader, parseFrame, type SseFrame } from '../../../../src/lib/sse.ts'

/**
 * A provider that streams in binary messages, such as Amazon Bedrock with the messages protocol: each message carries one
 * event in base64 (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ResponseStream.html).
 */
class EnvelopedEvents implements FrameReader {
  /** None: only Server-Sent Events leave before they are read. */
  readonly unfinished = new Uint8Array(0)
  readonly #messages = new EventMessageSplitter()

  push(chunk: Uint8Array): SseFrame[] {
    return this.#messages.push(chunk).map((message) => parseFrame(frameOf(message)))
  }
}

function frameOf({ headers, payload }: EventMessage): Uint8Array {
  const body = JSON.parse(Buffer.from(payload).toString()) as { bytes?: string; message?: string }
  if (headers.get(':message-type') !== 'event') {
    const type = String(headers.get(':exception-type'))
    return encodeFrame('error', { type: 'error', error: { type, message: body.message } })
  }
  const event = JSON.parse(Buffer.from(body.bytes ?? '', 'base64').toString()) as { type: string }
  return encodeFrame(event.type, event)
}

function binary(headers: Record<string, string>, payload: unknown): Uint8Array {
  const written = Object.entries(headers).map(([name, value]) => {
    const lengths = Buffer.alloc(3)
    lengths.writeUInt8(7)
    lengths.writeUInt16BE(value.length, 1)
    return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), lengths, Buffer.from(value)])
  })
  const [fields, body] = [Buffer.concat(written), Buffer.from(JSON.stringify(payload))]
  const bytes = Buffer.alloc(16 + fields.length + body.length)
  bytes.writeUInt32BE(bytes.length)
  bytes.writeUInt32BE(fields.length, 4)
  bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8)
  Buffer.concat([fields, body]).copy(bytes, 12)
  bytes.writeUInt32BE(crc32(bytes.subarray(0, -4)), bytes.length - 4)
  return bytes
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
const enveloped = (event: unknown) =>
  binary(
    { ':message-type': 'event', ':event-type': 'chunk' },
    { bytes: Buffer.from(JSON.stringify(event)).toString('base64') },
  )
const readerOf = () =>
  messages.streamReader({ inspection: new Inspection(passAllEngine), modelId: null, usageRequested: true })

describe('a binary event stream', () => {
  it('is read like Server-Sent Events by the protocol that it carries, in chunks of any length', () => {
    const stream = Buffer.concat(EVENTS.map(enveloped))
    for (const size of [1, 7, 64, stream.length]) {
      const frames = new EnvelopedEvents()
      const reader = readerOf()
      const told: string[] = []
      for (let at = 0; at < stream.length; at += size) {
        for (const frame of frames.push(stream.subarray(at, at + size))) {
          expect(reader.read(frame).kind).toBe('forward')
          told.push(Buffer.from(frame.bytes).toString())
        }
      }
      expect(told).toEqual(EVENTS.map((event) => Buffer.from(encodeFrame(event.type, event)).toString()))
      expect(reader.ended).toBe(true)
      expect(reader.usage()).toMatchObject({ usage: { input: 9, output: 4 }, final: true })
    }
  })

  it('tells its exceptions as the failure of the stream', () => {
    const exception = binary(
      { ':message-type': 'exception', ':exception-type': 'throttlingException' },
      { message: 'too many' },
    )
    const [frame] = new EnvelopedEvents().push(exception)
    if (!frame) throw new Error('no frame')
    expect(readerOf().read(frame)).toMatchObject({ kind: 'failure', message: 'too many' })
  })
})
