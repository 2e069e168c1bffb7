/** Server-Sent Events as bytes (https://html.spec.whatwg.org/multipage/server-sent-events.html). */

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const SPACE = 0x20
const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** A frame longer than this is refused: an upstream that never ends a frame must not fill the isolate. */
export const MAXIMUM_FRAME_BYTES = 16 * 1024 * 1024

/** One event, with the place of its payload. */
export interface SseFrame {
  /** The frame with its closing blank line. */
  bytes: Uint8Array
  event: string | null
  /** Where `data` begins in `bytes`. */
  dataStart: number
  /** The payload; null when the frame has no `data:` line (a comment, a retry). */
  data: Uint8Array | null
}

/** Cuts a byte stream into frames, whatever its chunks: LF, CRLF and CR line ends, split anywhere. */
export class SseSplitter {
  #pending: Uint8Array = new Uint8Array(0)
  /** Bytes of `#pending` already searched for a blank line. */
  #searched = 0

  /**
   * Takes a chunk.
   * @returns the frames that it completes.
   * @throws if an unfinished frame passes `MAXIMUM_FRAME_BYTES`.
   */
  push(chunk: Uint8Array): Uint8Array[] {
    const bytes = this.#pending.length === 0 ? chunk : concatenate(this.#pending, chunk)
    const frames: Uint8Array[] = []
    let start = 0
    let at = Math.max(0, this.#searched - 3)
    for (;;) {
      const end = endOfFrame(bytes, Math.max(at, start))
      if (end < 0) break
      if (end > start) frames.push(bytes.subarray(start, end))
      start = end
      at = end
    }
    // A copy, so that one small remainder does not keep the whole chunk alive.
    this.#pending = start === 0 ? bytes : bytes.slice(start)
    this.#searched = this.#pending.length
    if (this.#pending.length > MAXIMUM_FRAME_BYTES) throw new Error('event stream frame too long')
    return frames
  }

  /** Bytes after the last blank line: by the standard an unfinished frame is not dispatched. */
  get remainder(): Uint8Array {
    return this.#pending
  }
}

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
 * Reads the fields of one frame. A payload sent as several `data:` lines is put on one, joined by spaces: our payloads
 * are JSON, where a line break between tokens means nothing, and edits need one place.
 */
export function parseFrame(bytes: Uint8Array): SseFrame {
  const frame: SseFrame = { bytes, event: null, dataStart: 0, data: null }
  const further: Uint8Array[] = []
  for (let at = 0; at < bytes.length; ) {
    let end = at
    while (end < bytes.length && bytes[end] !== LINE_FEED && bytes[end] !== CARRIAGE_RETURN) end++
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
  return frame.data === null || further.length === 0
    ? frame
    : onOneLine(frame.event, [frame.data, ...further])
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

function concatenate(left: Uint8Array, right: Uint8Array): Uint8Array {
  const joined = new Uint8Array(left.length + right.length)
  joined.set(left)
  joined.set(right, left.length)
  return joined
}

/** Encodes a frame. @param event null for chat completions, whose frames carry no `event:` line. */
export function encodeFrame(event: string | null, data: unknown): Uint8Array {
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  return encoder.encode(`${event === null ? '' : `event: ${event}\n`}data: ${text}\n\n`)
}

/** A comment frame, ignored by every reader: keeps a silent connection open. */
export const HEARTBEAT_COMMENT = encoder.encode(': heartbeat\n\n')
