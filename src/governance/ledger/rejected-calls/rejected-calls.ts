import type { Clock } from '../../../lib/clock.ts'
import { hasTable } from '../../../lib/has-table.ts'
import type { FlushSource } from '../records/flusher.ts'

/** Calls without a valid key, from one address in one minute on one surface. */
export interface RejectedCount {
  ip: string
  /** First millisecond of the minute. */
  minute: number
  surface: string
  count: number
}

type Row = Pick<RejectedCount, 'minute' | 'ip' | 'surface'>

/** Rows of one object. Beyond that, a flood from many addresses is counted under `OVERFLOW_IP`. */
const MOST_ROWS = 10_000
const OVERFLOW_IP = '*'
const MINUTE_MS = 60_000
const BATCH_ROWS = 500

/**
 * Counts in a Durable Object's SQLite. Postgres gets the total of each row, so writing it twice does no harm. A row is
 * deleted when its minute is over and Postgres has its total.
 */
export class RejectedCalls implements FlushSource<RejectedCount[]> {
  readonly write: (counts: RejectedCount[]) => Promise<void>
  readonly #sql: SqlStorage
  readonly #clock: Clock
  readonly #unsent = new Map<string, Row>()
  #rows: number

  /** @param write stores totals in Postgres. */
  constructor(sql: SqlStorage, write: (counts: RejectedCount[]) => Promise<void>, clock: Clock) {
    this.#sql = sql
    this.write = write
    this.#clock = clock
    sql.exec(`CREATE TABLE IF NOT EXISTS rejected (
      minute INTEGER, ip TEXT, surface TEXT, count INTEGER NOT NULL, PRIMARY KEY (minute, ip, surface)) WITHOUT ROWID`)
    const rows = sql.exec<Row>('SELECT minute, ip, surface FROM rejected').toArray()
    this.#rows = rows.length
    for (const row of rows) this.#unsent.set(keyOf(row), row)
  }

  /** Whether this storage has such counts. */
  static existIn(sql: SqlStorage): boolean {
    return hasTable(sql, 'rejected')
  }

  /** @param calls how many, at least 1. */
  count(ip: string, minute: number, surface: string, calls = 1): void {
    let row: Row = { minute, ip, surface }
    if (this.#rows >= MOST_ROWS && this.#countOf(row) === 0) row = { ...row, ip: OVERFLOW_IP }
    if (this.#countOf(row) === 0) this.#rows += 1
    this.#sql.exec(
      `INSERT INTO rejected VALUES (?, ?, ?, ?)
       ON CONFLICT (minute, ip, surface) DO UPDATE SET count = count + excluded.count`,
      ...[minute, row.ip, surface, calls],
    )
    this.#unsent.set(keyOf(row), row)
  }

  pending(): number {
    return this.#unsent.size
  }

  /** Rows that are taken go to the end of the queue: those that keep changing, or are refused, do not hold back the others. */
  take(): RejectedCount[] | null {
    const rows = [...this.#unsent].slice(0, BATCH_ROWS)
    for (const [key, row] of rows) {
      this.#unsent.delete(key)
      this.#unsent.set(key, row)
    }
    return rows.length === 0 ? null : rows.map(([, row]) => ({ ...row, count: this.#countOf(row) }))
  }

  written(batch: RejectedCount[]): void {
    for (const row of batch) if (this.#countOf(row) === row.count) this.#unsent.delete(keyOf(row))
    // A minute later than needed: a call that was rejected at the end of its minute may be counted a little later.
    const over = this.#clock() - 2 * MINUTE_MS
    const old = this.#sql
      .exec<Row>('SELECT minute, ip, surface FROM rejected WHERE minute < ?', over)
      .toArray()
    for (const row of old) {
      if (this.#unsent.has(keyOf(row))) continue
      const { minute, ip, surface } = row
      this.#sql.exec('DELETE FROM rejected WHERE minute = ? AND ip = ? AND surface = ?', minute, ip, surface)
      this.#rows -= 1
    }
  }

  /** 0 when there is no such row. */
  #countOf({ minute, ip, surface }: Row): number {
    const query = 'SELECT count FROM rejected WHERE minute = ? AND ip = ? AND surface = ?'
    const [row] = this.#sql.exec<{ count: number }>(query, minute, ip, surface).toArray()
    return row?.count ?? 0
  }
}

const keyOf = ({ minute, ip, surface }: Row): string => JSON.stringify([minute, ip, surface])
