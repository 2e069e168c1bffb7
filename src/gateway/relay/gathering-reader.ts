import type { Clock } from '../../lib/clock.ts'

/**
 * Reads an upstream's stream, where code has to read it, in few steps. A read by code costs several times what the
 * runtime takes to carry the same bytes. workerd returns one chunk of the upstream for a read, however late the read
 * is:
 * - A slow stream is read chunk by chunk, each when it arrives.
 * - From the first quick chunks on, the runtime pumps one branch of the stream, so that the other branch holds what has
 *   arrived. Code then reads that branch at most once in the gathering time, and takes everything at once.
 * Nothing that has arrived is held longer than the gathering time, whatever the upstream does next: bytes wait for a timer,
 * never for further bytes. `readAtLeast` on the upstream itself can be cheaper, but a pending one cannot be ended without
 * losing its bytes (docs/decisions/streams.md).
 */

type Read = ReadableStreamReadResult<Uint8Array>

/** A stream is quick with so many chunks in the gathering time: below that, a read would take one or two all the same. */
const QUICK_CHUNKS = 3

export class GatheringReader {
  readonly #stream: ReadableStream<Uint8Array>
  readonly #gatherMilliseconds: number
  readonly #clock: Clock
  #reader: ReadableStreamDefaultReader<Uint8Array>
  #hasRead = false
  /** When the last chunks were taken, oldest first. */
  readonly #taken: number[] = []
  /** Takes the place of the reader once the stream is quick. */
  #branches: PumpedBranches | null = null
  #canBranch = true

  /** @param gatherMilliseconds the longest time that bytes which have arrived wait to be read together. */
  constructor(stream: ReadableStream<Uint8Array>, gatherMilliseconds: number, clock: Clock) {
    this.#stream = stream
    this.#gatherMilliseconds = gatherMilliseconds
    this.#clock = clock
    this.#reader = stream.getReader()
  }

  /** Whether what is read has been gathered, so that no later step has to gather it again. */
  get gathers(): boolean {
    return this.#branches !== null
  }

  /**
   * The next bytes, or the end. Reads must not overlap. @throws what the stream failed with, after all bytes that
   * arrived before.
   */
  read(): Promise<Read> {
    if (this.#branches) return this.#branches.read()
    if (!this.#canBranch || !this.#isQuick()) {
      this.#hasRead = true
      return this.#reader.read()
    }
    this.#reader.releaseLock()
    this.#branches = PumpedBranches.of(this.#stream, this.#gatherMilliseconds, this.#clock)
    if (this.#branches) return this.#branches.read()
    this.#canBranch = false
    this.#reader = this.#stream.getReader()
    return this.#reader.read()
  }

  /** Hands the stream back, unless its reads are gathered. No read may be in flight. @returns whether it did. */
  release(): boolean {
    if (this.#branches) return false
    this.#reader.releaseLock()
    return true
  }

  /** Ends the stream. A read in flight ends or fails. */
  cancel(): Promise<void> {
    return this.#branches ? this.#branches.cancel() : this.#reader.cancel()
  }

  /** A read is made when the chunk before it has been taken. */
  #isQuick(): boolean {
    if (!this.#hasRead) return false
    const now = this.#clock()
    const earlier = this.#taken.length < QUICK_CHUNKS ? undefined : this.#taken.shift()
    this.#taken.push(now)
    return earlier !== undefined && Math.abs(now - earlier) < this.#gatherMilliseconds
  }
}

/** Bytes that the pump passes on before it waits until they were read: bounds what the branch to read holds. */
const PUMPED_BYTES = 16 * 1024
/** Bytes of one read: what the branch holds at most, with one more block of the runtime. */
const READ_BYTES = 32 * 1024

/**
 * Two branches of a stream: the runtime pumps the first one, and code reads the second one. Both get all bytes. The
 * pump is on the first branch because of memory (kj, `AsyncTee::pullLoop`): for each chunk that the first branch has
 * not passed on, however short, the runtime stores a block of 16 KB. For the second branch it stores an exact copy.
 */
class PumpedBranches {
  readonly #gatherMilliseconds: number
  readonly #clock: Clock
  readonly #reader: ReadableStreamBYOBReader
  /** Takes the pumped bytes, which are not needed. */
  readonly #sink: ReadableStreamBYOBReader
  #readSpace = new Uint8Array(READ_BYTES)
  #sinkSpace = new Uint8Array(PUMPED_BYTES)
  #readBytes = 0
  /** Bytes that the sink is known to have taken. */
  #pumpedBytes = 0
  #isPumping = false
  /** The pump has reached the end of the stream, or has failed. */
  #isOver = false
  #readAt: number
  /** Ends the wait for the gathering time. */
  #wake: () => void = () => {}

  /** @returns null for a stream that is not of the runtime: its branches would be read chunk by chunk. */
  static of(
    stream: ReadableStream<Uint8Array>,
    gatherMilliseconds: number,
    clock: Clock,
  ): PumpedBranches | null {
    if (!isOfRuntime(stream)) return null
    const [pumped, read] = stream.tee()
    return new PumpedBranches(pumped, read, gatherMilliseconds, clock)
  }

  private constructor(
    pumped: ReadableStream<Uint8Array>,
    read: ReadableStream<Uint8Array>,
    gatherMilliseconds: number,
    clock: Clock,
  ) {
    this.#gatherMilliseconds = gatherMilliseconds
    this.#clock = clock
    this.#readAt = clock()
    this.#reader = read.getReader({ mode: 'byob' })
    const { readable, writable } = new IdentityTransformStream()
    this.#sink = readable.getReader({ mode: 'byob' })
    pumped.pipeTo(writable).catch(() => this.#end())
  }

  async read(): Promise<Read> {
    if (!this.#isOver && this.#pumpedBytes <= this.#readBytes) {
      this.#pump()
      await this.#gathered()
    }
    const { done, value } = await this.#reader.read(this.#readSpace)
    this.#readAt = this.#clock()
    if (done || !value) return { done: true, value: undefined }
    this.#readBytes += value.length
    this.#readSpace = new Uint8Array(value.buffer as ArrayBuffer)
    // A copy, because the space is read into again while the caller may still hold the bytes.
    return { done: false, value: value.slice() }
  }

  cancel(): Promise<void> {
    this.#end()
    this.#sink.cancel().catch(() => {})
    return this.#reader.cancel()
  }

  /** Waits until the gathering time since the last read is over, the stream has ended, or a block has arrived. */
  #gathered(): Promise<void> | null {
    // At most the gathering time, also when the clock has been set back.
    const wait = Math.min(this.#gatherMilliseconds, this.#readAt + this.#gatherMilliseconds - this.#clock())
    if (wait <= 0) return null
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, wait)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Lets the runtime pump another block. */
  #pump(): void {
    if (this.#isPumping) return
    this.#isPumping = true
    this.#sink.readAtLeast(PUMPED_BYTES, this.#sinkSpace).then(
      ({ done, value }) => {
        this.#isPumping = false
        if (done || !value || value.length < PUMPED_BYTES) return this.#end()
        this.#pumpedBytes += value.length
        this.#sinkSpace = new Uint8Array(value.buffer as ArrayBuffer)
        this.#wake()
      },
      () => this.#end(),
    )
  }

  #end(): void {
    this.#isOver = true
    this.#wake()
  }
}

/** Whether the runtime itself provides the bytes of a stream; others have no readers that fill a buffer, or no `readAtLeast`. */
function isOfRuntime(stream: ReadableStream<Uint8Array>): boolean {
  try {
    const reader = stream.getReader({ mode: 'byob' })
    reader.releaseLock()
    return 'readAtLeast' in reader
  } catch {
    return false
  }
}
