import { ApiError } from '../lib/api-error.ts'
import { PartReader } from '../lib/bytes/read-bytes.ts'
import { type BodySource, drain, eachPart } from './request-body.ts'

/**
 * A request body on its way to somebody else: counted while it passes, and never held here as a whole.
 */
export class PassedBody {
  /** The body, decompressed. Breaks off when it is too large, or cannot be read; `failure` says why. */
  readonly stream: ReadableStream<Uint8Array>
  /** What is wrong with the body, in words for its sender. */
  failure: ApiError | null = null
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>
  readonly #passing: Promise<void>

  /** @param source null for a request without a body. */
  constructor(source: BodySource | null) {
    // The native stream: a write ends when it was read, and what is sent out of the isolate has to be a byte stream.
    const { readable, writable } = new IdentityTransformStream()
    this.stream = readable
    this.#writer = writable.getWriter()
    this.#writer.closed.catch(() => {})
    this.#passing = source ? this.#pass(source) : this.#writer.close().catch(() => {})
  }

  /**
   * Waits until nothing of the body is left to pass on. What nobody took is drained, so that its sender gets to the answer.
   * To be called when the stream's reader has answered.
   */
  async finish(): Promise<void> {
    await this.#writer.abort().catch(() => {})
    await this.#passing
  }

  async #pass(source: BodySource): Promise<void> {
    const reader = new PartReader(source.stream, source.declared)
    try {
      await eachPart(reader, source, (part) => this.#writer.write(part))
      await this.#writer.close()
    } catch (error) {
      if (error instanceof ApiError) this.failure = error
      this.#writer.abort(error).catch(() => {})
      // Left are a body over the limit, and one whose reader has stopped; drained is what can still be read.
      await drain(reader)
    }
  }
}
