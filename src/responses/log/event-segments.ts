import { joinBytes } from '../../lib/byte-edits.ts'
import { hasTable } from '../../lib/has-table.ts'
import { HeldSegments, type SegmentHolder } from './held-segments.ts'

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
  /** Orders the segments: ROWS_PER_EVENT times the number of the first event, plus the number of the part. */
  position: number
  first: number
  last: number
  bytes: Uint8Array
}

/** Rows after a position. Bodies of large segments are null: they are read once for all readers. */
const NEXT_ROWS = `
  SELECT position, last_sequence, CASE WHEN length(body) <= ${SMALL_SEGMENT_BYTES} THEN body END AS body
  FROM event_segments WHERE position > ? ORDER BY position LIMIT ?`

/**
 * The rows of an event log. The key is a plain integer, so that an insert writes one row; a second index would write two.
 * The end of the log is marked in its last row, so that the last event and the end are stored together. The table is
 * created with the first event: an object that is only queried must store nothing.
 */
export class EventSegments {
  /** Number of rows written since construction. */
  rowsWritten = 0
  readonly #storage: DurableObjectStorage
  readonly #held = new HeldSegments()
  #tableExists: boolean
  #closed = false
  #lastSequence = 0
  #lastPosition = -1
  /** The last written segment, which all readers at the live edge send, and the position of the one before it. */
  #newest: Segment | null = null
  #beforeNewest = -1
  /** Rows of the next query: about as many as are sent together. */
  #rowLimit = 1

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage
    this.#tableExists = hasTable(storage.sql, 'event_segments')
    if (!this.#tableExists) return
    const [row] = storage.sql
      .exec('SELECT position, last_sequence, closes FROM event_segments ORDER BY position DESC LIMIT 1')
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
    const segments = [...packed(frames)]
    const insert = (): void => {
      this.#createTable()
      if (segments.length === 0 && closes) this.#markClosed()
      segments.forEach((segment, index) => {
        this.#insert(segment, closes && index === segments.length - 1)
      })
    }
    // A single statement is atomic by itself, and most writes are one.
    if (this.#tableExists && segments.length <= 1) insert()
    else this.#storage.transactionSync(insert)
    for (const segment of segments) {
      this.#beforeNewest = this.#lastPosition
      this.#newest = segment
      this.#lastPosition = segment.position
      this.#lastSequence = segment.last
    }
    this.#tableExists = true
    this.#closed = closes
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
    for (const row of this.#storage.sql.exec(NEXT_ROWS, position, this.#rowLimit).toArray()) {
      const at = Number(row.position)
      const isLarge = row.body === null
      if (isLarge && segments.length > 0) break
      const bytes = isLarge ? this.#held.hold(at, holder, () => this.#body(at)) : bytesOf(row.body)
      if (size > 0 && size + bytes.length > SMALL_SEGMENT_BYTES) break
      const first = Math.floor(at / ROWS_PER_EVENT)
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
    if (!this.#tableExists) return
    for (const { body } of this.#storage.sql.exec('SELECT body FROM event_segments ORDER BY position')) {
      yield bytesOf(body)
    }
  }

  /** Releases the large segment that a reader has sent. */
  release(holder: SegmentHolder): void {
    this.#held.release(holder)
  }

  /** The position after which an event and all that follow it are read. */
  positionBefore(sequence: number): number {
    if (sequence > this.#lastSequence) return this.#lastPosition
    const { position } = this.#storage.sql
      .exec(
        'SELECT max(position) AS position FROM event_segments WHERE position <= ?',
        sequence * ROWS_PER_EVENT,
      )
      .one()
    return Number(position ?? 0) - 1
  }

  /**
   * Deletes the events after a number. There may be no reader.
   * @throws RangeError if one of them is in the row of an earlier one.
   */
  cut(sequence: number): void {
    if (sequence >= this.#lastSequence) return
    const from = (sequence + 1) * ROWS_PER_EVENT
    const [row] = this.#storage.sql
      .exec(
        'SELECT position, last_sequence FROM event_segments WHERE position < ? ORDER BY position DESC LIMIT 1',
        from,
      )
      .toArray()
    if (Number(row?.last_sequence) !== sequence) throw new RangeError(`no row ends with event ${sequence}`)
    this.#exec('DELETE FROM event_segments WHERE position >= ?', from)
    this.#lastPosition = Number(row?.position)
    this.#lastSequence = sequence
    this.#newest = null
  }

  /** Deletes the rows. The instance must not be used afterwards. */
  clear(): void {
    if (this.#tableExists) this.#exec('DELETE FROM event_segments')
  }

  #createTable(): void {
    if (this.#tableExists) return
    this.#storage.sql.exec(`CREATE TABLE IF NOT EXISTS event_segments (
      position INTEGER PRIMARY KEY, last_sequence INTEGER NOT NULL, closes INTEGER NOT NULL, body BLOB NOT NULL)`)
  }

  #insert({ position, last, bytes }: Segment, closes: boolean): void {
    this.#exec('INSERT INTO event_segments VALUES (?, ?, ?, ?)', position, last, closes ? 1 : 0, bytes)
  }

  #markClosed(): void {
    if (this.#lastPosition >= 0) {
      this.#exec('UPDATE event_segments SET closes = 1 WHERE position = ?', this.#lastPosition)
    } else {
      this.#insert({ position: 0, first: 0, last: 0, bytes: new Uint8Array(0) }, true)
    }
  }

  #exec(statement: string, ...bindings: unknown[]): void {
    this.rowsWritten += this.#storage.sql.exec(statement, ...bindings).rowsWritten
  }

  #body(position: number): Uint8Array {
    const { body } = this.#storage.sql
      .exec('SELECT body FROM event_segments WHERE position = ?', position)
      .one()
    return bytesOf(body)
  }
}

const bytesOf = (body: SqlStorageValue | undefined): Uint8Array => new Uint8Array(body as ArrayBuffer)

/** Packs whole frames into segments up to the size of a row, and splits a frame larger than a row. */
function* packed(frames: readonly Frame[]): Generator<Segment> {
  let together: Frame[] = []
  let size = 0
  for (const frame of frames) {
    const { length } = frame.bytes
    if (together.length > 0 && size + length > MAXIMUM_ROW_BYTES) {
      yield joined(together)
      together = []
      size = 0
    }
    if (length > MAXIMUM_ROW_BYTES) {
      yield* split(frame)
    } else {
      together.push(frame)
      size += length
    }
  }
  if (together.length > 0) yield joined(together)
}

function* split({ sequence, bytes }: Frame): Generator<Segment> {
  const count = Math.ceil(bytes.length / MAXIMUM_ROW_BYTES)
  if (count > ROWS_PER_EVENT) throw new RangeError(`event ${sequence} is too large`)
  for (let part = 0; part < count; part += 1) {
    yield {
      position: sequence * ROWS_PER_EVENT + part,
      first: sequence,
      last: sequence,
      // A copy: a view would keep the whole event in memory as long as its last part.
      bytes: bytes.slice(part * MAXIMUM_ROW_BYTES, (part + 1) * MAXIMUM_ROW_BYTES),
    }
  }
}

function joined(frames: readonly Frame[]): Segment {
  const [first, last] = [frames[0]?.sequence ?? 0, frames.at(-1)?.sequence ?? 0]
  return {
    position: first * ROWS_PER_EVENT,
    first,
    last,
    bytes: joinBytes(frames.map(({ bytes }) => bytes)),
  }
}
