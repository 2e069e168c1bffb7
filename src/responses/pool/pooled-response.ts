import type { DurableResponse } from '../object/durable-response.ts'
import { KEYS_PER_RESPONSE, type Slice } from '../storage/slice.ts'
import type { Tables } from '../storage/tables.ts'
import type { PoolRow, PoolTable } from './pool-table.ts'

/** Time after its window for which the rows of a response stay if its object does. Mostly they are deleted with the object. */
const CLOSED_MS = 3_600_000

/** The parts of an object that its responses share. */
export interface PoolParts {
  storage: DurableObjectStorage
  tables: Tables
  table: PoolTable
  clock: () => number
  organizationId: () => string
  /** Called when the alarm of a response is set. */
  alarmBy: (time: number) => Promise<void>
  /** Called when a response is deleted, or its window closed. */
  left: () => Promise<void>
}

/** One response of an object with many: its slice of the storage, and its instance while it is in memory. */
export class PooledResponse implements Slice {
  readonly id: string
  readonly number: number
  readonly sql: SqlStorage
  readonly tables: Tables
  readonly firstKey: number
  readonly prefix: string
  /** Null while nothing of it is in memory. */
  instance: DurableResponse | null = null
  /** Calls and other work that use the instance. */
  uses = 0
  /** Number of its starts that have no answer yet. */
  starts = 0
  /** Time of its alarm; null before the first one. */
  due: number | null
  readonly #parts: PoolParts
  #isOpen: boolean
  #isStored: boolean
  #isClosed: boolean

  /** @param isStored whether `row` is in the table. */
  constructor(parts: PoolParts, row: PoolRow, isStored: boolean) {
    this.#parts = parts
    this.id = row.id
    this.number = row.number
    this.due = row.due
    this.sql = parts.storage.sql
    this.tables = parts.tables
    this.firstKey = row.number * KEYS_PER_RESPONSE
    this.prefix = `${row.number}/`
    this.#isOpen = row.open
    this.#isStored = isStored
    this.#isClosed = row.closed
  }

  /** Whether it is being started, or generates. */
  get isLive(): boolean {
    return this.starts > 0 || (this.instance?.isLive ?? false)
  }

  /** Whether it has to be continued after a restart of the object. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  get isStored(): boolean {
    return this.#isStored
  }

  /** Whether its window is closed: it does not exist for its owner any more. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  transactionSync<Result>(work: () => Result): Result {
    return this.#parts.storage.transactionSync(work)
  }

  open(): void {
    if (this.#isStored) return
    const { table, organizationId } = this.#parts
    table.insert({ number: this.number, id: this.id, open: true, due: null, closed: false }, organizationId())
    this.#isStored = true
    this.#isOpen = true
  }

  async setAlarm(time: number, isActive: boolean): Promise<void> {
    const due = isActive ? null : time
    // The time is stored for a response that nothing opens after a restart.
    const isChanged = isActive !== this.#isOpen || (!isActive && time !== this.due)
    this.#isOpen = isActive
    this.due = time
    if (this.#isStored && isChanged) {
      this.#parts.table.update({ number: this.number, open: isActive, due, closed: false })
    }
    await this.#parts.alarmBy(time)
  }

  async deleteAll(): Promise<void> {
    if (this.#isStored) this.#parts.table.delete(this.number, this.firstKey, this.prefix)
    this.#isStored = false
    this.#isOpen = false
    this.due = null
    await this.#parts.left()
  }

  /**
   * Stores that the window is closed, so that a restart of the object does not show the response again. Its rows are not deleted one by
   * one: deleting costs as much as writing, and all are deleted with the object.
   */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#isOpen = false
    this.due = this.#parts.clock() + CLOSED_MS
    if (this.#isStored) {
      this.#parts.table.update({ number: this.number, open: false, due: this.due, closed: true })
    }
    await this.#parts.left()
  }
}
