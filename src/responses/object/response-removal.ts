import { withinTime } from '../../lib/time-limit.ts'
import type { EventLog } from '../log/event-log.ts'
import type { ResponseDeps } from '../response-deps.ts'
import type { Slice } from '../storage/slice.ts'
import type { ResponseState } from '../store/response-state.ts'
import type { FinalWriter } from './final-writer.ts'
import type { ResponseAlarm } from './response-alarm.ts'
import type { ResponseFiles } from './response-files.ts'

/** Time that a refusal waits for its rollback. */
const REFUSAL_LIMIT_MS = 500
/** Time that a start waits for the rollback of an earlier one. */
const START_LIMIT_MS = 3_000

/** The parts of a response, in its object and outside. */
interface RemovedParts {
  slice: Slice
  state: ResponseState
  log: EventLog
  final: FinalWriter
  alarm: ResponseAlarm
  files: ResponseFiles
  /** Resolved when the response has ended, or does not exist any more. */
  ended: Pick<PromiseWithResolvers<void>, 'resolve'>
}

/** Removes a response: everything that other stores have of it, then everything in its object. */
export class ResponseRemoval {
  readonly #deps: ResponseDeps
  readonly #parts: RemovedParts
  #rollingBack: Promise<void> | null = null

  constructor(deps: ResponseDeps, parts: RemovedParts) {
    this.#deps = deps
    this.#parts = parts
  }

  /**
   * Rolls the response back: its rows, the lock of its conversation, content, events and readers. What is not complete is
   * repeated by an alarm. Runs once at a time.
   */
  rollBack(): Promise<void> {
    this.#rollingBack ??= this.#rollBackOnce().finally(() => {
      this.#rollingBack = null
    })
    return this.#rollingBack
  }

  /** Usually complete before the caller gets the error, so that it can repeat its request at once. */
  rollBackRefused(): Promise<void> {
    return this.#rollBackWithin(REFUSAL_LIMIT_MS)
  }

  /** Rolls back the state of an earlier start, before the next one. The rollback may be incomplete. */
  rollBackEarlier(): Promise<void> {
    return this.#rollBackWithin(START_LIMIT_MS)
  }

  async #rollBackWithin(milliseconds: number): Promise<void> {
    const rolledBack = this.rollBack()
    this.#deps.waitUntil(rolledBack)
    await withinTime(rolledBack, milliseconds, 'rolling back a response').catch(() => {})
  }

  async #rollBackOnce(): Promise<void> {
    const { state, log, final, alarm, files } = this.#parts
    if (!state.head) return
    // Stored first: the response is not visible any more, and a restart continues the rollback.
    state.enter('removing')
    state.save()
    log.endTails()
    await state.settleCalls()
    // The rows are rolled back first: the rest of the conversation decides about the files.
    const isErased = await final.rollBack()
    const hasNoFiles = await files.remove()
    if (isErased && hasNoFiles && !state.head?.unsettled.length) {
      this.#forget()
      await this.#parts.slice.deleteAll()
    } else await alarm.setCheck()
  }

  /** Ends the window of a response: it has no readers any more, and what is stored of it is deleted. */
  async closeWindow(): Promise<void> {
    this.#forget()
    await this.#parts.slice.close()
  }

  #forget(): void {
    const { state, log, ended } = this.#parts
    state.reset()
    log.endTails()
    ended.resolve()
  }
}
