import type { Clock } from '../../lib/clock.ts'

/** Batches that one run of a job may make, over all that it does, and the time in which it may begin them. */
export class Budget {
  #left: number
  readonly #clock: Clock
  readonly #until: number

  /** @param milliseconds from now on. */
  constructor(batches: number, clock: Clock, milliseconds: number) {
    this.#left = batches
    this.#clock = clock
    this.#until = clock() + milliseconds
  }

  get isSpent(): boolean {
    return this.#left <= 0 || this.#clock() >= this.#until
  }

  /** @returns whether another batch may be made. */
  take(): boolean {
    if (this.isSpent) return false
    this.#left -= 1
    return true
  }

  /**
   * Repeats a batch until it is not full.
   * @param batch makes one, and returns its size. @param full size of one after which there may be more.
   * @returns whether nothing is left to do; false when the budget was spent before.
   */
  async drain(batch: () => Promise<number>, full: number): Promise<boolean> {
    while (this.take()) {
      if ((await batch()) < full) return true
    }
    return false
  }
}
