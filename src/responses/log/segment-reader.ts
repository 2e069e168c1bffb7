import { joinBytes } from '../../lib/byte-edits.ts'
import type { Slice } from '../storage/slice.ts'
import type { KeptFrames } from './kept-frames.ts'
import {
  endOfFirstFrame,
  endOfFrames,
  endOfLastFrame,
  MAXIMUM_ROW_BYTES,
  ROWS_PER_EVENT,
  type Segment,
} from './packed-frames.ts'
import type { SegmentHolder, UnflushedEvents } from './unflushed-events.ts'

/** Every reader has its own copy of segments up to this size; readers share one copy of larger ones. */
const SMALL_SEGMENT_BYTES = 32 * 1024
/** Most rows of one query. Where the size of segments changes suddenly, a query may read 2 MB. */
const MOST_ROWS = 64

/** A place in the log that a reader has come to. */
export interface LogCursor {
  /** Position of the last row that was read, or of the last kept event. */
  position: number
  /** Bytes of that row that were read, if it has more; null if it was read to its end. */
  offset: number | null
  /** Number of the last event that was read. */
  read: number
  /** Events up to this number are left out. */
  after: number
}

/** Rows after a position. Bodies of large segments are null. */
const NEXT_ROWS = `
  SELECT position, last_sequence, CASE WHEN length(body) <= ${SMALL_SEGMENT_BYTES} THEN body END AS body
  FROM event_segments WHERE position > ? AND position <= ? ORDER BY position LIMIT ?`

/** Reads the rows of an event log, and the segments that only commits have, for readers at any place. */
export class SegmentReader {
  readonly #slice: Slice
  readonly #unflushed: UnflushedEvents
  /** The last written segment, which all readers at the live edge send, and the position of the one before it. */
  #newest: { segment: Segment; before: number } | null = null
  /** The rows that kept segments have become, while readers may have been between these. */
  #merged: Segment[] = []
  /** Rows of the next query: about as many as are sent together. */
  #rowLimit = 1

  constructor(slice: Slice, unflushed: UnflushedEvents) {
    this.#slice = slice
    this.#unflushed = unflushed
  }

  /** To be called when frames follow those that only commits have. */
  noteKept(): void {
    this.#newest = null
  }

  /**
   * To be called when segments were written.
   * @param fresh segments of the frames that no reader has got. @param before position of the last segment before them.
   * @param isMerged whether segments that readers may have got are in the rows as well.
   */
  noteWritten(rows: readonly Segment[], fresh: readonly Segment[], before: number, isMerged: boolean): void {
    const segment = fresh.at(-1)
    const isAlone = segment !== undefined && (!isMerged || fresh.length === 1)
    this.#newest = isAlone ? { segment, before: fresh.at(-2)?.position ?? before } : null
    if (isMerged) this.#merged.push(...rows.map((row) => ({ ...row, bytes: NO_BYTES })))
  }

  /** To be called when rows were deleted. There may be no reader. */
  forget(): void {
    this.#newest = null
    this.#merged = []
  }

  /**
   * Moves a cursor forward.
   * @param lastRow position of the last row. @param kept the frames that only commits have, all after it.
   * @returns whole frames, as many as are sent together, or a part of one that is larger than a row. What is large is held for
   *   the reader until it is released. Null when there is nothing more.
   */
  next(cursor: LogCursor, holder: SegmentHolder, lastRow: number, kept: KeptFrames): Uint8Array | null {
    for (;;) {
      const bytes = this.#step(cursor, holder, lastRow, kept)
      // Everything up to `after` is left out.
      if (bytes === null || bytes.length > 0) return bytes
    }
  }

  release(holder: SegmentHolder): void {
    this.#unflushed.release(holder)
  }

  body(position: number): Uint8Array {
    return this.#part(position, 0, 2 * MAXIMUM_ROW_BYTES)
  }

  #step(cursor: LogCursor, holder: SegmentHolder, lastRow: number, kept: KeptFrames): Uint8Array | null {
    if (cursor.offset !== null) return this.#piece(cursor, holder, cursor.position, cursor.offset)
    const { position, read } = cursor
    const newest = this.#newest
    if (newest && position >= newest.before && isNext(newest.segment, read)) {
      const { segment } = newest
      cursor.position = Math.max(segment.position, lastRow)
      cursor.read = segment.last
      return skipped(cursor, { ...segment, bytes: this.#shared(segment, holder) })
    }
    const merged = this.#merged.find((row) => row.position <= position && read < row.last)
    if (merged) {
      cursor.after = Math.max(cursor.after, read)
      return this.#piece(cursor, holder, merged.position, this.#offsetIn(merged, cursor.after))
    }
    const rows = position < lastRow ? this.#rows(cursor, holder, lastRow) : null
    return rows ?? this.#keptAfter(cursor, kept)
  }

  #keptAfter(cursor: LogCursor, kept: KeptFrames): Uint8Array | null {
    const frames = kept.after(cursor.read)
    if (frames === null) return null
    cursor.position = this.#slice.firstKey + frames.last * ROWS_PER_EVENT
    cursor.read = frames.last
    return frames.bytes
  }

  /** A newly written segment: a large one is shared by its readers. */
  #shared({ position, bytes }: Segment, holder: SegmentHolder): Uint8Array {
    return bytes.length <= SMALL_SEGMENT_BYTES
      ? bytes
      : this.#unflushed.hold(`${position}`, holder, () => bytes)
  }

  /** The rows after a cursor that are sent together: small ones up to the size of one, or a large one by itself. */
  #rows(cursor: LogCursor, holder: SegmentHolder, lastRow: number): Uint8Array | null {
    const pieces: Uint8Array[] = []
    let size = 0
    let count = 0
    for (const row of this.#slice.sql.exec(NEXT_ROWS, cursor.position, lastRow, this.#rowLimit).toArray()) {
      const segment = this.#segmentOf(row)
      if (row.body === null) {
        if (count > 0) break
        return this.#large(cursor, holder, segment)
      }
      if (size > 0 && size + segment.bytes.length > SMALL_SEGMENT_BYTES) break
      size += segment.bytes.length
      count++
      cursor.position = segment.position
      cursor.read = Math.max(cursor.read, segment.last)
      pieces.push(skipped(cursor, segment))
    }
    if (count === 0) return null
    this.#rowLimit = Math.min(MOST_ROWS, Math.ceil((SMALL_SEGMENT_BYTES * count) / Math.max(1, size)))
    return joinBytes(pieces)
  }

  /** A row of many frames is sent in pieces; one frame, or a part of one, at once. */
  #large(cursor: LogCursor, holder: SegmentHolder, segment: Segment): Uint8Array {
    this.#rowLimit = 1
    const { position, first, last } = segment
    if (last > first) return this.#piece(cursor, holder, position, this.#offsetIn(segment, cursor.after))
    cursor.position = position
    cursor.read = Math.max(cursor.read, last)
    if (last <= cursor.after) return NO_BYTES
    return this.#unflushed.hold(`${position}`, holder, () => this.body(position))
  }

  /** The next frames of a row from an offset on: as many as are small together, or one that is large. */
  #piece(cursor: LogCursor, holder: SegmentHolder, position: number, offset: number): Uint8Array {
    const { size, last } = this.#sizeOf(position)
    const piece = () => {
      const small = this.#part(position, offset, SMALL_SEGMENT_BYTES)
      const end = offset + small.length >= size ? small.length : endOfLastFrame(small)
      if (end > 0) return small.subarray(0, end)
      const rest = this.#part(position, offset, size - offset)
      return rest.subarray(0, endOfFirstFrame(rest))
    }
    const bytes = piece()
    const end = offset + bytes.length
    cursor.position = position
    cursor.offset = end < size ? end : null
    if (cursor.offset === null) cursor.read = Math.max(cursor.read, last)
    return bytes.length <= SMALL_SEGMENT_BYTES
      ? bytes
      : this.#unflushed.hold(`${position}/${offset}`, holder, () => bytes.slice())
  }

  /** Where the frames after a number begin in a row. */
  #offsetIn({ position, first, last }: Segment, after: number): number {
    if (after < first) return 0
    const body = this.body(position)
    return after >= last ? body.length : endOfFrames(body, after + 1 - first)
  }

  #segmentOf(row: Record<string, SqlStorageValue>): Segment {
    const position = Number(row.position)
    const first = Math.floor((position - this.#slice.firstKey) / ROWS_PER_EVENT)
    const bytes = row.body === null ? NO_BYTES : bytesOf(row.body)
    return { position, first, last: Number(row.last_sequence), bytes }
  }

  #sizeOf(position: number): { size: number; last: number } {
    const select = 'SELECT length(body) AS size, last_sequence AS last FROM event_segments WHERE position = ?'
    return this.#slice.sql.exec<{ size: number; last: number }>(select, position).one()
  }

  #part(position: number, offset: number, length: number): Uint8Array {
    const select = 'SELECT substr(body, ?, ?) AS part FROM event_segments WHERE position = ?'
    return bytesOf(this.#slice.sql.exec(select, offset + 1, length, position).one().part)
  }
}

const NO_BYTES = new Uint8Array(0)

export const bytesOf = (body: SqlStorageValue | undefined): Uint8Array => new Uint8Array(body as ArrayBuffer)

/** Whether a reader has everything before a segment. Its position does not say that, if kept segments have become one row. */
const isNext = ({ first, last }: Segment, read: number): boolean => read >= first - 1 && read < last

/** The frames of a segment that a reader wants. */
function skipped({ after }: LogCursor, { first, last, bytes }: Segment): Uint8Array {
  if (last <= after) return NO_BYTES
  return first > after ? bytes : bytes.subarray(endOfFrames(bytes, after + 1 - first))
}
