/** Batches that one run of a job may make, over all that it does. */
export class Budget {
  #left: number

  constructor(batches: number) {
    this.#left = batches
  }

  get isSpent(): boolean {
    return this.#left <= 0
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
