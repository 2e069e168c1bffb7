import { NO_TOKEN, type Vocabulary } from './vocabulary.ts'

/** Longer pieces are merged with a heap, because a search for the smallest rank before every merge is quadratic. */
const SHORT = 48
/** A heap that fits into the processor's nearest cache is three times as fast as one of the largest texts. */
export const LONGEST_PIECE = 4_096

/**
 * Byte pair encoding as in tiktoken: adjacent parts whose bytes together are a token are joined, the pair of the
 * smallest rank first and of equal ones the leftmost, until none are left. Reuses its memory: one caller at a time.
 */
export class BytePairs {
  /** Look-ups in the vocabulary so far, as a measure of work. */
  lookups = 0
  readonly #vocabulary: Vocabulary
  /** Of the part that begins at an offset: its end, the start of the part before it, its rank with the next part. */
  #ends = new Int32Array(SHORT + 1)
  #previous = new Int32Array(SHORT + 1)
  #ranks = new Int32Array(SHORT + 1)
  #heap = new Float64Array(0)
  #heapSize = 0

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary
  }

  /** @returns how many tokens the piece of `bytes` from `start` to `end` is, at most `LONGEST_PIECE` bytes. */
  count(bytes: Uint8Array, start: number, end: number): number {
    const length = end - start
    if (length === 1) return 1
    if (this.#rank(bytes, start, end) !== NO_TOKEN) return 1
    return length <= SHORT ? this.#countShort(bytes, start, length) : this.#countLong(bytes, start, length)
  }

  /** `#ends` holds the parts' ends by their number, and `#ranks` their ranks with the next part. */
  #countShort(bytes: Uint8Array, start: number, length: number): number {
    const ends = this.#ends
    const ranks = this.#ranks
    let parts = length
    for (let part = 0; part < parts; part++) ends[part] = part + 1
    for (let part = 0; part < parts - 1; part++) {
      ranks[part] = this.#rank(bytes, start + part, start + part + 2)
    }
    for (;;) {
      let best = 0
      for (let part = 1; part < parts - 1; part++) {
        if ((ranks[part] as number) < (ranks[best] as number)) best = part
      }
      if (parts < 2 || ranks[best] === NO_TOKEN) return parts
      ends.copyWithin(best, best + 1, parts)
      ranks.copyWithin(best, best + 1, parts - 1)
      parts--
      this.#rankPart(bytes, start, best, parts)
      if (best > 0) this.#rankPart(bytes, start, best - 1, parts)
    }
  }

  #rankPart(bytes: Uint8Array, start: number, part: number, parts: number): void {
    if (part >= parts - 1) return
    const from = part === 0 ? 0 : (this.#ends[part - 1] as number)
    this.#ranks[part] = this.#rank(bytes, start + from, start + (this.#ends[part + 1] as number))
  }

  /** As `#countShort`, with parts known by where they begin. */
  #countLong(bytes: Uint8Array, start: number, length: number): number {
    this.#reserve(length)
    const ends = this.#ends
    const previous = this.#previous
    for (let at = 0; at < length; at++) {
      ends[at] = at + 1
      previous[at] = at - 1
    }
    for (let at = 0; at < length; at++) this.#offer(bytes, start, at, length)
    let parts = length
    while (this.#heapSize > 0) {
      const entry = this.#pop()
      const at = entry % LONGEST_PIECE
      // Stale entry: the part was joined since, or has another rank.
      if (this.#ranks[at] !== Math.floor(entry / LONGEST_PIECE)) continue
      const second = ends[at] as number
      const end = ends[second] as number
      this.#ranks[second] = NO_TOKEN
      ends[at] = end
      if (end < length) previous[end] = at
      parts--
      this.#offer(bytes, start, at, length)
      if ((previous[at] as number) >= 0) this.#offer(bytes, start, previous[at] as number, length)
    }
    return parts
  }

  /** Ranks the part at a place with its next one, and puts the pair on the heap if it is a token. */
  #offer(bytes: Uint8Array, start: number, at: number, length: number): void {
    const second = this.#ends[at] as number
    const rank =
      second < length ? this.#rank(bytes, start + at, start + (this.#ends[second] as number)) : NO_TOKEN
    this.#ranks[at] = rank
    if (rank !== NO_TOKEN) this.#push(rank * LONGEST_PIECE + at)
  }

  #rank(bytes: Uint8Array, start: number, end: number): number {
    this.lookups++
    return this.#vocabulary.rankOf(bytes, start, end)
  }

  #reserve(length: number): void {
    if (this.#heap.length >= 3 * length) return
    const size = 2 ** Math.ceil(Math.log2(length))
    this.#ends = new Int32Array(size)
    this.#previous = new Int32Array(size)
    this.#ranks = new Int32Array(size)
    // One entry for every offset, and at most two for every join.
    this.#heap = new Float64Array(3 * size)
  }

  #push(entry: number): void {
    const heap = this.#heap
    let at = this.#heapSize++
    while (at > 0) {
      const parent = (at - 1) >> 1
      if ((heap[parent] as number) <= entry) break
      heap[at] = heap[parent] as number
      at = parent
    }
    heap[at] = entry
  }

  #pop(): number {
    const heap = this.#heap
    const top = heap[0] as number
    const size = --this.#heapSize
    const last = heap[size] as number
    let at = 0
    for (let child = 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && (heap[child + 1] as number) < (heap[child] as number)) child++
      if ((heap[child] as number) >= last) break
      heap[at] = heap[child] as number
      at = child
    }
    heap[at] = last
    return top
  }
}
