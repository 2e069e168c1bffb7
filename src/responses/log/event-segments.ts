import { joinBytes } from '../../lib/byte-edits.ts'
import { KEYS_PER_RESPONSE, type Slice } from '../storage/slice.ts'
import type { HeldSegments, SegmentHolder } from './held-segments.ts'

/**
 * Half of what the platform allows in a row, https://developers.cloudflare.com/durable-objects/platform/limits/.
 * @internal A bound that tests reach.
 */
export const MAXIMUM_ROW_BYTES = 1024 * 1024
/** Every reader has its own copy of segments up to this size; readers share one copy of larger ones. */
const SMALL_SEGMENT_BYTES = 32 * 1024
/** Most rows of one query. Where the size of segments changes suddenly, a query may read 2 MB. */
const MOST_ROWS = 64
/** An event larger than a row takes several rows, at most so many: their positions precede those of the next event. */
const ROWS_PER_EVENT = 1024

/** One event in the form that is sent. */
export interface Frame {
  sequence: number
  bytes: Uint8Array
}

/** The content of a row: whole frames, or a part of a frame that is larger than a row. */
interface Segment {
  /** Key of the row: from the slice's first on, ROWS_PER_EVENT times the number of the first event, plus that of the part. */
  position: number
  first: number
  last: number
  bytes: Uint8Array
}

/** Rows after a position. Bodies of large segments are null: they are read once for all readers. */
const NEXT_ROWS = `
  SELECT position, last_sequence, CASE WHEN length(body) <= ${SMALL_SEGMENT_BYTES} THEN body END AS body
  FROM event_segments WHERE position > ? AND position <= ? ORDER BY position LIMIT ?`

/**
 * The rows of an event log. The key is a plain integer, so that an insert writes one row; a second index would write two.
 * The end of the log is marked in its last row, so that the last event and the end are stored together.
 */
export class EventSegments {
  /** Number of rows written since construction. */
  rowsWritten = 0
  readonly #slice: Slice
  readonly #held: HeldSegments
  #closed = false
  #lastSequence = 0
  #lastPosition: number
  /** The last written segment, which all readers at the live edge send, and the position of the one before it. */
  #newest: Segment | null = null
  #beforeNewest: number
  /** Rows of the next query: about as many as are sent together. */
  #rowLimit = 1

  /** @param held shared by the logs of an object. */
  constructor(slice: Slice, held: HeldSegments) {
    this.#slice = slice
    this.#held = held
    this.#lastPosition = slice.firstKey - 1
    this.#beforeNewest = this.#lastPosition
    if (!slice.tables.has('event_segments')) return
    const [row] = slice.sql
      .exec(
        `SELECT position, last_sequence, closes FROM event_segments WHERE position >= ? AND position < ?
          ORDER BY position DESC LIMIT 1`,
        slice.firstKey,
        slice.firstKey + KEYS_PER_RESPONSE,
      )
      .toArray()
    if (row === undefined) return
    this.#lastPosition = Number(row.position)
    this.#lastSequence = Number(row.last_sequence)
    this.#closed = row.closes === 1
  }

  /** Number of the last event that is stored; 0 when there is none. */
  get lastSequence(): number {
    return this.#lastSequence
  }

  get closed(): boolean {
    return this.#closed
  }

  /**
   * Stores frames that follow the last one, all or none of them: in one row, or in as many as their size requires.
   * @param closes whether the log ends with them. Then there may be none. @throws the error of SQLite.
   */
  write(frames: readonly Frame[], closes: boolean): void {
    const { tables, firstKey } = this.#slice
    const segments = [...packed(frames, firstKey)]
    const isFirst = !tables.has('event_segments')
    const insert = (): void => {
      tables.create('event_segments')
      if (segments.length === 0 && closes) this.#markClosed()
      segments.forEach((segment, index) => {
        this.#insert(segment, closes && index === segments.length - 1)
      })
    }
    // A single statement is atomic by itself, and most writes are one.
    if (!isFirst && segments.length <= 1) insert()
    else this.#inTransaction(insert)
    for (const segment of segments) {
      this.#beforeNewest = this.#lastPosition
      this.#newest = segment
      this.#lastPosition = segment.position
      this.#lastSequence = segment.last
    }
    this.#closed = closes
  }

  #inTransaction(work: () => void): void {
    try {
      this.#slice.transactionSync(work)
    } catch (error) {
      // The table may have been created in it.
      this.#slice.tables.forget()
      throw error
    }
  }

  /**
   * The segments after a position that are sent together: small ones up to the size of one, or a large one by itself,
   * which is held for the reader until it is released.
   */
  after(position: number, holder: SegmentHolder): Segment[] {
    if (position >= this.#lastPosition) return []
    const newest = this.#newest
    if (newest !== null && position >= this.#beforeNewest) {
      const isSmall = newest.bytes.length <= SMALL_SEGMENT_BYTES
      const bytes = isSmall ? newest.bytes : this.#held.hold(newest.position, holder, () => newest.bytes)
      return [{ ...newest, bytes }]
    }
    const segments: Segment[] = []
    let size = 0
    const { sql, firstKey } = this.#slice
    for (const row of sql.exec(NEXT_ROWS, position, this.#lastPosition, this.#rowLimit).toArray()) {
      const at = Number(row.position)
      const isLarge = row.body === null
      if (isLarge && segments.length > 0) break
      const bytes = isLarge ? this.#held.hold(at, holder, () => this.#body(at)) : bytesOf(row.body)
      if (size > 0 && size + bytes.length > SMALL_SEGMENT_BYTES) break
      const first = Math.floor((at - firstKey) / ROWS_PER_EVENT)
      segments.push({ position: at, first, last: Number(row.last_sequence), bytes })
      size += bytes.length
      if (isLarge) break
    }
    const fitting = Math.ceil((SMALL_SEGMENT_BYTES * segments.length) / Math.max(1, size))
    this.#rowLimit = Math.min(MOST_ROWS, fitting)
    return segments
  }

  /** The bodies of all rows, in order. */
  *bodies(): Generator<Uint8Array> {
    if (this.#lastPosition < this.#slice.firstKey) return
    const { sql, firstKey } = this.#slice
    const select = 'SELECT body FROM event_segments WHERE position >= ? AND position <= ? ORDER BY position'
    for (const { body } of sql.exec(select, firstKey, this.#lastPosition)) yield bytesOf(body)
  }

  /** Releases the large segment that a reader has sent. */
  release(holder: SegmentHolder): void {
    this.#held.release(holder)
  }

  /** The position after which an event and all that follow it are read. */
  positionBefore(sequence: number): number {
    if (sequence > this.#lastSequence) return this.#lastPosition
    const { sql, firstKey } = this.#slice
    const { position } = sql
      .exec(
        'SELECT max(position) AS position FROM event_segments WHERE position >= ? AND position <= ?',
        firstKey,
        firstKey + sequence * ROWS_PER_EVENT,
      )
      .one()
    return Number(position ?? firstKey) - 1
  }

  /**
   * Deletes the events after a number. There may be no reader.
   * @throws RangeError if one of them is in the row of an earlier one.
   */
  cut(sequence: number): void {
    if (sequence >= this.#lastSequence) return
    const { sql, firstKey } = this.#slice
    const from = firstKey + (sequence + 1) * ROWS_PER_EVENT
    const [row] = sql
      .exec(
        `SELECT position, last_sequence FROM event_segments WHERE position >= ? AND position < ?
          ORDER BY position DESC LIMIT 1`,
        firstKey,
        from,
      )
      .toArray()
    if (Number(row?.last_sequence) !== sequence) throw new RangeError(`no row ends with event ${sequence}`)
    this.#exec('DELETE FROM event_segments WHERE position >= ? AND position <= ?', from, this.#lastPosition)
    this.#lastPosition = Number(row?.position)
    this.#lastSequence = sequence
    this.#newest = null
  }

  #insert({ position, last, bytes }: Segment, closes: boolean): void {
    this.#exec('INSERT INTO event_segments VALUES (?, ?, ?, ?)', position, last, closes ? 1 : 0, bytes)
  }

  #markClosed(): void {
    const { firstKey } = this.#slice
    if (this.#lastPosition >= firstKey) {
      this.#exec('UPDATE event_segments SET closes = 1 WHERE position = ?', this.#lastPosition)
    } else {
      this.#insert({ position: firstKey, first: 0, last: 0, bytes: new Uint8Array(0) }, true)
    }
  }

  #exec(statement: string, ...bindings: unknown[]): void {
    this.rowsWritten += this.#slice.sql.exec(statement, ...bindings).rowsWritten
  }

  #body(position: number): Uint8Array {
    const { body } = this.#slice.sql
      .exec('SELECT body FROM event_segments WHERE position = ?', position)
      .one()
    return bytesOf(body)
  }
}

const bytesOf = (body: SqlStorageValue | undefined): Uint8Array => new Uint8Array(body as ArrayBuffer)

/** Packs whole frames into segments up to the size of a row, and splits a frame larger than a row. */
function* packed(frames: readonly Frame[], firstKey: number): Generator<Segment> {
  let together: Frame[] = []
  let size = 0
  for (const frame of frames) {
    const { length } = frame.bytes
    if (together.length > 0 && size + length > MAXIMUM_ROW_BYTES) {
      yield joined(together, firstKey)
      together = []
      size = 0
    }
    if (length > MAXIMUM_ROW_BYTES) {
      yield* split(frame, firstKey)
    } else {
      together.push(frame)
      size += length
    }
  }
  if (together.length > 0) yield joined(together, firstKey)
}

function* split({ sequence, bytes }: Frame, firstKey: number): Generator<Segment> {
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

function joined(frames: readonly Frame[], firstKey: number): Segment {
  const [first, last] = [frames[0]?.sequence ?? 0, frames.at(-1)?.sequence ?? 0]
  return {
    position: firstKey + first * ROWS_PER_EVENT,
    first,
    last,
    bytes: joinBytes(frames.map(({ bytes }) => bytes)),
  }
}
