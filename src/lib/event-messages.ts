import { isUtf8 } from 'node:buffer'
import { crc32 } from 'node:zlib'
import { GrowingBytes } from './growing-bytes.ts'

/**
 * Messages of binary event streams (`application/vnd.amazon.eventstream`,
 * https://smithy.io/2.0/aws/amazon-eventstream.html), which AWS services answer with in place of Server-Sent Events.
 *
 * A message is a prelude of three 32-bit numbers (length of the whole, length of the headers, checksum of both), headers,
 * a payload, and a checksum of all before it. Numbers are big-endian, checksums CRC-32.
 */
export interface EventMessage {
  headers: ReadonlyMap<string, HeaderValue>
  payload: Uint8Array
}

/** Timestamps are milliseconds since the epoch, UUIDs 32 digits in lowercase hex. */
export type HeaderValue = boolean | number | bigint | string | Uint8Array

/** Bytes that are not a message, or were altered on the way: nothing after them can be read. */
export class EventMessageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'EventMessageError'
  }
}

const PRELUDE_BYTES = 12
const CHECKSUM_BYTES = 4
/** Limits of the format. They also bound what an unfinished message takes. */
const LONGEST_HEADERS = 128 * 1024
const LONGEST_PAYLOAD = 24 * 1024 * 1024
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })

/** Cuts a byte stream into messages, whatever its chunks. */
export class EventMessageSplitter {
  readonly #pending = new GrowingBytes()

  /**
   * Takes a chunk.
   * @returns the messages that it completes. They do not share memory with what comes later.
   * @throws EventMessageError; the stream is of no use then.
   */
  push(chunk: Uint8Array): EventMessage[] {
    const bytes = this.#pending.length === 0 ? chunk : this.#pending.append(chunk)
    const messages: EventMessage[] = []
    let start = 0
    for (let length = lengthAt(bytes, start); length !== null; length = lengthAt(bytes, start)) {
      if (start + length > bytes.length) break
      messages.push(readMessage(bytes.subarray(start, start + length)))
      start += length
    }
    if (start > 0 || this.#pending.length === 0) this.#pending.restart(bytes.subarray(start))
    return messages
  }

  /** Whether the bytes so far end within a message. */
  get unfinished(): boolean {
    return this.#pending.length > 0
  }
}

const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** The length of the message that begins here, from a prelude that was checked; null before all of it has come. */
function lengthAt(bytes: Uint8Array, start: number): number | null {
  if (bytes.length - start < PRELUDE_BYTES) return null
  const view = viewOf(bytes)
  if (crc32(bytes.subarray(start, start + 8)) !== view.getUint32(start + 8)) {
    throw new EventMessageError('the checksum of a prelude is wrong')
  }
  const length = view.getUint32(start)
  const headers = view.getUint32(start + 4)
  const payload = length - headers - PRELUDE_BYTES - CHECKSUM_BYTES
  if (headers > LONGEST_HEADERS || payload < 0 || payload > LONGEST_PAYLOAD) {
    throw new EventMessageError('a length is out of range')
  }
  return length
}

function readMessage(bytes: Uint8Array): EventMessage {
  const end = bytes.length - CHECKSUM_BYTES
  const view = viewOf(bytes)
  if (crc32(bytes.subarray(0, end)) !== view.getUint32(end)) {
    throw new EventMessageError('the checksum of a message is wrong')
  }
  const headersEnd = PRELUDE_BYTES + view.getUint32(4)
  const headers = new HeaderReader(bytes.subarray(PRELUDE_BYTES, headersEnd)).read()
  return { headers, payload: bytes.slice(headersEnd, end) }
}

/** Values by the type that stands before them. */
const VALUES: ReadonlyArray<(reader: HeaderReader) => HeaderValue> = [
  () => true,
  () => false,
  (reader) => reader.view(1).getInt8(0),
  (reader) => reader.view(2).getInt16(0),
  (reader) => reader.view(4).getInt32(0),
  (reader) => reader.view(8).getBigInt64(0),
  (reader) => reader.bytes(reader.view(2).getUint16(0)).slice(),
  (reader) => reader.text(reader.view(2).getUint16(0)),
  (reader) => Number(reader.view(8).getBigInt64(0)),
  (reader) => Buffer.from(reader.bytes(16)).toString('hex'),
]

/** Reads headers: length and name, one byte for the type of the value, the value. */
class HeaderReader {
  readonly #source: Uint8Array
  #at = 0

  constructor(source: Uint8Array) {
    this.#source = source
  }

  /** @throws EventMessageError */
  read(): Map<string, HeaderValue> {
    const headers = new Map<string, HeaderValue>()
    while (this.#at < this.#source.length) {
      const name = this.text(this.view(1).getUint8(0))
      const value = VALUES[this.view(1).getUint8(0)]
      if (name === '' || value === undefined || headers.has(name)) throw malformed()
      headers.set(name, value(this))
    }
    return headers
  }

  bytes(length: number): Uint8Array {
    const end = this.#at + length
    if (end > this.#source.length) throw malformed()
    const taken = this.#source.subarray(this.#at, end)
    this.#at = end
    return taken
  }

  view(length: number): DataView {
    return viewOf(this.bytes(length))
  }

  text(length: number): string {
    const bytes = this.bytes(length)
    if (!isUtf8(bytes)) throw malformed()
    return decoder.decode(bytes)
  }
}

const malformed = () => new EventMessageError('the headers of a message are malformed')
