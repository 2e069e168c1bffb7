import type { Frames } from '../storage/commit-rows.ts'
import { KEYS_PER_RESPONSE, type Slice } from '../storage/slice.ts'
import { KeptFrames } from './kept-frames.ts'
import { endOfFrames, packed, ROWS_PER_EVENT, type Segment } from './packed-frames.ts'
import { bytesOf, type LogCursor, SegmentReader } from './segment-reader.ts'
import type { SegmentHolder, UnflushedEvents } from './unflushed-events.ts'

/** Frames of one response that only commits have: they become one row. */
const MOST_KEPT_BYTES = 768 * 1024
/** Frames of a commit that are larger have rows of their own. */
const MOST_COMMITTED_BYTES = 64 * 1024

/**
 * The rows of an event log. The key is a plain integer, so that an insert writes one row; a second index would write two.
 * The end of the log is marked in its last row, so that the last event and the end are stored together.
 *
 * In an object of many responses, the frames of a live one are stored in commits first, and kept in memory for its readers.
 * Together they become rows: at the end of the log, or when they are many.
 */
export class StoredEvents {
  /** Number of rows written since construction, without commits. */
  rowsWritten = 0
  readonly #slice: Slice
  readonly #reader: SegmentReader
  #closed = false
  #lastSequence = 0
  /** Position of the last row. */
  #lastRow: number
  /** The frames that only commits have. All follow the last row. */
  readonly #kept = new KeptFrames()

  /** @param unflushed shared by the logs of an object. */
  constructor(slice: Slice, unflushed: UnflushedEvents) {
    this.#slice = slice
    this.#reader = new SegmentReader(slice, unflushed)
    this.#lastRow = slice.firstKey - 1
    if (!slice.tables.has('event_segments')) return
    const row = this.#rowBefore(slice.firstKey + KEYS_PER_RESPONSE)
    if (row === null) return
    this.#lastRow = row.position
    this.#lastSequence = row.last
    this.#closed = row.closes
  }

  /** Number of the last event that is stored; 0 when there is none. */
  get lastSequence(): number {
    return this.#lastSequence
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Bytes of the frames that only commits have. */
  get keptBytes(): number {
    return this.#kept.bytes
  }

  /** Whether frames may be stored in a commit. Otherwise, they are to be written to rows with those that only commits have. */
  fitsCommit(bytes: number): boolean {
    return bytes <= MOST_COMMITTED_BYTES && this.#kept.bytes + bytes <= MOST_KEPT_BYTES
  }

  /** Adds frames that follow the last one, and that a commit has stored. */
  keep(frames: Frames): void {
    this.#reader.noteKept()
    this.#kept.add(frames)
    this.#lastSequence = frames.last
  }

  /**
   * Stores frames that follow the last one, and those that only commits have, all or none of them: in one row, or in as many
   * as their size requires.
   * @param closes whether the log ends with them. Then there may be none. @throws the error of SQLite.
   */
  write(frames: readonly Frames[], closes: boolean): void {
    const { tables, firstKey } = this.#slice
    const segments = [...packed([...this.#kept.pieces, ...frames], firstKey)]
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
    const { last: lastKept } = this.#kept
    const fresh = lastKept === null ? segments : [...packed(frames, firstKey)]
    const before = lastKept === null ? this.#lastRow : firstKey + lastKept * ROWS_PER_EVENT
    this.#reader.noteWritten(segments, fresh, before, lastKept !== null)
    const last = segments.at(-1)
    this.#lastRow = last?.position ?? this.#lastRow
    this.#lastSequence = last?.last ?? this.#lastSequence
    this.#closed = closes
    this.drop()
  }

  /** Stores the frames that only commits have in rows. @throws the error of SQLite. */
  spill(): void {
    if (this.#kept.bytes > 0) this.write([], this.#closed)
  }

  /** Forgets the frames that only commits have. */
  drop(): void {
    this.#kept.clear()
    this.#slice.live?.releaseFrames()
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

  /** The place before the event after a number, from which a reader begins. The number may be higher than the last one. */
  cursorAfter(sequence: number): LogCursor {
    const { first } = this.#kept
    const isKept = first !== null && sequence + 1 >= first
    // A reader of kept frames goes on by their numbers.
    const position = isKept ? this.#lastRow : this.#rowPositionBefore(sequence + 1)
    return { position, offset: null, read: sequence, after: sequence }
  }

  /**
   * The next whole frames for a reader, and moves its cursor: as many as are sent together, or a part of one that is larger
   * than a row. What is large is held for the reader until it is released. Null when there is nothing more.
   */
  next(cursor: LogCursor, holder: SegmentHolder): Uint8Array | null {
    return this.#reader.next(cursor, holder, this.#lastRow, this.#kept)
  }

  /** The bodies of all rows, and the frames that only commits have, in order. */
  *bodies(): Generator<Uint8Array> {
    const { sql, firstKey } = this.#slice
    if (this.#lastRow >= firstKey) {
      const select = 'SELECT body FROM event_segments WHERE position >= ? AND position <= ? ORDER BY position'
      for (const { body } of sql.exec(select, firstKey, this.#lastRow)) yield bytesOf(body)
    }
    for (const { bytes } of this.#kept.pieces) yield bytes
  }

  /** Releases the large segment that a reader has sent. */
  release(holder: SegmentHolder): void {
    this.#reader.release(holder)
  }

  /**
   * Deletes the events after a number. There may be no reader.
   * @throws RangeError if there is no event of this number, or it is larger than a row.
   */
  cut(sequence: number): void {
    if (sequence >= this.#lastSequence) return
    this.spill()
    const { firstKey } = this.#slice
    const from = firstKey + (sequence + 1) * ROWS_PER_EVENT
    const row = this.#rowBefore(from)
    const first = row && Math.floor((row.position - firstKey) / ROWS_PER_EVENT)
    if (row === null || first === null || row.last < sequence)
      throw new RangeError(`there is no event ${sequence}`)
    this.#slice.transactionSync(() => {
      this.#exec('DELETE FROM event_segments WHERE position >= ? AND position <= ?', from, this.#lastRow)
      if (row.last > sequence) {
        const body = this.#reader.body(row.position)
        const kept = body.slice(0, endOfFrames(body, sequence - first + 1))
        const update = 'UPDATE event_segments SET last_sequence = ?, body = ? WHERE position = ?'
        this.#exec(update, sequence, kept, row.position)
      }
    })
    this.#lastRow = row.position
    this.#lastSequence = sequence
    this.#reader.forget()
  }

  #insert({ position, last, bytes }: Segment, closes: boolean): void {
    this.#exec('INSERT INTO event_segments VALUES (?, ?, ?, ?)', position, last, closes ? 1 : 0, bytes)
  }

  #markClosed(): void {
    const { firstKey } = this.#slice
    if (this.#lastRow >= firstKey) {
      this.#exec('UPDATE event_segments SET closes = 1 WHERE position = ?', this.#lastRow)
    } else {
      this.#insert({ position: firstKey, first: 0, last: 0, bytes: new Uint8Array(0) }, true)
    }
  }

  #exec(statement: string, ...bindings: unknown[]): void {
    this.rowsWritten += this.#slice.sql.exec(statement, ...bindings).rowsWritten
  }

  #rowBefore(position: number): { position: number; last: number; closes: boolean } | null {
    const { sql, firstKey } = this.#slice
    const [row] = sql
      .exec(
        `SELECT position, last_sequence, closes FROM event_segments WHERE position >= ? AND position < ?
          ORDER BY position DESC LIMIT 1`,
        firstKey,
        position,
      )
      .toArray()
    if (row === undefined) return null
    return { position: Number(row.position), last: Number(row.last_sequence), closes: row.closes === 1 }
  }

  /** The position after which the row of an event is read. */
  #rowPositionBefore(sequence: number): number {
    const { firstKey } = this.#slice
    const last = this.#kept.first === null ? this.#lastSequence : this.#kept.first - 1
    if (sequence > last) return this.#lastRow
    // The row of a large event begins with its first part.
    const { sql } = this.#slice
    const { position } = sql
      .exec(
        'SELECT max(position) AS position FROM event_segments WHERE position >= ? AND position <= ?',
        firstKey,
        firstKey + sequence * ROWS_PER_EVENT,
      )
      .one()
    return Number(position ?? firstKey) - 1
  }
}
