import { joinBytes } from '../../lib/byte-edits.ts'
import type { Frames } from '../storage/commit-rows.ts'

/** Half of what the platform allows in a row, https://developers.cloudflare.com/durable-objects/platform/limits/. */
export const MAXIMUM_ROW_BYTES = 1024 * 1024
/** An event larger than a row takes several rows, at most so many: their positions precede those of the next event. */
export const ROWS_PER_EVENT = 1024

const LINE_FEED = 0x0a
/** `event`, `id`, `data` and the blank line. */
const LINES_PER_FRAME = 4

/** The content of a row: whole frames, or a part of a frame that is larger than a row. */
export interface Segment extends Frames {
  /** Key of the row: from the slice's first on, ROWS_PER_EVENT times the number of the first event, plus that of the part. */
  position: number
}

/** Frames as the segment that is written or kept. */
export function joined(pieces: readonly Frames[], firstKey: number): Segment {
  const [first, last] = [pieces[0]?.first ?? 0, pieces.at(-1)?.last ?? 0]
  return {
    position: firstKey + first * ROWS_PER_EVENT,
    first,
    last,
    bytes: joinBytes(pieces.map(({ bytes }) => bytes)),
  }
}

/**
 * Packs whole frames into segments up to the size of a row, and splits a frame larger than a row.
 * @param pieces of which only single frames are larger than a row.
 */
export function* packed(pieces: readonly Frames[], firstKey: number): Generator<Segment> {
  let together: Frames[] = []
  let size = 0
  for (const piece of pieces) {
    const { length } = piece.bytes
    if (together.length > 0 && size + length > MAXIMUM_ROW_BYTES) {
      yield joined(together, firstKey)
      together = []
      size = 0
    }
    if (length > MAXIMUM_ROW_BYTES) {
      yield* split(piece, firstKey)
    } else {
      together.push(piece)
      size += length
    }
  }
  if (together.length > 0) yield joined(together, firstKey)
}

function* split({ first: sequence, bytes }: Frames, firstKey: number): Generator<Segment> {
  const count = Math.ceil(bytes.length / MAXIMUM_ROW_BYTES)
  if (count > ROWS_PER_EVENT) throw new RangeError(`event ${sequence} is too large`)
  for (let part = 0; part < count; part += 1) {
    yield {
      position: firstKey + sequence * ROWS_PER_EVENT + part,
      first: sequence,
      last: sequence,
      // A copy: a view would keep the whole event in memory as long as its last part.
      bytes: bytes.slice(part * MAXIMUM_ROW_BYTES, (part + 1) * MAXIMUM_ROW_BYTES),
    }
  }
}

/** The offset after the first frames of a segment. */
export function endOfFrames(bytes: Uint8Array, frames: number): number {
  let end = 0
  for (let lines = frames * LINES_PER_FRAME; lines > 0; lines -= 1) end = bytes.indexOf(LINE_FEED, end) + 1
  return end
}

/** The offset after the last whole frame: a blank line ends each, and is nowhere else. 0 when there is none. */
export function endOfLastFrame(bytes: Uint8Array): number {
  let at = bytes.lastIndexOf(LINE_FEED)
  while (at > 0 && bytes[at - 1] !== LINE_FEED) at = bytes.lastIndexOf(LINE_FEED, at - 1)
  return at + 1
}

/** The offset after the first whole frame. */
export const endOfFirstFrame = (bytes: Uint8Array): number => endOfFrames(bytes, 1)
