/**
 * Searches bytes for any of several texts, in upper or lower case. It looks at every `shortest`-th byte or so (Wu and
 * Manber, "A fast algorithm for multi-pattern searching"), so that an answer without a credential costs next to nothing.
 */

/** Entries of the table of shifts: a power of two, small because every provider has a table. */
const TABLE_SIZE = 4_096
const LONGEST_SHIFT = 255
/** Bytes of a large body lie in a resizable buffer, which the engine reads slowly one by one: they are copied first. */
const COPIED_BYTES = 16 * 1024

/** ASCII letters in lower case, all other bytes as they are. */
const FOLDED = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte,
)

const fold = (byte: number): number => FOLDED[byte] as number
const hashOf = (first: number, second: number): number => ((first << 5) ^ second) & (TABLE_SIZE - 1)

export class TextSearch {
  /** Bytes of the longest text. */
  readonly longest: number
  readonly #texts: readonly Uint8Array[]
  /** Bytes of the shortest text. */
  readonly #shortest: number
  /** By hash of two bytes: how far the window can be moved when it ends with them; 0 where a text may begin. */
  readonly #shifts: Uint8Array

  /** @param texts of at least two bytes each. */
  constructor(texts: readonly Uint8Array[]) {
    this.#texts = texts.map((text) => text.map(fold))
    const lengths = texts.map(({ length }) => length)
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
    if (this.#texts.length === 0) return false
    if (!(bytes.buffer instanceof ArrayBuffer && bytes.buffer.resizable)) return this.#occursIn(bytes)
    for (let at = 0; at < bytes.length; at += COPIED_BYTES) {
      if (this.#occursIn(bytes.slice(at, at + COPIED_BYTES + this.longest))) return true
    }
    return false
  }

  #occursIn(bytes: Uint8Array): boolean {
    const last = this.#shortest - 1
    for (let at = last; at < bytes.length; ) {
      const hash = hashOf(fold(bytes[at - 1] as number), fold(bytes[at] as number))
      const shift = this.#shifts[hash] as number
      if (shift === 0 && this.#texts.some((text) => standsAt(text, bytes, at - last))) return true
      at += shift || 1
    }
    return false
  }
}

/** @param text in lower case. */
function standsAt(text: Uint8Array, bytes: Uint8Array, start: number): boolean {
  if (start + text.length > bytes.length) return false
  for (let at = 0; at < text.length; at++) if (fold(bytes[start + at] as number) !== text[at]) return false
  return true
}
