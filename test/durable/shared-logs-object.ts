import { EventLog } from '../../src/responses/log/event-log.ts'
import { UnflushedEvents } from '../../src/responses/log/unflushed-events.ts'
import type { EmittedEvent } from '../../src/responses/model/events.ts'
import { recoverCommits } from '../../src/responses/pool/recover-commits.ts'
import { CommitGroup } from '../../src/responses/storage/commit-group.ts'
import { CommitRows } from '../../src/responses/storage/commit-rows.ts'
import { LiveParts } from '../../src/responses/storage/live-parts.ts'
import { KEYS_PER_RESPONSE, wholeStorage } from '../../src/responses/storage/slice.ts'
import { event } from './event-log-harness.ts'
import { EventLogObject, type StoredRow } from './event-log-object.ts'

/** The log under test. Those of lower and higher numbers are beside it. */
const NUMBER = 1
const OTHERS = [0, 2]

/** Several event logs that share an object, as those of live responses. All but one have events whenever that one has. */
export class SharedLogsObject extends EventLogObject {
  #parts: { commits: CommitRows; group: CommitGroup; unflushed: UnflushedEvents } | null = null
  readonly others = OTHERS.map((number) => this.#open(number, 15_000))

  override newLog(heartbeatMilliseconds: number): EventLog {
    return this.#open(NUMBER, heartbeatMilliseconds).log
  }

  override append(events: EmittedEvent[]): void {
    for (const { log } of this.others) {
      const sequence = log.lastSequence + 1
      log.append(event(sequence, { word: `beside ${sequence}`, boundary: sequence % 7 === 0 }))
    }
    super.append(events)
  }

  /** Deletes a log beside the one under test. A new one takes its place. @returns whether any row has its text. */
  removeOther(): boolean {
    const [removed] = this.others.splice(0, 1)
    if (!removed) return false
    const { slice, number } = removed
    slice.live.erase()
    const keys = [slice.firstKey, slice.firstKey + KEYS_PER_RESPONSE]
    if (slice.tables.has('event_segments'))
      slice.sql.exec('DELETE FROM event_segments WHERE position >= ? AND position < ?', ...keys)
    this.others.push(this.#open(number + OTHERS.length + 2, 15_000))
    return this.#hasTextOf(number)
  }

  /** Rows of the log under test, without commits. */
  override rows(): StoredRow[] {
    const firstKey = NUMBER * KEYS_PER_RESPONSE
    return this.ctx.storage.sql
      .exec(
        `SELECT (position - CAST(? AS INTEGER)) / 1024 AS first, last_sequence AS last, position % 1024 AS part, length(body) AS size, closes
          FROM event_segments WHERE position >= ? AND position < ? ORDER BY position`,
        ...[firstKey, firstKey, firstKey + KEYS_PER_RESPONSE],
      )
      .toArray() as unknown as StoredRow[]
  }

  /** Rows that commits have in the storage. */
  commits(): number {
    return [...this.#shared().commits.commits()].length
  }

  get storage(): DurableObjectStorage {
    return this.ctx.storage
  }

  /** A further log. */
  open(number: number): EventLog {
    return this.#open(number, 15_000).log
  }

  /** Commits what all logs have. */
  flushAll(): void {
    this.#shared().group.commit()
  }

  #hasTextOf(number: number): boolean {
    const { commits } = this.#shared()
    return [...commits.commits()].some(({ parts }) => parts.some((part) => part.number === number))
  }

  #open(number: number, heartbeatMilliseconds: number) {
    const { unflushed } = this.#shared()
    const slice = this.#sliceOf(number)
    const log = new EventLog({ slice, unflushed, clock: () => Date.now(), heartbeatMilliseconds })
    slice.live.join()
    return { number, log, slice }
  }

  #sliceOf(number: number) {
    const live = new LiveParts(number, this.#shared().group, { read: () => null, write: () => {} })
    const firstKey = number * KEYS_PER_RESPONSE
    return { ...wholeStorage(this.ctx.storage), firstKey, prefix: `${number}/`, live, number, since: 0 }
  }

  /** What the constructor of the object does: its logs are made by that of the class before. */
  #shared() {
    if (this.#parts) return this.#parts
    const commits = new CommitRows(this.ctx.storage, 0)
    const unflushed = new UnflushedEvents()
    this.#parts = { commits, unflushed, group: new CommitGroup(commits, () => Date.now()) }
    const numbers = Array.from({ length: 100 }, (_, number) => number)
    recoverCommits(
      this.ctx.storage,
      commits,
      numbers.map((number) => this.#sliceOf(number)),
      unflushed,
    )
    return this.#parts
  }
}
