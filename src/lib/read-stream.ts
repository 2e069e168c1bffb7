import { joinBytes } from './byte-edits.ts'

/** A stream that is longer than its reader allows. */
export class TooLongError extends Error {
  constructor(limit: number) {
    super(`longer than ${limit} bytes`)
    this.name = 'TooLongError'
  }
}

/**
 * Reads a stream whole.
 * @param limit in bytes. @throws TooLongError at the first byte over it, and whatever the stream throws.
 */
export async function readAll(stream: ReadableStream<Uint8Array>, limit: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  let length = 0
  const reader = stream.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return joinBytes(pieces)
    length += value.length
    if (length > limit) {
      await reader.cancel().catch(() => {})
      throw new TooLongError(limit)
    }
    pieces.push(value)
  }
}
