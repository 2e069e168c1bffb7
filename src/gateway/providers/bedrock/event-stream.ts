import { crc32 } from 'node:zlib'
import { GrowingBytes } from '../../../lib/growing-bytes.ts'
import {
  encodeFrame,
  type FrameReader,
  FrameTooLongError,
  FramingError,
  frameOf,
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
  readonly #headers = new HeaderReader()
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
        frames.push(eventOf(messageIn(bytes.subarray(start, start + length), this.#headers)))
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
function messageIn(bytes: Uint8Array, headers: HeaderReader): EventStreamMessage {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const end = bytes.length - CHECKSUM_BYTES
  if (crc32(bytes.subarray(0, end)) !== view.getUint32(end)) throw damaged()
  const payloadStart = PRELUDE_BYTES + view.getUint32(4)
  return {
    headers: headers.read(bytes.subarray(PRELUDE_BYTES, payloadStart)),
    payload: bytes.subarray(payloadStart, end),
  }
}

/** Reads the headers of messages. Nearly all of a stream have the same ones, which are decoded once. */
class HeaderReader {
  #bytes = new Uint8Array()
  #headers: Record<string, string> = {}

  read(bytes: Uint8Array): Readonly<Record<string, string>> {
    if (!equalBytes(bytes, this.#bytes)) {
      this.#headers = headersIn(bytes)
      this.#bytes = bytes.slice()
    }
    return this.#headers
  }
}

/** A loop, because these are short. */
function equalBytes(left: Uint8Array, right: Uint8Array): boolean {
  if (left.length !== right.length) return false
  for (let at = 0; at < left.length; at++) if (left[at] !== right[at]) return false
  return true
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

/** A message as a Server-Sent Event. */
function eventOf({ headers, payload }: EventStreamMessage): SseFrame {
  const text = decoder.decode(payload)
  const event = headers[':event-type']
  if (event === 'chunk') return chunkEvent(text)
  if (headers[':message-type'] === 'error') {
    return parseFrame(exceptionEvent(headers[':error-code'] ?? '', headers[':error-message'] ?? ''))
  }
  const exception = headers[':exception-type']
  if (exception !== undefined) return parseFrame(exceptionEvent(exception, messageOf(text)))
  return parseFrame(encodeFrame(event ?? null, oneLine(text)))
}

function messageOf(text: string): string {
  const { message, Message } = objectIn(text) ?? {}
  return textOf(message) || textOf(Message)
}

/** The beginning of an event as Claude's platforms write it, whose type is read without parsing all of it. */
const PLAIN_EVENT = /^\{"type":"([a-z_]+)"[^\r\n]*$/

/** An event of InvokeModelWithResponseStream: base64 of an event of the model's own protocol, which is named by its type. */
function chunkEvent(payload: string): SseFrame {
  const text = Buffer.from(textOf(objectIn(payload)?.bytes), 'base64').toString('utf8')
  const plain = text.includes(METRICS) ? null : PLAIN_EVENT.exec(text)
  if (plain?.[1] !== undefined) return frameOf(plain[1], text)
  const event = objectIn(text)
  const type = textOf(event?.type)
  if (event === null || type === '') return parseFrame(KEEP_ALIVE)
  const { [METRICS]: _, ...rest } = event
  return parseFrame(encodeFrame(oneLine(type), Object.hasOwn(event, METRICS) ? rest : oneLine(text)))
}

/** Of Bedrock alone, in the last event. */
const METRICS = 'amazon-bedrock-invocationMetrics'

/** Line breaks of JSON stand between its tokens alone. */
const oneLine = (text: string): string => text.replace(/[\r\n]/g, ' ')
