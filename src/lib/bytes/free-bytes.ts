/**
 * Frees memory at a known moment. The collector takes a buffer of 50 MB away only when it comes by, and until then the
 * next one lies beside it, in an isolate that has 128 MB. Whatever reads a buffer after its owner may be done with it
 * borrows it: it is freed when its owner has freed it and nothing borrows it.
 */

interface Borrowed {
  readers: number
  /** What its owner wants done once it is gone; null while it is the owner's. */
  freed: (() => void) | null
}

const borrowed = new WeakMap<ArrayBufferLike, Borrowed>()

/**
 * Keeps the buffer under these bytes until the returned function is called, at least once. A reader that never calls it
 * leaves the buffer to the collector, and its place in the isolate's budget is never given back.
 */
export function borrowBytes({ buffer }: Uint8Array): () => void {
  const state = borrowed.get(buffer) ?? { readers: 0, freed: null }
  borrowed.set(buffer, state)
  state.readers++
  let isReturned = false
  return () => {
    if (isReturned) return
    isReturned = true
    state.readers--
    if (state.readers > 0) return
    borrowed.delete(buffer)
    if (!state.freed) return
    detach(buffer)
    state.freed()
  }
}

/**
 * Frees the buffer under these bytes, now or when it is no longer borrowed. All views of it are empty from then on.
 * @param freed called when it is gone.
 */
export function freeBytes({ buffer }: Uint8Array, freed: () => void = () => {}): void {
  const state = borrowed.get(buffer)
  if (state) {
    state.freed = freed
    return
  }
  detach(buffer)
  freed()
}

/** Moving it to a buffer of no bytes leaves nothing of it. */
function detach(buffer: ArrayBufferLike): void {
  if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0)
}
