import { DurableObject } from 'cloudflare:workers'
import { EventLog } from '../../src/responses/log/event-log.ts'
import { UnflushedEvents } from '../../src/responses/log/unflushed-events.ts'
import type { EmittedEvent } from '../../src/responses/model/events.ts'
import { wholeStorage } from '../../src/responses/storage/slice.ts'

export interface StoredRow {
  first: number
  last: number
  /** Of an event that takes several rows. */
  part: number
  size: number
  closes: number
}

/** An event log in an object of its own, as the object of a response has one. */
export class EventLogObject extends DurableObject {
  #log: EventLog | null = null

  get log(): EventLog {
    this.#log ??= this.newLog(15_000)
    return this.#log
  }

  /** What a new object makes of the stored rows. */
  newLog(heartbeatMilliseconds: number): EventLog {
    const slice = wholeStorage(this.ctx.storage)
    return new EventLog({
      slice,
      unflushed: new UnflushedEvents(),
      clock: () => Date.now(),
      heartbeatMilliseconds,
    })
  }

  /** All in one synchronous run. */
  append(events: EmittedEvent[]): void {
    for (const event of events) this.log.append(event)
  }

  /** The last events and the end, in one synchronous run. */
  end(events: EmittedEvent[]): void {
    this.append(events)
    this.log.close()
  }

  flush(): void {
    this.log.flush()
  }

  /** Not `tail`: the test runtime keeps that name to itself and refuses it over RPC. */
  tailOf(after: number): ReadableStream<Uint8Array> {
    return this.log.tail(after)
  }

  endTails(): void {
    this.log.endTails()
  }

  state() {
    const { lastSequence, closed, openTails, rowsWritten } = this.log
    return { lastSequence, closed, openTails, rowsWritten }
  }

  tables(): number {
    return this.ctx.storage.sql.exec("SELECT name FROM sqlite_master WHERE type = 'table'").toArray().length
  }

  rows(): StoredRow[] {
    return this.ctx.storage.sql
      .exec(
        `SELECT position / 1024 AS first, last_sequence AS last, position % 1024 AS part, length(body) AS size, closes
          FROM event_segments ORDER BY position`,
      )
      .toArray() as unknown as StoredRow[]
  }
}
