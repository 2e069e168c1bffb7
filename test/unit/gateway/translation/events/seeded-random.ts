/** Randomness that a seed repeats (mulberry32). */
export class SeededRandom {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 up to but without `limit`. */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * limit)
  }

  chance(percent: number): boolean {
    return this.below(100) < percent
  }

  pick<Item>(list: readonly Item[]): Item {
    const item = list[this.below(list.length)]
    if (item === undefined) throw new Error('nothing to pick from')
    return item
  }

  /** The text in pieces of up to `longest` characters; surrogate pairs may be cut apart. */
  pieces(text: string, longest: number): string[] {
    const pieces: string[] = []
    for (let at = 0; at < text.length; ) {
      const length = 1 + this.below(longest)
      pieces.push(text.slice(at, at + length))
      at += length
    }
    return pieces
  }
}
