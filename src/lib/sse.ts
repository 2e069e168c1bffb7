import { GrowingBytes } from './growing-bytes.ts'

/** Server-Sent Events as bytes (https://html.spec.whatwg.org/multipage/server-sent-events.html). */

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
/** Bytes of a line that are searched one by one. */
const NEAR_BYTES = 512
const SPACE = 0x20
const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })

/** A longer frame is refused: an upstream that never ends a frame must not fill the isolate. */
export const MAXIMUM_FRAME_BYTES = 16 * 1024 * 1024

/** A stream that breaks the rules of its framing. The message is for the caller. */
export class FramingError extends Error {
  override name = 'FramingError'
}

/** An upstream that does not end its frame. */
export class FrameTooLongError extends FramingError {
  override name = 'FrameTooLongError'
  constructor() {
    super('The upstream sent an event that is too long.')
  }
}

/** An event with the position of its payload. */
export interface SseFrame {
  /** The frame with its closing blank line. */
  bytes: Uint8Array
  event: string | null
  /** Offset of the contents of `data` in `bytes`. */
  dataStart: number
  /** Null for a comment, a retry or an empty `data:`: by the standard such a frame is no event. */
  data: Uint8Array | null
}

/** Reads the frames of one stream. Other framings than Server-Sent Events are converted to it. */
export interface FrameReader {
  /** The beginning of a frame that is not complete yet. */
  readonly unfinished: Uint8Array
  /**
   * Takes a chunk.
   * @returns the frames that it completes.
   * @throws FramingError.
   */
  push(chunk: Uint8Array): SseFrame[]
}

/** Reads Server-Sent Events. */
export class SseReader implements FrameReader {
  readonly #splitter = new SseSplitter()

  get unfinished(): Uint8Array {
    return this.#splitter.unfinished
  }

  push(chunk: Uint8Array): SseFrame[] {
    return this.#splitter.push(chunk).map(parseFrame)
  }
}

/**
 * Cuts a byte stream into frames, whatever its chunks: LF, CRLF and CR line ends, split anywhere. A byte order mark
 * at the very beginning is cut off, as the standard requires.
 * @internal Tests split recorded streams with it, and compare it with a slow reference.
 */
export class SseSplitter {
  readonly #pending = new GrowingBytes()
  #begun = false

  /** The beginning of a frame that is not complete yet. */
  get unfinished(): Uint8Array {
    return this.#pending.bytes
  }

  /**
   * Takes a chunk.
   * @returns the frames that it completes.
   * @throws if an unfinished frame passes `MAXIMUM_FRAME_BYTES`.
   */
  push(chunk: Uint8Array): Uint8Array[] {
    // The pending bytes were searched before, except for line ends that may be the first half of a blank line.
    const from = Math.max(0, this.#pending.length - 3)
    const bytes = this.#pending.length === 0 ? chunk : this.#pending.append(chunk)
    const frames: Uint8Array[] = []
    let start = 0
    for (let end = endOfFrame(bytes, from); end >= 0; end = endOfFrame(bytes, end)) {
      frames.push(this.#begun ? bytes.subarray(start, end) : withoutMark(bytes.subarray(start, end)))
      this.#begun = true
      start = end
    }
    if (start > 0 || this.#pending.length === 0) this.#pending.restart(bytes.subarray(start))
    if (this.#pending.length > MAXIMUM_FRAME_BYTES) throw new FrameTooLongError()
    return frames
  }
}

const withoutMark = (bytes: Uint8Array) =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes

/** The offset after the first blank line at or after `from`, or -1. */
function endOfFrame(bytes: Uint8Array, from: number): number {
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte !== LINE_FEED && byte !== CARRIAGE_RETURN) continue
    const next = lineEndLength(bytes, at)
    const after = at + next
    const second = lineEndLength(bytes, after)
    // A lone CR at the very end may be the first half of CRLF: wait for more.
    if (after + second >= bytes.length && bytes[bytes.length - 1] === CARRIAGE_RETURN) return -1
    if (second > 0) return after + second
    at = after - 1
  }
  return -1
}

function lineEndLength(bytes: Uint8Array, at: number): number {
  if (bytes[at] === LINE_FEED) return 1
  if (bytes[at] !== CARRIAGE_RETURN) return 0
  return bytes[at + 1] === LINE_FEED ? 2 : 1
}

/**
 * Reads the fields of one frame. A payload of several `data:` lines is joined to one line, by spaces: payloads are JSON,
 * where a line break between tokens has no meaning, and edits need one position.
 */
export function parseFrame(bytes: Uint8Array): SseFrame {
  const frame: SseFrame = { bytes, event: null, dataStart: 0, data: null }
  const further: Uint8Array[] = []
  // The ends of long lines, as the runtime finds them; each is looked for again only when it was passed.
  let feed = -1
  let carriage = -1
  for (let at = 0; at < bytes.length; ) {
    let end = nearLineEnd(bytes, at)
    if (end < 0) {
      if (feed < at) feed = indexFrom(bytes, LINE_FEED, at)
      if (carriage < at) carriage = indexFrom(bytes, CARRIAGE_RETURN, at)
      end = Math.min(feed, carriage)
    }
    if (hasPrefix(bytes, at, end, 'data:')) {
      const from = bytes[at + 5] === SPACE ? at + 6 : at + 5
      if (frame.data !== null) further.push(bytes.subarray(from, end))
      else {
        frame.dataStart = from
        frame.data = bytes.subarray(from, end)
      }
    } else if (hasPrefix(bytes, at, end, 'event:')) {
      frame.event = decoder.decode(bytes.subarray(at + 6, end)).trim()
    }
    at = end + Math.max(1, lineEndLength(bytes, end))
  }
  if (frame.data === null) return frame
  if (further.length > 0) return onOneLine(frame.event, [frame.data, ...further])
  if (frame.data.every((byte) => byte === SPACE)) frame.data = null
  return frame
}

/** The end of a line that is not long, for which a search by the runtime would take longer; -1 for others. */
function nearLineEnd(bytes: Uint8Array, from: number): number {
  const limit = Math.min(bytes.length, from + NEAR_BYTES)
  let at = from
  while (at < limit && bytes[at] !== LINE_FEED && bytes[at] !== CARRIAGE_RETURN) at++
  return at < limit || at === bytes.length ? at : -1
}

/** The first place of a byte, or the end. */
function indexFrom(bytes: Uint8Array, byte: number, from: number): number {
  const index = bytes.indexOf(byte, from)
  return index < 0 ? bytes.length : index
}

function onOneLine(event: string | null, lines: Uint8Array[]): SseFrame {
  return parseFrame(encodeFrame(event, lines.map((line) => decoder.decode(line)).join(' ')))
}

function hasPrefix(bytes: Uint8Array, start: number, end: number, prefix: string): boolean {
  if (end - start < prefix.length) return false
  for (let index = 0; index < prefix.length; index++) {
    if (bytes[start + index] !== prefix.charCodeAt(index)) return false
  }
  return true
}

/** Encodes a frame. @param event null for chat completions, whose frames carry no `event:` line. */
export function encodeFrame(event: string | null, data: unknown): Uint8Array {
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  return encoder.encode(`${event === null ? '' : `event: ${event}\n`}data: ${text}\n\n`)
}

/**
 * The frame of an event, without a search for its parts.
 * @param event name without line breaks. @param data text that is neither blank nor has line breaks.
 */
export function frameOf(event: string, data: string): SseFrame {
  const bytes = encodeFrame(event, data)
  // By the form that encodeFrame writes; names of events are ASCII.
  const dataStart = 'event: '.length + event.length + '\ndata: '.length
  return { bytes, event, dataStart, data: bytes.subarray(dataStart, bytes.length - 2) }
}

/** A comment, which every reader ignores: keeps a silent connection open. */
export const HEARTBEAT_COMMENT = encoder.encode(': heartbeat\n\n')
