import type { FlushSource } from '../records/flusher.ts'

/** Calls refused before anybody was known, of one address, minute and surface. */
export interface RejectedCount {
  ip: string
  /** First millisecond of the minute. */
  minute: number
  surface: string
  count: number
}

/** Addresses counted apart in one object; beyond that the counts of a flood go to `OVERFLOW_IP`. */
const MOST_ROWS = 10_000
const OVERFLOW_IP = '*'
const MINUTE_MS = 60_000
const BATCH_ROWS = 500

/**
 * Counts in a Durable Object's SQLite, one row write for each count that an isolate sends. What goes to Postgres is each row's total,
 * so that sending it twice does no harm; a row leaves once its minute is over and Postgres has it.
 */
export class RejectedCalls implements FlushSource<RejectedCount[]> {
  readonly #sql: SqlStorage
  readonly #send: (counts: RejectedCount[]) => Promise<void>
  readonly #now: () => number
  readonly #unsent = new Set<string>()
  #rows: number

  constructor(sql: SqlStorage, send: (counts: RejectedCount[]) => Promise<void>, now: () => number) {
    this.#sql = sql
    this.#send = send
    this.#now = now
    sql.exec(`CREATE TABLE IF NOT EXISTS rejected (
      minute INTEGER, ip TEXT, surface TEXT, count INTEGER NOT NULL, PRIMARY KEY (minute, ip, surface)) WITHOUT ROWID`)
    const rows = sql.exec('SELECT minute, ip, surface FROM rejected').toArray()
    this.#rows = rows.length
    for (const row of rows) this.#unsent.add(keyOf(Number(row.minute), String(row.ip), String(row.surface)))
  }

  /** Whether this storage has such counts. */
  static existIn(sql: SqlStorage): boolean {
    return sql.exec("SELECT name FROM sqlite_master WHERE name = 'rejected'").toArray().length > 0
  }

  /** @param calls how many, at least 1. */
  count(ip: string, minute: number, surface: string, calls = 1): void {
    const known = this.#exists(minute, ip, surface)
    const counted = known || this.#rows < MOST_ROWS ? ip : OVERFLOW_IP
    const created = !known && (counted === ip || !this.#exists(minute, counted, surface))
    this.#sql.exec(
      `INSERT INTO rejected VALUES (?, ?, ?, ?)
       ON CONFLICT (minute, ip, surface) DO UPDATE SET count = count + excluded.count`,
      ...[minute, counted, surface, calls],
    )
    if (created) this.#rows += 1
    this.#unsent.add(keyOf(minute, counted, surface))
  }

  pending(): number {
    return this.#unsent.size
  }

  /** What is taken goes to the end of the line: rows that keep changing, or are refused, must not hold back the others. */
  take(): RejectedCount[] | null {
    const keys = [...this.#unsent].slice(0, BATCH_ROWS)
    const batch = keys.map((key): RejectedCount => {
      this.#unsent.delete(key)
      this.#unsent.add(key)
      const [minute, ip, surface] = JSON.parse(key) as [number, string, string]
      return { ip, minute, surface, count: this.#countOf(minute, ip, surface) }
    })
    return batch.length === 0 ? null : batch
  }

  write(batch: RejectedCount[]): Promise<void> {
    return this.#send(batch)
  }

  written(batch: RejectedCount[]): void {
    // A minute more than needed: a call that was refused at the end of its minute may be counted a little later.
    const over = this.#now() - 2 * MINUTE_MS
    for (const { ip, minute, surface, count } of batch) {
      if (this.#countOf(minute, ip, surface) === count) this.#unsent.delete(keyOf(minute, ip, surface))
    }
    const old = this.#sql.exec('SELECT minute, ip, surface FROM rejected WHERE minute < ?', over).toArray()
    for (const row of old) {
      const [minute, ip, surface] = [Number(row.minute), String(row.ip), String(row.surface)]
      if (this.#unsent.has(keyOf(minute, ip, surface))) continue
      this.#sql.exec('DELETE FROM rejected WHERE minute = ? AND ip = ? AND surface = ?', minute, ip, surface)
      this.#rows -= 1
    }
  }

  #exists(minute: number, ip: string, surface: string): boolean {
    return this.#countOf(minute, ip, surface) > 0
  }

  #countOf(minute: number, ip: string, surface: string): number {
    const [row] = this.#sql
      .exec('SELECT count FROM rejected WHERE minute = ? AND ip = ? AND surface = ?', minute, ip, surface)
      .toArray()
    return row ? Number(row.count) : 0
  }
}

function keyOf(minute: number, ip: string, surface: string): string {
  return JSON.stringify([minute, ip, surface])
}
