import type { ResponseHead } from '../model/response-head.ts'
import type { ResponseDeps } from '../response-deps.ts'
import type { Slice } from '../storage/slice.ts'
import type { ResponseState } from '../store/response-state.ts'
import type { FinalWriter } from './final-writer.ts'

/** Interval of the alarm of a running response. It also keeps the object in memory. */
const CHECK_INTERVAL_MS = 30_000

/** The one alarm of a response: when it has to check, to write again, or to close its window. */
export class ResponseAlarm {
  readonly #slice: Slice
  readonly #deps: ResponseDeps
  readonly #state: ResponseState
  readonly #final: FinalWriter

  constructor(slice: Slice, deps: ResponseDeps, state: ResponseState, final: FinalWriter) {
    this.#slice = slice
    this.#deps = deps
    this.#state = state
    this.#final = final
  }

  /** Sets the alarm of a response that runs, or whose rollback has to be repeated. */
  setCheck(): Promise<void> {
    return this.#slice.setAlarm(this.#deps.clock() + CHECK_INTERVAL_MS, true)
  }

  /**
   * Sets the alarm before the work of one that has fired, since the platform stops repeating an alarm that keeps failing. Of many
   * responses, the object does that: the window of one that has nothing else to do costs no row.
   */
  async setRepetition({ phase, pendingWrite, unsettled }: ResponseHead): Promise<void> {
    const isDone = phase === 'ended' && !pendingWrite && unsettled.length === 0
    if (!isDone || this.#slice.live === null) await this.setCheck()
  }

  /** Sets the alarm of a response that has ended: the next try of a pending write, or else the end of its window. */
  async setNext(): Promise<void> {
    const { head } = this.#state
    if (!head) return
    const retries = head.pendingWrite || head.unsettled.length > 0
    const now = this.#deps.clock()
    const time = retries ? now + this.#final.retryMilliseconds : Math.max(now, this.#windowEnd(head))
    await this.#slice.setAlarm(time, retries)
  }

  /** Whether an ended response still has its events for readers, or its context for a connection. */
  isWindowOpen(head: ResponseHead): boolean {
    return this.#deps.clock() < this.#windowEnd(head)
  }

  #windowEnd({ endedAt, heldUntil }: ResponseHead): number {
    return Math.max((endedAt ?? 0) + this.#deps.configuration.RESPONSE_WINDOW_MS, heldUntil ?? 0)
  }
}
