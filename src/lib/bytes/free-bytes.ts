/**
 * Frees memory at a known moment. The garbage collector frees a buffer of 50 MB at some later time, and until then the next
 * one takes memory too, in an isolate that has 128 MB. Code that reads a buffer which its owner may have freed borrows it:
 * it is freed when its owner has freed it and nothing borrows it.
 */

interface Borrowed {
  readers: number
  /** The owner's callback for when the memory is freed; null until the owner has freed it. */
  freed: (() => void) | null
}

const borrowed = new WeakMap<ArrayBufferLike, Borrowed>()

/**
 * Keeps the buffer of these bytes until the returned function is called, once or more often. If it is never called, the
 * buffer is left to the garbage collector, and its share of the isolate's budget is never released.
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
 * Frees the buffer of these bytes, now or when it is not borrowed any more. All views of it are empty from then on.
 * @param freed called when the memory is freed.
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

/** A transfer to an empty buffer frees the memory. */
function detach(buffer: ArrayBufferLike): void {
  if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0)
}
