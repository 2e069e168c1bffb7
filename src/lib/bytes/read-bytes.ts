import { joinBytes } from '../byte-edits.ts'
import { withinTime } from '../time-limit.ts'

/**
 * Size of the buffer that parts are read into. Without it the runtime allocates a new buffer for every 4 KB: 12,800 for a large
 * body, faster than they are collected.
 */
const SPACE_BYTES = 64 * 1024
/**
 * Bytes that are read in one turn of the event loop. Parts that have arrived are read without one, so that a fast sender
 * could keep the events of other requests waiting.
 */
const TURN_BYTES = 512 * 1024

/** A stream that is longer than its reader allows. */
export class TooLongError extends Error {
  constructor(limit: number) {
    super(`longer than ${limit} bytes`)
    this.name = 'TooLongError'
  }
}

/** A stream that failed. `cause` is what it threw. */
export class BrokenStreamError extends Error {
  constructor(cause: unknown) {
    super('the stream broke off', { cause })
    this.name = 'BrokenStreamError'
  }
}

interface PartLimits {
  /** Bytes of all parts together. */
  longest?: number
  /** Milliseconds that the next part may take, after `length` bytes. */
  patience?: (length: number) => number
}

/** Reads a byte stream part by part. A part is only valid until the next one is read. */
export class PartReader {
  readonly #reader: Reader
  #space: Uint8Array<ArrayBuffer>

  /** @param expected length of the stream in bytes; null if unknown. */
  constructor(stream: ReadableStream<Uint8Array>, expected: number | null = null) {
    this.#reader = readerOf(stream)
    this.#space = new Uint8Array(Math.min(SPACE_BYTES, expected || SPACE_BYTES))
  }

  /**
   * The next part; null at the end.
   * @param most bytes that it may have. @throws BrokenStreamError
   */
  async next(most = this.#space.byteLength): Promise<Uint8Array | null> {
    const room = this.#space.subarray(0, Math.min(most, this.#space.byteLength))
    const { byob, plain } = this.#reader
    const { done, value } = await (byob ? byob.read(room) : plain.read()).catch((error: unknown) => {
      throw new BrokenStreamError(error)
    })
    if (done || !value) return null
    if (byob) this.#space = new Uint8Array(value.buffer as ArrayBuffer)
    return value
  }

  /**
   * Reads to the end. A part is only valid until `take` has ended.
   * @throws TooLongError (the rest can be drained), BrokenStreamError, TimeLimitError; and what `take` throws.
   */
  async each(
    take: (part: Uint8Array) => void | Promise<void>,
    { longest = Number.POSITIVE_INFINITY, patience }: PartLimits = {},
  ): Promise<void> {
    let turnEnd = TURN_BYTES
    for (let length = 0; ; ) {
      const reading = this.next()
      const part = await (patience
        ? withinTime(reading, patience(length), 'the next part of the body')
        : reading)
      if (!part) return
      length += part.length
      if (length > longest) throw new TooLongError(longest)
      await take(part)
      if (length < turnEnd) continue
      turnEnd = length + TURN_BYTES
      await new Promise((resolve) => setTimeout(resolve))
    }
  }

  /** Reads and drops so many bytes at most, for so long at most, and cancels the stream. Never rejects. */
  async drain(bytes: number, milliseconds: number): Promise<void> {
    const reading = this.each(() => {}, { longest: bytes })
    await withinTime(reading, milliseconds, 'draining').catch(() => {})
    this.cancel()
  }

  /** Cancels the stream. */
  cancel(reason?: unknown): void {
    const { byob, plain } = this.#reader
    ;(byob ?? plain).cancel(reason).catch(() => {})
  }
}

/**
 * Reads a stream whole.
 * @param limit in bytes. @throws TooLongError beyond it, and what the stream throws.
 */
export async function readAll(stream: ReadableStream<Uint8Array>, limit: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  const reader = new PartReader(stream)
  try {
    await reader.each((part) => void pieces.push(part.slice()), { longest: limit })
    return joinBytes(pieces)
  } catch (error) {
    reader.cancel()
    throw error instanceof BrokenStreamError ? error.cause : error
  }
}

type Reader =
  | { byob: ReadableStreamBYOBReader; plain: null }
  | { byob: null; plain: ReadableStreamDefaultReader<Uint8Array> }

/** Byte streams of the runtime are read into our buffer; other streams provide theirs. */
function readerOf(stream: ReadableStream<Uint8Array>): Reader {
  try {
    return { byob: stream.getReader({ mode: 'byob' }), plain: null }
  } catch (error) {
    if (stream.locked) throw error
    return { byob: null, plain: stream.getReader() }
  }
}
