/** The second branch of a stream whose first branch is piped: read at intervals, as far as bytes have arrived. */

/** A read that takes longer than this waits for bytes that have not arrived. */
const PATIENCE_MS = 2
/** Maximum number of times that `arrived` waits again while bytes keep arriving. */
const MOST_WAITS = 4

type Read = ReadableStreamReadResult<Uint8Array>
const END: Read = { done: true, value: undefined }

export class StreamCopy {
  /** Bytes read so far. */
  length = 0
  readonly #stream: ReadableStream<Uint8Array>
  #reader: ReadableStreamDefaultReader<Uint8Array> | null = null
  /** The read in flight: at most one, of one chunk, because a demand of either branch reads the source for both. */
  #pending: Promise<Read> | null = null
  #isPending = false
  /** The rest of a chunk that `exactly` took a part of. */
  #returned: Uint8Array | null = null
  #isOver = false

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#stream = stream
  }

  /** Whether everything that has arrived was read, and more may arrive. */
  get isCaughtUp(): boolean {
    return this.#isPending && !this.#isOver
  }

  /** The next chunk, or the end. @throws what the stream failed with. */
  async read(): Promise<Read> {
    const returned = this.#returned
    this.#returned = null
    if (returned) return this.#taken({ done: false, value: returned })
    return this.#taken(await this.#next())
  }

  /** The bytes that have arrived, up to about `limit`. The end and a failure are left to `read`. */
  async *arrived(limit = Number.POSITIVE_INFINITY): AsyncGenerator<Uint8Array> {
    const end = this.length + limit
    let before = -1
    for (let waits = 0; waits < MOST_WAITS && this.length > before; waits++) {
      before = this.length
      const late = Promise.withResolvers<null>()
      const timer = setTimeout(() => late.resolve(null), PATIENCE_MS)
      while (this.length < end && !this.#isOver) {
        const result = await Promise.race([this.#next().catch(() => null), late.promise])
        if (result === null || result.done) break
        this.#taken(result)
        yield result.value
      }
      clearTimeout(timer)
    }
  }

  /** The rest of a stream that has ended; in one piece where nothing was read before, which costs least. */
  async *rest(): AsyncGenerator<Uint8Array> {
    if (this.#reader) {
      for (let result = await this.read(); !result.done; result = await this.read()) yield result.value
    } else {
      const value = new Uint8Array(await new Response(this.#stream).arrayBuffer())
      this.length += value.length
      yield value
    }
    this.#isOver = true
    this.#pending = Promise.resolve(END)
  }

  /** Reads `count` bytes, and leaves what comes after them. */
  async *exactly(count: number): AsyncGenerator<Uint8Array> {
    for (let left = count; left > 0; ) {
      const { done, value } = await this.read()
      if (done) return
      if (value.length > left) {
        this.#returned = value.subarray(left)
        this.length -= value.length - left
      }
      yield value.subarray(0, left)
      left -= value.length
    }
  }

  cancel(): Promise<void> {
    this.#isOver = true
    return this.#reader ? this.#reader.cancel() : this.#stream.cancel()
  }

  #next(): Promise<Read> {
    if (this.#pending) return this.#pending
    this.#reader ??= this.#stream.getReader()
    this.#isPending = true
    this.#pending = this.#reader.read()
    this.#pending.then(
      ({ done }) => this.#settled(done),
      () => this.#settled(true),
    )
    return this.#pending
  }

  #settled(isOver: boolean): void {
    this.#isPending = false
    this.#isOver ||= isOver
  }

  #taken(result: Read): Read {
    this.#pending = result.done ? this.#pending : null
    this.length += result.value?.length ?? 0
    return result
  }
}
