/**
 * Frees buffers at a known moment. The collector takes a buffer of 50 MB away only when it comes by, and until then
 * the next one lies beside it, in an isolate that has 128 MB. Whoever reads a buffer after its owner may be done with
 * it holds it; it is freed when its owner frees it and nobody holds it.
 */

interface Hold {
  readers: number
  freed: boolean
}

const holds = new WeakMap<ArrayBufferLike, Hold>()

/**
 * Keeps the buffer under these bytes until the returned function is called, once. A holder that never calls it leaves
 * the buffer to the collector.
 */
export function holdBuffer({ buffer }: Uint8Array): () => void {
  const hold = holds.get(buffer) ?? { readers: 0, freed: false }
  holds.set(buffer, hold)
  hold.readers++
  return () => {
    hold.readers--
    if (hold.readers > 0) return
    holds.delete(buffer)
    if (hold.freed) detach(buffer)
  }
}

/** Frees a buffer, now or when it is no longer held. All views of it are empty from then on. */
export function freeBuffer(buffer: ArrayBufferLike): void {
  const hold = holds.get(buffer)
  if (hold) hold.freed = true
  else detach(buffer)
}

/** Moving it to a buffer of no bytes leaves nothing of it. */
function detach(buffer: ArrayBufferLike): void {
  if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0)
}
