import type { Clock } from '../../lib/clock.ts'
import { hasTable } from '../../lib/has-table.ts'
import type { FlushSource } from '../records/flusher.ts'

/** Calls without a valid key, from one address in one minute on one surface. */
export interface RejectedCount {
  ip: string
  /** First millisecond of the minute. */
  minute: number
  surface: string
  count: number
}

type Stored = RejectedCount & Record<string, SqlStorageValue>
type Row = Pick<RejectedCount, 'minute' | 'ip' | 'surface'>

/** Rows of one object. Beyond that, a flood from many addresses is counted under `*` and the object's name. */
const MOST_ROWS = 10_000
const MINUTE_MS = 60_000
/** Time for which a minute accepts late counts, from its beginning. Then its totals are final. */
const OPEN_MS = 5 * MINUTE_MS
const BATCH_ROWS = 500
/** Rows that one audit record states. */
const STATED_ROWS = 200

interface RejectedCallsOptions {
  /** Name of the object: each object has its own row for overflowing counts. */
  name: string
  clock: Clock
  /** Stores totals in Postgres. */
  write: (counts: RejectedCount[]) => Promise<void>
  /** Records final totals in the chain of the deployment. Idempotent. */
  state: (counts: RejectedCount[]) => Promise<void>
}

/**
 * Counts in a Durable Object's SQLite. Postgres gets the total of each row, so writing it twice does no harm. A row is
 * deleted when its total is final, Postgres has it, and a record of the deployment's chain states it.
 */
export class RejectedCalls implements FlushSource<RejectedCount[]> {
  readonly write: (counts: RejectedCount[]) => Promise<void>
  /** Final totals, on their way into the chain. */
  readonly final: FlushSource<RejectedCount[]>
  readonly #overflowIp: string
  readonly #sql: SqlStorage
  readonly #clock: Clock
  readonly #unsent = new Map<string, Row>()
  #rows: number

  constructor(sql: SqlStorage, { name, clock, write, state }: RejectedCallsOptions) {
    this.#sql = sql
    this.write = write
    this.#clock = clock
    this.#overflowIp = `* ${name}`
    this.final = {
      pending: () => this.#finalRows(1).length,
      take: () => {
        const rows = this.#finalRows(STATED_ROWS)
        return rows.length === 0 ? null : rows
      },
      write: state,
      written: (counts) => this.#delete(counts),
    }
    sql.exec(`CREATE TABLE IF NOT EXISTS rejected (
      minute INTEGER, ip TEXT, surface TEXT, count INTEGER NOT NULL, PRIMARY KEY (minute, ip, surface)) WITHOUT ROWID`)
    this.resend()
    this.#rows = this.#unsent.size
  }

  /** Whether this storage has such counts. */
  static existIn(sql: SqlStorage): boolean {
    return hasTable(sql, 'rejected')
  }

  /**
   * Counts in the minute of the call, or in the current one if the totals of that minute are final.
   * @param calls how many, at least 1.
   */
  count(ip: string, minuteOfCall: number, surface: string, calls = 1): void {
    const now = this.#clock()
    const minute = isFinal(minuteOfCall, now) ? now - (now % MINUTE_MS) : minuteOfCall
    let row: Row = { minute, ip, surface }
    if (this.#rows >= MOST_ROWS && this.#countOf(row) === 0) row = { ...row, ip: this.#overflowIp }
    if (this.#countOf(row) === 0) this.#rows += 1
    this.#sql.exec(
      `INSERT INTO rejected VALUES (?, ?, ?, ?)
       ON CONFLICT (minute, ip, surface) DO UPDATE SET count = count + excluded.count`,
      minute,
      row.ip,
      surface,
      calls,
    )
    this.#unsent.set(keyOf(row), row)
  }

  /** Has all totals written again that are still here: Postgres may have lost them. */
  resend(): void {
    const rows = this.#sql.exec<Row>('SELECT minute, ip, surface FROM rejected').toArray()
    for (const row of rows) this.#unsent.set(keyOf(row), row)
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
  }

  /** When the totals of the oldest minute that is still open become final; null when there is none. */
  nextFinalAt(): number | null {
    const open = 'SELECT min(minute) AS minute FROM rejected WHERE minute > ?'
    const [row] = this.#sql.exec<{ minute: number | null }>(open, this.#clock() - OPEN_MS).toArray()
    return row?.minute == null ? null : row.minute + OPEN_MS
  }

  /** Rows with final totals that Postgres has. */
  #finalRows(most: number): RejectedCount[] {
    const final = 'SELECT * FROM rejected WHERE minute <= ? ORDER BY minute, ip, surface'
    const found: RejectedCount[] = []
    for (const row of this.#sql.exec<Stored>(final, this.#clock() - OPEN_MS)) {
      if (!this.#unsent.has(keyOf(row))) found.push(row)
      if (found.length === most) break
    }
    return found
  }

  #delete(rows: readonly RejectedCount[]): void {
    for (const { minute, ip, surface } of rows) {
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

const isFinal = (minute: number, now: number): boolean => minute <= now - OPEN_MS

const keyOf = ({ minute, ip, surface }: Row): string => JSON.stringify([minute, ip, surface])
