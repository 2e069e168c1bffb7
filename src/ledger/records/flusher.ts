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
export class Flusher<Batch> {
  readonly #source: FlushSource<Batch>
  readonly #clock: Clock
  readonly #intervalMilliseconds: number
  #running: Promise<void> | undefined
  #failures = 0
  #dueAt: number | null = null

  /** @param intervalMilliseconds how long new data waits for more. */
  constructor(source: FlushSource<Batch>, clock: Clock, intervalMilliseconds: number) {
    this.#source = source
    this.#clock = clock
    this.#intervalMilliseconds = intervalMilliseconds
  }

  /** When to flush next, in milliseconds since the epoch; null when nothing is pending. */
  dueAt(): number | null {
    if (this.#source.pending() === 0) return null
    this.#dueAt ??= this.#clock() + this.#intervalMilliseconds
    return this.#dueAt
  }

  /** Writes what is pending, or waits for the run that is doing so. Never rejects; a failure moves `dueAt` back. */
  async flush(): Promise<Flushed> {
    this.#running ??= this.#writeBatches().finally(() => {
      this.#running = undefined
    })
    await this.#running
    return this.#left()
  }

  #left(): Flushed {
    const pending = this.#source.pending()
    const since = this.#source.pendingSince?.() ?? null
    return since === null ? { pending } : { pending, since: new Date(since).toISOString() }
  }

  async #writeBatches(): Promise<void> {
    try {
      for (let round = 0; round < MOST_BATCHES; round += 1) {
        const batch = this.#source.take()
        if (batch === null) break
        await withinTime(this.#source.write(batch), WRITE_LIMIT_MS, 'writing to Postgres')
        this.#source.written(batch)
      }
      this.#failures = 0
      this.#dueAt = null
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
