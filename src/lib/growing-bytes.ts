const EMPTY = new Uint8Array(0)

/** A buffer that doubles when it is full, so that appending many small chunks is linear. */
export class GrowingBytes {
  #buffer: Uint8Array = EMPTY
  length = 0

  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.length)
  }

  append(chunk: Uint8Array): Uint8Array {
    const length = this.length + chunk.length
    if (length > this.#buffer.length) {
      const grown = new Uint8Array(Math.max(length, 2 * this.#buffer.length))
      grown.set(this.bytes)
      this.#buffer = grown
    }
    this.#buffer.set(chunk, this.length)
    this.length = length
    return this.bytes
  }

  /** Restarts with a copy of `rest`: frames returned before are views of the old buffer. */
  restart(rest: Uint8Array): void {
    this.#buffer = rest.length === 0 ? EMPTY : rest.slice()
    this.length = rest.length
  }
}
