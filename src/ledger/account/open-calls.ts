/** A call that was admitted and is not settled. */
export interface OpenCall {
  id: string
  /** Micro-credits. */
  reserve: number
  /** When its lease runs out, in milliseconds since the epoch. */
  deadline: number
  /** Text of `openingText`. */
  opening: string
  /** `CallProgress` as JSON: the last reported one, before that the estimate that the call was opened with, if any. */
  progress: string | null
  /** The commit that opened it. */
  openedBy: number
  /** Whether the call has a row in `open_calls`. */
  isStored: boolean
  /** Whether the call has changed since that row was written. */
  isChanged: boolean
}

/** The open calls of an account, in the order in which they were opened. */
export class OpenCalls {
  readonly #calls = new Map<string, OpenCall>()
  #reserved = 0
  /** No lease ends before this; closing calls does not raise it. */
  #firstDeadline = Number.POSITIVE_INFINITY

  /** Micro-credits that are reserved for all of them. */
  get reserved(): number {
    return this.#reserved
  }

  get count(): number {
    return this.#calls.size
  }

  /** When the next lease can run out, in milliseconds since the epoch; null when no call is open. */
  get nextDeadline(): number | null {
    return this.#calls.size === 0 ? null : this.#firstDeadline
  }

  find(id: string): OpenCall | undefined {
    return this.#calls.get(id)
  }

  add(call: OpenCall): void {
    this.#calls.set(call.id, call)
    this.#reserved += call.reserve
    this.#firstDeadline = Math.min(this.#firstDeadline, call.deadline)
  }

  remove(call: OpenCall): void {
    if (this.#calls.delete(call.id)) this.#reserved -= call.reserve
  }

  /** @param progress null keeps the one reported before. */
  renew(call: OpenCall, deadline: number, progress: string | null): void {
    call.deadline = deadline
    call.progress = progress ?? call.progress
    call.isChanged = true
    this.#firstDeadline = Math.min(this.#firstDeadline, deadline)
  }

  /** Calls whose lease has run out, the oldest deadline first. */
  expired(now: number): OpenCall[] {
    if (this.#firstDeadline > now) return []
    const expired = [...this.#calls.values()].filter(({ deadline }) => deadline <= now)
    return expired.sort((left, right) => left.deadline - right.deadline)
  }

  /** Finds the next deadline. @param overdue the next time for calls that could not be settled at `now`. */
  readDeadlines(now: number, overdue: number): void {
    let first = Number.POSITIVE_INFINITY
    for (const { deadline } of this.#calls.values())
      first = Math.min(first, deadline <= now ? overdue : deadline)
    this.#firstDeadline = first
  }

  newestFirst(): OpenCall[] {
    return [...this.#calls.values()].reverse()
  }

  /** Calls that were opened before a commit, and whose row in `open_calls` is missing or old. */
  *unstoredBefore(number: number): Iterable<OpenCall> {
    for (const call of this.#calls.values()) {
      if (call.openedBy >= number) return
      if (!call.isStored || call.isChanged) yield call
    }
  }
}
