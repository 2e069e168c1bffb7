/**
 * Several objects may share the 128 MB of an isolate, so that one of them is limited to a part of it.
 * @internal A bound that tests reach.
 */
export const MAXIMUM_UNFLUSHED_BYTES = 32 * 1024 * 1024

/** A reader that is sending a segment. */
export interface SegmentHolder {
  /** Ends the reader, which releases its segment synchronously. */
  abort(reason: Error): void
}

/**
 * The large segments that are stored and that readers have not sent to the end, each in memory once. A client that does not
 * read keeps its reader's segment in memory. Above the limit, the readers that have held theirs longest are ended. Their clients can resume at any time.
 */
export class UnflushedEvents {
  /** The longest held first. */
  readonly #held = new Map<SegmentHolder, { name: string; bytes: Uint8Array }>()

  /**
   * Holds a segment for a reader, in place of the one it holds.
   * @param name of the segment in its object. @param read returns the bytes; called if no reader holds them. @returns the shared bytes, which must not be changed.
   */
  hold(name: string, holder: SegmentHolder, read: () => Uint8Array): Uint8Array {
    this.release(holder)
    const shared = [...this.#held.values()].find((each) => each.name === name)?.bytes
    const bytes = shared ?? read()
    if (!shared) this.#makeRoom(bytes.length)
    this.#held.set(holder, { name, bytes })
    return bytes
  }

  release(holder: SegmentHolder): void {
    this.#held.delete(holder)
  }

  #makeRoom(size: number): void {
    for (const holder of [...this.#held.keys()]) {
      if (this.#size + size <= MAXIMUM_UNFLUSHED_BYTES) return
      holder.abort(new Error('the reader is too slow'))
    }
  }

  get #size(): number {
    const segments = new Set([...this.#held.values()].map(({ bytes }) => bytes))
    return [...segments].reduce((sum, { length }) => sum + length, 0)
  }
}
