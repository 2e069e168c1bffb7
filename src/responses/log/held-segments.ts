/** Objects of one class may share the 128 MB of an isolate, so one of them keeps to a part of it. */
export const MAXIMUM_HELD_BYTES = 32 * 1024 * 1024

/** A tail that is sending a segment. */
export interface SegmentHolder {
  /** Ends the tail, which releases what it holds before this returns. */
  giveUp(reason: Error): void
}

interface HeldSegment {
  bytes: Uint8Array
  holders: Set<SegmentHolder>
}

/**
 * The large segments that tails are sending just now, each in memory once. A reader that does not read keeps its tail's
 * segment there. When together they pass the limit, the tails that have waited longest are ended: their readers can come
 * back for the rest at any time.
 */
export class HeldSegments {
  /** By position, the one held longest first. */
  readonly #segments = new Map<number, HeldSegment>()
  readonly #positions = new Map<SegmentHolder, number>()
  #size = 0

  /**
   * Holds a segment for a tail, instead of the one it may hold.
   * @param read gives the bytes if no tail holds them. @returns the bytes, which nobody may change.
   */
  hold(position: number, holder: SegmentHolder, read: () => Uint8Array): Uint8Array {
    this.release(holder)
    let segment = this.#segments.get(position)
    if (segment === undefined) {
      segment = { bytes: read(), holders: new Set() }
      this.#makeRoom(segment.bytes.length)
      this.#segments.set(position, segment)
      this.#size += segment.bytes.length
    }
    segment.holders.add(holder)
    this.#positions.set(holder, position)
    return segment.bytes
  }

  release(holder: SegmentHolder): void {
    const position = this.#positions.get(holder)
    if (position === undefined) return
    this.#positions.delete(holder)
    const segment = this.#segments.get(position)
    segment?.holders.delete(holder)
    if (segment === undefined || segment.holders.size > 0) return
    this.#segments.delete(position)
    this.#size -= segment.bytes.length
  }

  #makeRoom(size: number): void {
    for (const { holders } of [...this.#segments.values()]) {
      if (this.#size + size <= MAXIMUM_HELD_BYTES) return
      for (const holder of [...holders]) holder.giveUp(new Error('the reader is too slow'))
    }
  }
}
