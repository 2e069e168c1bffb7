import type { AccountTables } from '../account/account-tables.ts'
import type { ChainLink } from './chain.ts'

/** Limits of one batch to Postgres. */
const BATCH_RECORDS = 200
const BATCH_CHARACTERS = 4_000_000

/** The records of an account that Postgres does not have yet. */
export class Outbox {
  readonly #tables: AccountTables
  #flushed: number
  #flushedCommit: number
  /** Commits of the last batch, with the last sequence of each. */
  #taken: Array<{ number: number; sequence: number }> = []

  /** @param flushed the last sequence that Postgres has. */
  constructor(tables: AccountTables, flushed: number) {
    this.#tables = tables
    this.#flushed = flushed
    this.#flushedCommit = tables.search.lastUpTo(flushed)
  }

  get flushed(): number {
    return this.#flushed
  }

  /** The last commit of which Postgres has every record. */
  get flushedCommit(): number {
    return this.#flushedCommit
  }

  /** When the oldest was appended, in milliseconds since the epoch. */
  oldestAt(): number | null {
    for (const { at } of this.#tables.recordsAfter(this.#flushedCommit)) return at
    return null
  }

  /** The oldest, without taking it; null when Postgres has all. */
  firstPending(): ChainLink | null {
    for (const { links } of this.#tables.recordsAfter(this.#flushedCommit)) {
      const pending = links.find(({ sequence }) => sequence > this.#flushed)
      if (pending) return pending
    }
    return null
  }

  /** The oldest, in order: as many as one batch holds, at least one. */
  nextBatch(): ChainLink[] {
    const batch: ChainLink[] = []
    let size = 0
    this.#taken = []
    for (const { number, links } of this.#tables.recordsAfter(this.#flushedCommit)) {
      this.#taken.push({ number, sequence: links.at(-1)?.sequence ?? 0 })
      for (const link of links) {
        if (link.sequence <= this.#flushed) continue
        size += link.body.length
        if (batch.length > 0 && (size > BATCH_CHARACTERS || batch.length >= BATCH_RECORDS)) return batch
        batch.push(link)
      }
    }
    return batch
  }

  /** Makes everything after a sequence pending again that the log still has. */
  rewind(sequence: number): void {
    this.#flushed = sequence
    this.#flushedCommit = this.#tables.search.lastUpTo(sequence)
    this.#taken = []
  }

  markFlushed(sequence: number): void {
    this.#flushed = sequence
    for (const { number, sequence: last } of this.#taken) {
      if (last <= sequence) this.#flushedCommit = Math.max(number, this.#flushedCommit)
    }
  }
}
