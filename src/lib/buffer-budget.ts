/**
 * Bytes of request bodies that this isolate holds at once. An isolate has 128 MB for all its requests, and passing it
 * cancels them all, so a body that does not fit is refused before it is read.
 */
export class BufferBudget {
  #held = 0
  readonly #limit: () => number

  /** @param limit read at each use, since configuration arrives with the first request. */
  constructor(limit: () => number) {
    this.#limit = limit
  }

  /** Takes `bytes` out of the budget. @returns false, and takes nothing, when they do not fit. */
  take(bytes: number): boolean {
    if (this.#held + bytes > this.#limit()) return false
    this.#held += bytes
    return true
  }

  give(bytes: number): void {
    this.#held -= bytes
  }
}
