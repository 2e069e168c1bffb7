/** Runs one flush: at the end of the synchronous run, or after a time. */
export class FlushTimer {
  readonly #flush: () => void
  #isSoon = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #due = Number.POSITIVE_INFINITY

  /** @param flush must not throw. It has to call `cancel`. */
  constructor(flush: () => void) {
    this.#flush = flush
  }

  /** Flushes at the end of this synchronous run. */
  soon(): void {
    if (this.#isSoon) return
    this.#isSoon = true
    queueMicrotask(() => {
      if (this.#isSoon) this.#flush()
    })
  }

  /** Flushes after so many milliseconds, unless it is due earlier. @param now milliseconds since the epoch. */
  within(milliseconds: number, now: number): void {
    if (now + milliseconds >= this.#due) return
    clearTimeout(this.#timer)
    this.#due = now + milliseconds
    this.#timer = setTimeout(this.#flush, milliseconds)
  }

  /** To be called when nothing is pending: a running timer would keep the object from hibernating. */
  cancel(): void {
    this.#isSoon = false
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#due = Number.POSITIVE_INFINITY
  }
}
