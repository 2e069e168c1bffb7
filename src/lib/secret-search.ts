/**
 * Searches bytes for any of several texts, in upper or lower case. It looks at every `shortest`-th byte or so (Wu and
 * Manber, "A fast algorithm for multi-pattern searching"), so that an answer without a credential costs little.
 */

/** Entries of the table of shifts: a power of two, small because every provider has a table. */
const TABLE_SIZE = 4_096
const LONGEST_SHIFT = 255
/**
 * Maximum number of bytes compared at each place. A longer text matches by its beginning, up to the byte that differs: comparing
 * whole texts would be slow for bytes that repeat nearly all of one.
 */
const MOST_COMPARED = 256
/** Bytes of a large body lie in a resizable buffer, which the engine reads slowly one by one: they are copied first. */
const COPIED_BYTES = 16 * 1024

/** ASCII letters in lower case, all other bytes as they are. */
const FOLDED = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte,
)

const fold = (byte: number): number => FOLDED[byte] as number
const hashOf = (first: number, second: number): number => ((first << 5) ^ second) & (TABLE_SIZE - 1)

export class TextSearch {
  /** Bytes in which a text is found. */
  readonly longest: number
  readonly #texts: readonly Uint8Array[]
  /** Bytes in which the shortest text is found. */
  readonly #shortest: number
  /** Indexed by a hash of two bytes: how far the window can be moved when it ends with them; 0 where a text may begin. */
  readonly #shifts: Uint8Array

  /** @param texts of at least two bytes each. */
  constructor(texts: readonly Uint8Array[]) {
    this.#texts = texts.map((text) => text.map(fold))
    const lengths = texts.map(({ length }) => Math.min(MOST_COMPARED, length))
    this.longest = Math.max(0, ...lengths)
    this.#shortest = Math.min(...lengths)
    const longestShift = Math.min(LONGEST_SHIFT, this.#shortest - 1)
    this.#shifts = new Uint8Array(TABLE_SIZE).fill(longestShift)
    for (const text of this.#texts) {
      for (let at = 1; at < this.#shortest; at++) {
        const hash = hashOf(text[at - 1] as number, text[at] as number)
        this.#shifts[hash] = Math.min(this.#shifts[hash] as number, this.#shortest - 1 - at)
      }
    }
  }

  occursIn(bytes: Uint8Array): boolean {
    if (!isSlow(bytes)) return this.#next(bytes, 0) !== null
    for (let at = 0; at < bytes.length; at += COPIED_BYTES) {
      if (this.#next(bytes.slice(at, at + COPIED_BYTES + this.longest), 0)) return true
    }
    return false
  }

  /** Finds the places of the texts, which do not overlap. If several texts begin at one place, the longest counts. */
  placesIn(bytes: Uint8Array): Span[] {
    const copied = isSlow(bytes) ? bytes.slice() : bytes
    const places: Span[] = []
    for (let place = this.#next(copied, 0); place; place = this.#next(copied, place.end)) places.push(place)
    return places
  }

  #next(bytes: Uint8Array, from: number): Span | null {
    if (this.#texts.length === 0) return null
    const last = this.#shortest - 1
    for (let at = from + last; at < bytes.length; ) {
      const hash = hashOf(fold(bytes[at - 1] as number), fold(bytes[at] as number))
      const shift = this.#shifts[hash] as number
      if (shift === 0) {
        const start = at - last
        let end = start
        for (const text of this.#texts) end = Math.max(end, endOf(text, bytes, start))
        if (end > start) return { start, end }
      }
      at += shift || 1
    }
    return null
  }
}

/** A range of bytes. */
interface Span {
  start: number
  end: number
}

const isSlow = ({ buffer }: Uint8Array): boolean => buffer instanceof ArrayBuffer && buffer.resizable

/** @param text in lower case. @returns the end of a text that begins at `start`, and `start` if none does. */
function endOf(text: Uint8Array, bytes: Uint8Array, start: number): number {
  const compared = Math.min(text.length, MOST_COMPARED)
  let length = 0
  while (length < text.length && fold(bytes[start + length] as number) === text[length]) length++
  return length >= compared ? start + length : start
}
