/** Bytes that are appended to without copying all of them each time: a long frame in small chunks stays cheap. */
export class GrowingBytes {
  #buffer = new Uint8Array(0)
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

  /** Begins anew with a copy of `rest`: frames that were handed out keep the old buffer, and only they do. */
  restart(rest: Uint8Array): void {
    this.#buffer = rest.slice()
    this.length = rest.length
  }
}
