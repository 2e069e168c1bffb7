import { joinBytes } from '../../lib/byte-edits.ts'
import { HeldSegments, type SegmentHolder } from './held-segments.ts'

/** Half of what the platform takes in a row, https://developers.cloudflare.com/durable-objects/platform/limits/. */
export const MAXIMUM_ROW_BYTES = 1024 * 1024
/** Segments up to this are small enough for every tail to have its own copy; of larger ones there is one. */
export const SMALL_SEGMENT_BYTES = 32 * 1024
/** Small ones that are read at once: where their size changes suddenly, that is still no more than a row may have. */
const MOST_ROWS_AHEAD = 32
/** An event larger than a row takes several; so many, that is a gigabyte, have a place before those of the next event. */
const ROWS_PER_EVENT = 1024

/** One event as it is sent. */
export interface Frame {
  sequence: number
  bytes: Uint8Array
}

/** A row: whole frames, or a part of one that is larger than a row. */
export interface Segment {
  /** Orders the segments: ROWS_PER_EVENT times the number of the first event, plus which part of it this is. */
  position: number
  first: number
  last: number
  bytes: Uint8Array
}

/** A row as it is read with others: without its bytes if they are many. */
type SmallSegment = Omit<Segment, 'bytes'> & { bytes: Uint8Array | null }

/**
 * The rows of an event log. The key is a plain integer, so that an insert writes one row (a second index would make it
 * two), and the end of the log is marked in its last row: the terminal event and the end are never stored apart.
 * Nothing is written, not even the table, before the first event: an object that is only asked leaves nothing behind.
 */
export class EventSegments {
  /** Written since construction. */
  rowsWritten = 0
  readonly #storage: DurableObjectStorage
  readonly #held = new HeldSegments()
  #tableExists: boolean
  #closed = false
  #lastSequence = 0
  #lastPosition = -1
  /** The segment written last, which all tails at the live edge send, and the position of the one before it. */
  #newest: Segment | null = null
  #beforeNewest = -1
  /** Rows that were read together with one that was asked for, the position they come after, and how many to read next. */
  #ahead: SmallSegment[] = []
  #aheadFrom = -1
  #rowsAhead = 1

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage
    this.#tableExists = this.#findTable()
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
   * Stores frames that follow the last one, all or none of them: one row, or as many as their size demands.
   * @param closes whether nothing comes after them. There may be no frames then. @throws what SQLite throws.
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
    // One statement is all or nothing by itself, and most writes are one.
    if (this.#tableExists && segments.length <= 1) insert()
    else this.#storage.transactionSync(insert)
    for (const segment of segments) this.#remember(segment)
    this.#tableExists = true
    this.#closed = closes
  }

  /** The first segment after a position, or null. A large one is held for the tail until it is released. */
  after(position: number, holder: SegmentHolder): Segment | null {
    if (position >= this.#lastPosition) return null
    const newest = this.#newest
    if (newest !== null && position >= this.#beforeNewest) {
      if (newest.bytes.length <= SMALL_SEGMENT_BYTES) return newest
      return { ...newest, bytes: this.#held.hold(newest.position, holder, () => newest.bytes) }
    }
    const row = this.#ahead.find((each) => each.position > position)
    const found = row && position >= this.#aheadFrom ? row : this.#readAhead(position)
    const { position: at, bytes } = found
    // A tail takes them all in one run, so that keeping them longer would serve nobody.
    if (found === this.#ahead.at(-1)) this.#ahead = []
    return { ...found, bytes: bytes ?? this.#held.hold(at, holder, () => this.#body(at)) }
  }

  /** Reads the rows after a position at once, about as many as a tail sends together. @returns the first of them */
  #readAhead(position: number): SmallSegment {
    const rows = this.#storage.sql
      .exec(
        `SELECT position, last_sequence, CASE WHEN length(body) <= ${SMALL_SEGMENT_BYTES} THEN body END AS body
          FROM event_segments WHERE position > ? ORDER BY position LIMIT ?`,
        position,
        this.#rowsAhead,
      )
      .toArray()
    this.#aheadFrom = position
    this.#ahead = rows.map((row) => ({
      position: Number(row.position),
      first: Math.floor(Number(row.position) / ROWS_PER_EVENT),
      last: Number(row.last_sequence),
      bytes: row.body === null ? null : bytesOf(row.body),
    }))
    const [first] = this.#ahead
    if (first === undefined) throw new Error(`there is no segment after ${position}`)
    const size = this.#ahead.reduce((sum, { bytes }) => sum + (bytes?.length ?? SMALL_SEGMENT_BYTES), 0)
    const fitting = Math.ceil((SMALL_SEGMENT_BYTES * this.#ahead.length) / Math.max(1, size))
    this.#rowsAhead = Math.min(MOST_ROWS_AHEAD, fitting)
    return first
  }

  /** What all rows hold, in order. */
  *bodies(): Generator<Uint8Array> {
    if (!this.#tableExists) return
    for (const { body } of this.#storage.sql.exec('SELECT body FROM event_segments ORDER BY position')) {
      yield bytesOf(body)
    }
  }

  /** The tail is done with the segment it was given. */
  release(holder: SegmentHolder): void {
    this.#held.release(holder)
  }

  /** The position to read on from for an event and all that come after it. */
  positionBefore(sequence: number): number {
    if (sequence > this.#lastSequence) return this.#lastPosition
    const [row] = this.#storage.sql
      .exec(
        'SELECT max(position) AS position FROM event_segments WHERE position <= ?',
        sequence * ROWS_PER_EVENT,
      )
      .toArray()
    return Number(row?.position ?? 0) - 1
  }

  /** Deletes everything: what comes then is a new log. All storage of the object may be deleted just before or after. */
  clear(): void {
    if (this.#findTable()) this.#exec('DELETE FROM event_segments')
    this.#tableExists = false
    this.#closed = false
    this.#lastSequence = 0
    this.#lastPosition = -1
    this.#newest = null
    this.#beforeNewest = -1
    this.#ahead = []
  }

  #findTable(): boolean {
    const query = "SELECT name FROM sqlite_master WHERE name = 'event_segments'"
    return this.#storage.sql.exec(query).toArray().length > 0
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

  #remember(segment: Segment): void {
    this.#beforeNewest = this.#lastPosition
    this.#newest = segment
    this.#lastPosition = segment.position
    this.#lastSequence = segment.last
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

function bytesOf(body: SqlStorageValue | undefined): Uint8Array {
  if (body instanceof ArrayBuffer) return new Uint8Array(body)
  throw new TypeError('a segment without a body')
}

/** Puts as many whole frames into a segment as a row takes, and a frame larger than a row into several. */
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
      yield* parts(frame)
    } else {
      together.push(frame)
      size += length
    }
  }
  if (together.length > 0) yield joined(together)
}

function* parts({ sequence, bytes }: Frame): Generator<Segment> {
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
