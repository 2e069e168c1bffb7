/**
 * Frees buffers at a known moment. The collector takes a buffer of 50 MB away only when it comes by, and until then
 * the next one lies beside it, in an isolate that has 128 MB. Whoever reads a buffer after its owner may be done with
 * it holds it; it is freed when its owner frees it and nobody holds it.
 */

interface Hold {
  readers: number
  /** What its owner wants done once it is gone; null while it is the owner's. */
  freed: (() => void) | null
}

const holds = new WeakMap<ArrayBufferLike, Hold>()

/**
 * Keeps the buffer under these bytes until the returned function is called, at least once. A holder that never calls it
 * leaves the buffer to the collector, and what it takes of the isolate's budget is never given back.
 */
export function holdBuffer({ buffer }: Uint8Array): () => void {
  const hold = holds.get(buffer) ?? { readers: 0, freed: null }
  holds.set(buffer, hold)
  hold.readers++
  let letGo = false
  return () => {
    if (letGo) return
    letGo = true
    hold.readers--
    if (hold.readers > 0) return
    holds.delete(buffer)
    if (!hold.freed) return
    detach(buffer)
    hold.freed()
  }
}

/**
 * Frees a buffer, now or when it is no longer held. All views of it are empty from then on.
 * @param freed called when it is gone.
 */
export function freeBuffer(buffer: ArrayBufferLike, freed: () => void): void {
  const hold = holds.get(buffer)
  if (hold) {
    hold.freed = freed
    return
  }
  detach(buffer)
  freed()
}

/** Moving it to a buffer of no bytes leaves nothing of it. */
function detach(buffer: ArrayBufferLike): void {
  if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0)
}
