import { errorText, logEvent } from '../../lib/log.ts'
import { withinTime } from '../../lib/time-limit.ts'
import { terminalCount } from '../engine/recovery.ts'
import type { EventLog } from '../log/event-log.ts'
import type { ResponseState } from './response-state.ts'

/** How long the last event waits for Postgres. */
const FINISH_LIMIT_MS = 2_000
const FIRST_RETRY_MS = 2_000
const LONGEST_RETRY_MS = 60_000

/** Brings what a response became to Postgres: before its last event if that is possible, else again and again. */
export class FinalWriter {
  readonly #kept: ResponseState
  readonly #log: () => EventLog
  #failures = 0

  constructor(kept: ResponseState, log: () => EventLog) {
    this.#kept = kept
    this.#log = log
  }

  /** Waits two seconds at most; what is not written by then stays pending. Never throws. */
  async write(): Promise<void> {
    await withinTime(this.#write(), FINISH_LIMIT_MS, 'writing the response').catch(pending)
  }

  /** Waits to the end of one more try. Never throws. */
  async writeAgain(): Promise<void> {
    try {
      await this.#write()
      this.#failures = 0
    } catch (error) {
      this.#failures++
      pending(error)
    }
  }

  /** When to try again, from now on: later with each try that failed. */
  get retryMilliseconds(): number {
    return Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.#failures)
  }

  /** @throws when Postgres cannot be known to have it; doing it again does no harm. */
  async #write(): Promise<void> {
    const { final } = this.#kept
    const log = this.#log()
    const untold = log.closed || !final ? 0 : terminalCount(final.response)
    await this.#kept.write(log.lastSequence + untold)
  }
}

const pending = (error: unknown) => logEvent('warn', 'response_write_pending', { error: errorText(error) })
