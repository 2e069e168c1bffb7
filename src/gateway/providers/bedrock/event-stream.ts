import { crc32 } from 'node:zlib'
import { GrowingBytes } from '../../../lib/growing-bytes.ts'
import {
  encodeFrame,
  type FrameReader,
  FrameTooLongError,
  FramingError,
  MAXIMUM_FRAME_BYTES,
  parseFrame,
  type SseFrame,
} from '../../../lib/sse.ts'
import { objectIn, textOf } from '../../protocols/json.ts'
import { exceptionEvent } from './exceptions.ts'

// https://docs.aws.amazon.com/lexv2/latest/dg/event-stream-encoding.html: big-endian; total length, length of the headers
// and CRC32 of both; headers; payload; CRC32 of all before.

const PRELUDE_BYTES = 12
const CHECKSUM_BYTES = 4
/** Bytes of the values of headers by type; those of type 6 and 7 begin with their length. */
const VALUE_BYTES: readonly number[] = [0, 0, 1, 2, 4, 8, -1, -1, 8, 16]
const TEXT = 7

/** A message of the binary framing. */
interface EventStreamMessage {
  /** Headers with a text as value, such as `:event-type`. */
  headers: Readonly<Record<string, string>>
  payload: Uint8Array
}

/** Reads the binary event streams of AWS as Server-Sent Events, which the readers of protocols take. */
export class EventStreamReader implements FrameReader {
  readonly #pending = new GrowingBytes()
  /** An error that came after whole messages of the same chunk. */
  #error: unknown = null

  get unfinished(): Uint8Array {
    return this.#pending.bytes
  }

  /**
   * @throws FramingError for a message whose checksum is wrong, or that is too long. Messages before it in the chunk are
   * returned, and the next chunk throws: a stream that ends there has no last event, which is an error as well.
   */
  push(chunk: Uint8Array): SseFrame[] {
    if (this.#error !== null) throw this.#error
    const bytes = this.#pending.length === 0 ? chunk : this.#pending.append(chunk)
    const frames: SseFrame[] = []
    let start = 0
    try {
      for (let length = lengthAt(bytes, start); length !== null; length = lengthAt(bytes, start)) {
        frames.push(parseFrame(eventOf(messageIn(bytes.subarray(start, start + length)))))
        start += length
      }
    } catch (error) {
      if (frames.length === 0) throw error
      this.#error = error
    }
    if (start > 0 || this.#pending.length === 0) this.#pending.restart(bytes.subarray(start))
    return frames
  }
}

/** The length of the message at an offset; null while it is not complete. @throws FramingError */
function lengthAt(bytes: Uint8Array, start: number): number | null {
  if (bytes.length - start < PRELUDE_BYTES) return null
  const view = new DataView(bytes.buffer, bytes.byteOffset + start, PRELUDE_BYTES)
  // The length is checked before anything is stored by it.
  if (crc32(bytes.subarray(start, start + 8)) !== view.getUint32(8)) throw damaged()
  const length = view.getUint32(0)
  if (length > MAXIMUM_FRAME_BYTES) throw new FrameTooLongError()
  if (length < PRELUDE_BYTES + view.getUint32(4) + CHECKSUM_BYTES) throw damaged()
  return bytes.length - start < length ? null : length
}

/** @param bytes of one message, whose prelude was checked. @throws FramingError for a wrong checksum. */
function messageIn(bytes: Uint8Array): EventStreamMessage {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const end = bytes.length - CHECKSUM_BYTES
  if (crc32(bytes.subarray(0, end)) !== view.getUint32(end)) throw damaged()
  const payloadStart = PRELUDE_BYTES + view.getUint32(4)
  return {
    headers: headersIn(bytes.subarray(PRELUDE_BYTES, payloadStart)),
    payload: bytes.subarray(payloadStart, end),
  }
}

/** A header: length of its name, name, type, and value. */
function headersIn(bytes: Uint8Array): Record<string, string> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const headers: Record<string, string> = {}
  for (let at = 0; at < bytes.length; ) {
    const nameEnd = at + 1 + (bytes[at] ?? 0)
    const type = bytes[nameEnd]
    const fixed = type === undefined ? undefined : VALUE_BYTES[type]
    if (fixed === undefined || (fixed < 0 && nameEnd + 3 > bytes.length)) throw damaged()
    const start = nameEnd + (fixed < 0 ? 3 : 1)
    const end = start + (fixed < 0 ? view.getUint16(nameEnd + 1) : fixed)
    if (end > bytes.length) throw damaged()
    if (type === TEXT)
      headers[decoder.decode(bytes.subarray(at + 1, nameEnd))] = decoder.decode(bytes.subarray(start, end))
    at = end
  }
  return headers
}

const decoder = new TextDecoder()
const damaged = () => new FramingError('The upstream sent a damaged event.')

/** A frame that holds no event. */
const KEEP_ALIVE = new TextEncoder().encode(': keep-alive\n\n')

/** A message as the bytes of a Server-Sent Event. */
function eventOf({ headers, payload }: EventStreamMessage): Uint8Array {
  const text = decoder.decode(payload)
  if (headers[':message-type'] === 'error') {
    return exceptionEvent(headers[':error-code'] ?? '', headers[':error-message'] ?? '')
  }
  const exception = headers[':exception-type']
  if (exception !== undefined) return exceptionEvent(exception, messageOf(text))
  const event = headers[':event-type'] ?? null
  return event === 'chunk' ? chunkEvent(text) : encodeFrame(event, oneLine(text))
}

function messageOf(text: string): string {
  const { message, Message } = objectIn(text) ?? {}
  return textOf(message) || textOf(Message)
}

/** An event of InvokeModelWithResponseStream: base64 of an event of the model's own protocol, which is named by its type. */
function chunkEvent(payload: string): Uint8Array {
  const text = Buffer.from(textOf(objectIn(payload)?.bytes), 'base64').toString('utf8')
  const event = objectIn(text)
  const type = textOf(event?.type)
  if (event === null || type === '') return KEEP_ALIVE
  if (!Object.hasOwn(event, METRICS)) return encodeFrame(type, oneLine(text))
  const { [METRICS]: _, ...rest } = event
  return encodeFrame(type, rest)
}

/** Of Bedrock alone, in the last event. */
const METRICS = 'amazon-bedrock-invocationMetrics'

/** Line breaks of JSON stand between its tokens alone. */
const oneLine = (text: string): string => text.replace(/[\r\n]/g, ' ')
