const SHORTEST_MS = 200
const LONGEST_MS = 10_000
/** A process that ran for so long starts from the shortest wait again. */
const STABLE_MS = 60_000

/** Waits before restarts that follow each other: 0.2 s, twice as long each time, at most 10 s. */
export class Backoff {
  #wait = SHORTEST_MS
  #lastAt = Number.NEGATIVE_INFINITY

  /** @param now milliseconds of any clock. @returns milliseconds to wait before the next start */
  next(now: number): number {
    this.#wait = now - this.#lastAt > STABLE_MS ? SHORTEST_MS : Math.min(this.#wait * 2, LONGEST_MS)
    this.#lastAt = now
    return this.#wait
  }
}
