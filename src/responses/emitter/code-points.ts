/**
 * Converts places of a growing text from UTF-16 units to code points. Each piece is read once, when a place behind it is first
 * asked for: a text may have as many citations as it has words.
 */
export class CodePoints {
  #units = 0
  /** Units that were read so far. */
  #read = 0
  #unread: string[] = []
  #endsWithHigh = false
  /** Ends of the surrogate pairs, in order. */
  readonly #pairs: number[] = []

  /** UTF-16 units of the text. */
  get units(): number {
    return this.#units
  }

  add(piece: string): void {
    this.#units += piece.length
    this.#unread.push(piece)
  }

  /** Code points before a place in UTF-16 units. Half of a surrogate pair counts as one. */
  before(place: number): number {
    this.#readAll()
    let [low, high] = [0, this.#pairs.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#pairs[middle] as number) <= place) low = middle + 1
      else high = middle
    }
    return place - low
  }

  #readAll(): void {
    for (const piece of this.#unread.splice(0)) {
      for (let at = 0; at < piece.length; at++) {
        const unit = piece.charCodeAt(at)
        const isLow = unit >= 0xdc00 && unit <= 0xdfff
        if (isLow && this.#endsWithHigh) this.#pairs.push(this.#read + at + 1)
        this.#endsWithHigh = unit >= 0xd800 && unit <= 0xdbff
      }
      this.#read += piece.length
    }
  }
}
