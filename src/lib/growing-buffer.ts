import { freeBuffer } from './buffer-holds.ts'

/**
 * Bytes that arrive piece by piece and end up in one place, held once. Large ones lie in a resizable buffer: it takes
 * memory as bytes come, whatever length was announced, and gives all of it back to the system when it is freed.
 * Ordinary memory stays with the process for long after it is free.
 */
export class GrowingBuffer {
  readonly #buffer: ArrayBuffer
  readonly #maximum: number
  #length = 0

  /** @param maximum the most bytes that `append` is given in all. */
  constructor(maximum: number) {
    this.#maximum = maximum
    this.#buffer =
      maximum <= STEP_BYTES ? new ArrayBuffer(maximum) : new ArrayBuffer(0, { maxByteLength: maximum })
  }

  /** @throws RangeError beyond the maximum. */
  append(chunk: Uint8Array): void {
    const length = this.#length + chunk.length
    if (length > this.#maximum) throw new RangeError(`longer than ${this.#maximum} bytes`)
    if (length > this.#buffer.byteLength) {
      const grown = Math.ceil(length / STEP_BYTES) * STEP_BYTES
      this.#buffer.resize(Math.min(grown, this.#maximum))
    }
    new Uint8Array(this.#buffer, this.#length, chunk.length).set(chunk)
    this.#length = length
  }

  /** What has been appended, in place: the one copy, which is empty after `free`. */
  bytes(): Uint8Array {
    return new Uint8Array(this.#buffer, 0, this.#length)
  }

  /**
   * Frees a large buffer, once nobody holds it; a small one is left to the collector. Nothing is appended then.
   * @param freed called when that is done.
   */
  free(freed: () => void): void {
    if (this.#buffer.resizable) freeBuffer(this.#buffer, freed)
    else freed()
  }
}

/** Up to this a buffer is allocated whole; a larger one grows by so much. */
const STEP_BYTES = 1024 * 1024
