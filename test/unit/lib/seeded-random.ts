/** Repeatable randomness: a failing case names its seed, and the seed brings it back. */
export class SeededRandom {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** A number in [0, 1), by the mulberry32 recurrence. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }

  /** A whole number in [0, bound). */
  below(bound: number): number {
    return Math.floor(this.fraction() * bound)
  }

  chance(probability: number): boolean {
    return this.fraction() < probability
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.below(items.length)]
    if (item === undefined) throw new Error('nothing to pick from')
    return item
  }
}
