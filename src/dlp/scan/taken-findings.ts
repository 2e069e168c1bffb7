import type { Finding } from '../types.ts'

/** Findings of one block: a longer one is split. */
const LONGEST_BLOCK = 1024

/** Findings in the order of their places, none overlapping another. Adding one moves only others of its block. */
export class TakenFindings {
  readonly #blocks: Finding[][] = [[]]

  /** Adds a finding that overlaps no other. */
  add(span: Finding): void {
    const at = this.#blockOf(span.start)
    const block = this.#blocks[at] as Finding[]
    block.splice(indexFor(block, span.start), 0, span)
    if (block.length > LONGEST_BLOCK) this.#blocks.splice(at + 1, 0, block.splice(LONGEST_BLOCK / 2))
  }

  overlaps({ start, end }: Finding): boolean {
    for (const taken of this.endingAfter(start)) return taken.start < end
    return false
  }

  /** The findings that end after a place, in order. None may be added meanwhile. */
  *endingAfter(place: number): Generator<Finding> {
    let at = this.#blockOf(place)
    // The one before may reach over the place.
    let index = Math.max(0, indexFor(this.#blocks[at] as Finding[], place) - 1)
    for (let block = this.#blocks[at]; block; block = this.#blocks[++at], index = 0) {
      for (; index < block.length; index++) {
        const finding = block[index] as Finding
        if (finding.end > place) yield finding
      }
    }
  }

  all(): Finding[] {
    return this.#blocks.flat()
  }

  /** The last block that begins at a place or before it, or the first block. */
  #blockOf(place: number): number {
    let low = 0
    let high = this.#blocks.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((this.#blocks[middle]?.[0]?.start ?? 0) <= place) low = middle
      else high = middle - 1
    }
    return low
  }
}

/** The index in the findings of one that starts at `start`. */
function indexFor(findings: readonly Finding[], start: number): number {
  let low = 0
  let high = findings.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((findings[middle]?.start ?? 0) < start) low = middle + 1
    else high = middle
  }
  return low
}
