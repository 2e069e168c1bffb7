import { joinBytes } from '../../lib/byte-edits.ts'
import { hasTable } from '../../lib/has-table.ts'

/** Half of what the platform allows in a row, https://developers.cloudflare.com/durable-objects/platform/limits/. */
const MOST_ROW_BYTES = 1024 * 1024
/** Bytes of a character of a head, at most. */
const CHARACTER_BYTES = 3

/** Whole frames of one log, which follow each other. */
export interface Frames {
  /** Number of the first event, and of the last one. */
  first: number
  last: number
  bytes: Uint8Array
}

/** What one response has in a commit. */
export interface CommitPart {
  /** Number of the response in its object. */
  number: number
  frames: Frames | null
  /** The state of the response as JSON; null if it has not changed. */
  head: string | null
}

/** A part without its bytes: number, first and last event, size, head. */
type StoredPart = [number: number, first: number, last: number, size: number, head: string | null]

/** A row of the ring, as this instance knows it. */
interface Slot {
  /** Number of reasons for which a restart would need the row. */
  needs: number
  /** The responses that have anything in the row, needed or not. */
  numbers: readonly number[]
}

/**
 * The rows of an object in which all of its live responses store what they have at one time. A row that no live response needs
 * any more is overwritten by a later commit, since a deleted row is billed like a written one. What a response needs is known
 * to this instance only: a restarted object reads all rows once, and begins with none (`recoverCommits`).
 */
export class CommitRows {
  readonly #storage: DurableObjectStorage
  #exists: boolean
  #sequence: number
  readonly #slots = new Map<number, Slot>()
  readonly #free: number[] = []
  /** Rows with frames that are in no other row, by response. */
  readonly #frames = new Map<number, number[]>()
  /** The row with the newest head, by response. */
  readonly #heads = new Map<number, number>()

  /** @param sequence from which commits are counted: no earlier commit of the object may have a higher one. */
  constructor(storage: DurableObjectStorage, sequence: number) {
    this.#storage = storage
    this.#exists = hasTable(storage.sql, 'response_commits')
    this.#sequence = sequence
  }

  /** Whether there may be a commit. */
  get exist(): boolean {
    return this.#exists
  }

  /** Number of the last commit. */
  get sequence(): number {
    return this.#sequence
  }

  /**
   * Stores parts, all or none of them: in one row, or in as many as their size requires.
   * @throws the error of SQLite.
   */
  write(parts: readonly CommitPart[]): void {
    const rows = inRows(parts).map((row) => ({ row, ...this.#takeSlot() }))
    const put = (): void => {
      this.#create()
      for (const { row, slot, isNew } of rows) this.#put(slot, this.#sequence + 1, row, isNew)
    }
    try {
      // A single statement is atomic by itself, and most commits are one.
      if (this.#exists && rows.length === 1) put()
      else this.#storage.transactionSync(put)
    } catch (error) {
      for (const { slot, isNew } of rows) {
        if (isNew) this.#slots.delete(slot)
        else this.#free.push(slot)
      }
      throw error
    }
    this.#exists = true
    this.#sequence++
    for (const { row, slot } of rows) this.#note(slot, row)
  }

  /** The frames of a response in these rows are stored elsewhere, or deleted. */
  releaseFrames(number: number): void {
    for (const slot of this.#frames.get(number) ?? []) this.#release(slot)
    this.#frames.delete(number)
  }

  /** The head of a response in these rows is stored elsewhere, or deleted. */
  releaseHead(number: number): void {
    const slot = this.#heads.get(number)
    if (slot !== undefined) this.#release(slot)
    this.#heads.delete(number)
  }

  /** Whether the newest head of a response is in these rows. */
  hasHead(number: number): boolean {
    return this.#heads.has(number)
  }

  /** Whether these rows have the only copy of anything of a response. */
  isNeededBy(number: number): boolean {
    return this.#heads.has(number) || (this.#frames.get(number)?.length ?? 0) > 0
  }

  /** Number of rows with anything of a response. */
  countOf(number: number): number {
    return this.#slotsOf(number).length
  }

  /** Number of responses that need a row. */
  get needing(): number {
    return new Set([...this.#frames.keys(), ...this.#heads.keys()]).size
  }

  /** Overwrites what rows have of a response, which must have released it. The parts of others stay. */
  eraseFrom(number: number): void {
    for (const slot of this.#slotsOf(number)) {
      const { sequence, parts } = this.#read(slot)
      const others = parts.filter((part) => part.number !== number)
      this.#put(slot, sequence, others, false)
      const { needs } = this.#slots.get(slot) as Slot
      this.#slots.set(slot, { needs, numbers: numbersOf(others) })
    }
  }

  /** Drops all rows. No response may need one. */
  drop(): void {
    if (this.#exists) this.#storage.sql.exec('DROP TABLE response_commits')
    this.forget()
  }

  /** To be called when all storage of the object is deleted. */
  forget(): void {
    this.#exists = false
    this.#slots.clear()
    this.#free.length = 0
    this.#frames.clear()
    this.#heads.clear()
  }

  /** Every commit, in order. One row is in memory at a time. */
  *commits(): Generator<{ sequence: number; parts: CommitPart[] }> {
    if (!this.#exists) return
    const select = 'SELECT slot, sequence FROM response_commits'
    const rows = this.#storage.sql.exec<{ slot: number; sequence: number }>(select).toArray()
    rows.sort((one, other) => one.sequence - other.sequence)
    for (const { slot } of rows) yield this.#read(slot)
  }

  #takeSlot(): { slot: number; isNew: boolean } {
    const free = this.#free.pop()
    if (free !== undefined) return { slot: free, isNew: false }
    const slot = this.#slots.size
    this.#slots.set(slot, { needs: 0, numbers: [] })
    return { slot, isNew: true }
  }

  #note(slot: number, parts: readonly CommitPart[]): void {
    let needs = 0
    for (const { number, frames, head } of parts) {
      if (frames) {
        needs++
        const slots = this.#frames.get(number)
        if (slots) slots.push(slot)
        else this.#frames.set(number, [slot])
      }
      if (head !== null) {
        needs++
        this.releaseHead(number)
        this.#heads.set(number, slot)
      }
    }
    this.#slots.set(slot, { needs, numbers: numbersOf(parts) })
  }

  #release(slot: number): void {
    const row = this.#slots.get(slot)
    if (!row) return
    row.needs--
    if (row.needs === 0) this.#free.push(slot)
  }

  #slotsOf(number: number): number[] {
    return [...this.#slots].flatMap(([slot, { numbers }]) => (numbers.includes(number) ? [slot] : []))
  }

  #put(slot: number, sequence: number, parts: readonly CommitPart[], isNew: boolean): void {
    const stored = parts.map(({ number, frames, head }): StoredPart => {
      const { first, last, bytes } = frames ?? NO_FRAMES
      return [number, first, last, bytes.length, head]
    })
    const body = joinBytes(parts.flatMap(({ frames }) => (frames ? [frames.bytes] : [])))
    const statement = isNew
      ? 'INSERT INTO response_commits (sequence, parts, body, slot) VALUES (?, ?, ?, ?)'
      : 'UPDATE response_commits SET sequence = ?, parts = ?, body = ? WHERE slot = ?'
    const { rowsWritten } = this.#storage.sql.exec(statement, sequence, JSON.stringify(stored), body, slot)
    if (rowsWritten !== 1) throw new Error(`a commit wrote ${rowsWritten} rows`)
  }

  #read(slot: number): { sequence: number; parts: CommitPart[] } {
    const select = 'SELECT sequence, parts, body FROM response_commits WHERE slot = ?'
    const { sequence, parts, body } = this.#storage.sql
      .exec<{ sequence: number; parts: string; body: ArrayBuffer }>(select, slot)
      .one()
    let end = 0
    const read = (JSON.parse(parts) as StoredPart[]).map(([number, first, last, size, head]): CommitPart => {
      const from = end
      end += size
      const frames = size === 0 ? null : { first, last, bytes: new Uint8Array(body.slice(from, end)) }
      return { number, frames, head }
    })
    return { sequence, parts: read }
  }

  #create(): void {
    if (this.#exists) return
    this.#storage.sql.exec(
      'CREATE TABLE response_commits (slot INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, parts TEXT NOT NULL, body BLOB NOT NULL)',
    )
  }
}

const NO_FRAMES: Frames = { first: 0, last: 0, bytes: new Uint8Array(0) }

const numbersOf = (parts: readonly CommitPart[]): number[] => parts.map(({ number }) => number)

/** Parts that fit a row together. */
function inRows(parts: readonly CommitPart[]): CommitPart[][] {
  const rows: CommitPart[][] = []
  let size = Number.POSITIVE_INFINITY
  for (const part of parts) {
    const bytes = (part.frames?.bytes.length ?? 0) + (part.head?.length ?? 0) * CHARACTER_BYTES
    if (size + bytes > MOST_ROW_BYTES) {
      rows.push([])
      size = 0
    }
    rows.at(-1)?.push(part)
    size += bytes
  }
  return rows
}
