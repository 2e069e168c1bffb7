import type { Clock } from '../../lib/clock.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { withinTime } from '../../lib/time-limit.ts'
import type { Flushed } from '../contract.ts'

/** Data that a Durable Object stores until Postgres has it. */
export interface FlushSource<Batch> {
  /** Number of pending records or counts. */
  pending(): number
  /** When the oldest was stored, in milliseconds since the epoch. */
  pendingSince?(): number | null
  /** The oldest part, or null when nothing is pending. Taking removes nothing. */
  take(): Batch | null
  /** Writes a batch to Postgres. Idempotent. @throws unless Postgres has confirmed it. */
  write(batch: Batch): Promise<void>
  /** Called once Postgres has the batch. */
  written(batch: Batch): void
}

const FIRST_BACKOFF_MS = 1_000
const LONGEST_BACKOFF_MS = 60_000
/** Neon's own limit is 15 s; a write that timed out here may still arrive, which does no harm. */
const WRITE_LIMIT_MS = 10_000
/** Batches of one run; the rest waits for the next, so that an alarm stays far below the 15 minutes that it may take. */
const MOST_BATCHES = 50

/** Writes a source to Postgres, one run at a time. */
export class Flusher<Batch extends readonly unknown[]> {
  readonly #source: FlushSource<Batch>
  readonly #clock: Clock
  readonly #intervalMilliseconds: number
  #running: Promise<void> | undefined
  /** Whether the run leaves what has come after its beginning. */
  #isPartial = false
  #startedAt: number
  #failures = 0
  #dueAt: number | null = null

  /** @param intervalMilliseconds between the beginnings of runs that write what is due, the first of them after this time. */
  constructor(source: FlushSource<Batch>, clock: Clock, intervalMilliseconds: number) {
    this.#source = source
    this.#clock = clock
    this.#intervalMilliseconds = intervalMilliseconds
    this.#startedAt = clock()
  }

  /** When to flush next, in milliseconds since the epoch; null when nothing is pending. */
  dueAt(): number | null {
    if (this.#source.pending() === 0) return null
    this.#dueAt ??= Math.max(this.#clock(), this.#startedAt + this.#intervalMilliseconds)
    return this.#dueAt
  }

  /** Writes all that is pending, or waits for the run that is doing so. Never rejects; a failure moves `dueAt` back. */
  async flush(): Promise<Flushed> {
    while (this.#running && this.#isPartial) await this.#running
    await (this.#running ?? this.#run(Number.POSITIVE_INFINITY))
    return this.#left()
  }

  /** Waits until nothing is being written, and changes what is pending before anything is written again. */
  async between<Result>(change: () => Result): Promise<Result> {
    while (this.#running) await this.#running
    return change()
  }

  /** Writes what is pending at this time: under load, what comes meanwhile would be many small writes. Never rejects. */
  async flushDue(): Promise<void> {
    await (this.#running ?? this.#run(this.#source.pending()))
  }

  #run(most: number): Promise<void> {
    this.#isPartial = Number.isFinite(most)
    this.#startedAt = this.#clock()
    this.#dueAt = null
    this.#running = this.#writeBatches(most).finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  #left(): Flushed {
    const pending = this.#source.pending()
    const since = this.#source.pendingSince?.() ?? null
    return since === null ? { pending } : { pending, since: new Date(since).toISOString() }
  }

  /** @param most how many are written, or more by the rest of a batch. */
  async #writeBatches(most: number): Promise<void> {
    try {
      let written = 0
      for (let round = 0; round < MOST_BATCHES && written < most; round += 1) {
        const batch = this.#source.take()
        if (batch === null) break
        await withinTime(this.#source.write(batch), WRITE_LIMIT_MS, 'writing to Postgres')
        this.#source.written(batch)
        written += batch.length
      }
      this.#failures = 0
      if (this.#source.pending() === 0) this.#dueAt = null
    } catch (error) {
      const wait = Math.min(FIRST_BACKOFF_MS * 2 ** this.#failures, LONGEST_BACKOFF_MS)
      this.#failures += 1
      this.#dueAt = this.#clock() + wait
      logEvent('error', 'ledger.flush_failed', {
        ...this.#left(),
        failures: this.#failures,
        error: errorText(error),
      })
    }
  }
}
