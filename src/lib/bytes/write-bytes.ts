import { withinTime } from '../time-limit.ts'

/** The runtime copies each slice that is written, so slices limit the memory for copies. */
const SLICE_BYTES = 256 * 1024

interface WriteOptions {
  /** The first slices are shorter; `written` is called when all of them were accepted. */
  beginning?: { slices: number; bytes: number; written: () => void }
  /** Milliseconds that a slice may wait until it is accepted. */
  longestWait?: number
  /** Ends the writing when it fires. */
  signal?: AbortSignal
}

/**
 * Writes pieces to a byte stream in slices, each when the one before was accepted, and closes the stream.
 * @throws what the stream throws, the reason of the signal, or TimeLimitError; the stream is aborted then.
 */
export async function writeBytes(
  writable: WritableStream<Uint8Array>,
  pieces: readonly Uint8Array[],
  { beginning, longestWait, signal }: WriteOptions = {},
): Promise<void> {
  const writer = writable.getWriter()
  // A write to a stream without a reader would wait forever.
  const leave = () => void writer.abort().catch(() => {})
  writer.closed.catch(() => {})
  signal?.addEventListener('abort', leave)
  try {
    signal?.throwIfAborted()
    let left = beginning?.slices ?? 0
    for (const slice of slicesOf(pieces, beginning)) {
      const written = writer.write(slice)
      await (longestWait === undefined ? written : withinTime(written, longestWait, 'writing'))
      left -= 1
      if (left === 0) beginning?.written()
    }
    if (left > 0) beginning?.written()
    await writer.close()
  } catch (error) {
    leave()
    throw error
  } finally {
    signal?.removeEventListener('abort', leave)
  }
}

/**
 * Slices of pieces; the first ones as short as `beginning` requires.
 * @internal Tests count its steps.
 */
export function* slicesOf(
  pieces: readonly Uint8Array[],
  beginning?: Pick<NonNullable<WriteOptions['beginning']>, 'slices' | 'bytes'>,
): Generator<Uint8Array> {
  let left = beginning?.slices ?? 0
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; ) {
      // The slices have equal size, so that a short piece has enough of them too.
      const even = Math.max(1, Math.floor((piece.length - at) / Math.max(1, left)))
      const bytes = left > 0 ? Math.min(beginning?.bytes ?? SLICE_BYTES, even) : SLICE_BYTES
      yield piece.subarray(at, at + bytes)
      at = Math.min(at + bytes, piece.length)
      left -= 1
    }
  }
}
