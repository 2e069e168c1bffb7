import type { KeptFrom } from '../records/chain.ts'
import type { AccountState } from './account-tables.ts'
import { linesOf } from './commit-row.ts'

/**
 * Finds commits in the log by their number, their time, or the last sequence after them. Numbers have no gaps, and time and
 * sequence never fall, so that each search reads some twenty rows of a log that may have millions.
 */
export class CommitSearch {
  readonly #sql: SqlStorage

  constructor(sql: SqlStorage) {
    this.#sql = sql
  }

  /** The number of the oldest commit; null when there is none. */
  oldest(): number | null {
    return (
      this.#first<{ number: number }>('SELECT number FROM commits ORDER BY number LIMIT 1')?.number ?? null
    )
  }

  /** The newest commit's number, and the state after it; null when there is none. */
  newest(): (AccountState & { number: number }) | null {
    return this.#first('SELECT number, sequence, hash, balance FROM commits ORDER BY number DESC LIMIT 1')
  }

  /** The state after a commit; null when the log does not have it. */
  stateAfter(number: number): AccountState | null {
    return this.#first('SELECT sequence, hash, balance FROM commits WHERE number = ?', number)
  }

  /** The last commit whose records all have this sequence or a lower one; 0 when there is none. */
  lastUpTo(sequence: number): number {
    const [oldest, newest] = [this.oldest(), this.newest()]
    if (oldest === null || newest === null) return 0
    const after = this.#firstWhere(oldest, newest.number + 1, (number) => {
      const state = this.stateAfter(number)
      return state !== null && state.sequence > sequence
    })
    return after === oldest ? 0 : after - 1
  }

  /** The first commit of a range that is not older than `instant`; `to` when all are. */
  firstSince(instant: number, from: number, to: number): number {
    return this.#firstWhere(from, to, (number) => {
      const row = this.#first<{ at: number }>('SELECT at FROM commits WHERE number = ?', number)
      return row !== null && row.at >= instant
    })
  }

  /** The oldest record of a commit or of those after it; null when there is none. */
  firstRecord(number: number): KeptFrom | null {
    const row = this.#first<{ at: number; sequence: number; ids: string }>(
      `SELECT at, sequence, ids FROM commits WHERE number >= ? AND ids <> '' ORDER BY number LIMIT 1`,
      number,
    )
    return row && { at: row.at, sequence: row.sequence - linesOf(row.ids).length + 1 }
  }

  /** The first number of a range for which a condition holds that holds for all that follow; `to` when there is none. */
  #firstWhere(from: number, to: number, holds: (number: number) => boolean): number {
    let [first, last] = [from, to]
    while (first < last) {
      const middle = Math.floor((first + last) / 2)
      if (holds(middle)) last = middle
      else first = middle + 1
    }
    return first
  }

  #first<Row extends { [Column in keyof Row]: SqlStorageValue }>(
    query: string,
    ...bindings: SqlStorageValue[]
  ): Row | null {
    return this.#sql.exec<Row>(query, ...bindings).toArray()[0] ?? null
  }
}
