import type { DurableResponse } from '../object/durable-response.ts'
import type { CommitGroup } from '../storage/commit-group.ts'
import { LiveParts } from '../storage/live-parts.ts'
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
  commits: CommitGroup
  clock: () => number
  organizationId: () => string
  /** Called when the alarm of a response is set. */
  alarmBy: (time: number, isActive: boolean) => Promise<void>
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
  readonly live: LiveParts
  /** Null while nothing of it is in memory. */
  instance: DurableResponse | null = null
  /** Calls and other work that use the instance. */
  uses = 0
  /** Number of its starts that have no answer yet. */
  starts = 0
  /** Time of its alarm; null before the first one. */
  due: number | null
  /** The last commit before the head in its row, when the object was started. */
  readonly since: number
  readonly #parts: PoolParts
  #isOpen: boolean
  #isStored: boolean
  #isClosed: boolean
  /** Whether the window was over at an earlier time of the alarm. */
  #isPast: boolean

  /** @param isStored whether `row` is in the table. */
  constructor(parts: PoolParts, row: PoolRow, isStored: boolean) {
    this.#parts = parts
    this.id = row.id
    this.number = row.number
    this.due = row.due
    this.since = row.since
    this.sql = parts.storage.sql
    this.tables = parts.tables
    this.firstKey = row.number * KEYS_PER_RESPONSE
    this.prefix = `${row.number}/`
    this.live = new LiveParts(row.number, parts.commits, {
      read: () => (this.#isStored ? parts.table.head(row.number) : null),
      write: (head) => this.#writeHead(head),
    })
    this.#isOpen = row.open
    this.#isStored = isStored
    this.#isClosed = row.closed
    this.#isPast = row.closed
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

  /** Whether its window is closed, and nothing of it is left to do but to delete what is stored. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  /**
   * Whether its window is over: it does not exist for its owner any more. That is no row of its own: the time says it, also
   * after a restart.
   */
  get isOver(): boolean {
    return this.#isPast || (!this.#isOpen && this.due !== null && this.due <= this.#parts.clock())
  }

  /** Moves the alarm of a response whose window may be over, until the object restarts. */
  postpone(time: number): void {
    this.#isPast = this.isOver
    this.due = time
  }

  transactionSync<Result>(work: () => Result): Result {
    return this.#parts.storage.transactionSync(work)
  }

  open(): void {
    if (this.#isStored) return
    const { table, organizationId, commits } = this.#parts
    const row = { number: this.number, id: this.id, open: true, due: null, closed: false, since: 0 }
    table.insert(row, this.live.head?.takeForRow() ?? null, commits.rows.sequence, organizationId())
    this.live.head?.stored()
    this.#isStored = true
    this.#isOpen = true
  }

  async setAlarm(time: number, isActive: boolean): Promise<void> {
    // The time is stored for a response that nothing opens after a restart.
    const isChanged = isActive !== this.#isOpen || (!isActive && time !== this.due)
    this.#isOpen = isActive
    this.#isPast = false
    this.due = time
    if (this.#isStored && isChanged) this.#write()
    await this.#parts.alarmBy(time, isActive)
  }

  async deleteAll(): Promise<void> {
    this.live.erase()
    if (this.#isStored) this.#parts.table.delete(this.number, this.firstKey, this.prefix)
    this.#isStored = false
    this.#isOpen = false
    this.due = null
    await this.#parts.left()
  }

  /** Stores the time of the alarm, and the head in the same row if it has changed. */
  #write(): void {
    const head = this.live.head?.takeForRow() ?? null
    if (head === null) this.#parts.table.update(this.#row)
    else {
      this.live.writeHead(head)
      this.live.head?.stored()
    }
  }

  #writeHead(head: string | null): void {
    const { table, commits } = this.#parts
    table.updateWithHead(this.#row, head, commits.rows.sequence)
  }

  get #row() {
    return { number: this.number, open: this.#isOpen, due: this.#isOpen ? null : this.due }
  }

  /**
   * Notes that the window is closed. What is stored is not deleted row by row: deleting costs as much as writing, and all is
   * deleted with the object.
   */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#isPast = true
    this.#isOpen = false
    this.due = this.#parts.clock() + CLOSED_MS
    this.live.leave()
    await this.#parts.left()
  }
}
