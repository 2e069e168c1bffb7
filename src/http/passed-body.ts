import { ApiError } from '../lib/api-error.ts'
import { PartReader } from '../lib/bytes/read-bytes.ts'
import { type BodySource, drain, eachPart } from './request-body.ts'

/** A request body that is passed on as a stream: counted while it passes, and never held as a whole. */
export class PassedBody {
  /** The body, decompressed. It fails when it is too large or cannot be read; `failure` is the reason. */
  readonly stream: ReadableStream<Uint8Array>
  /** The error for the sender of the body. */
  failure: ApiError | null = null
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>
  readonly #passing: Promise<void>

  /** @param source null for a request without a body. */
  constructor(source: BodySource | null) {
    // The native stream: a write resolves when it was read, and RPC takes only byte streams.
    const { readable, writable } = new IdentityTransformStream()
    this.stream = readable
    this.#writer = writable.getWriter()
    this.#writer.closed.catch(() => {})
    this.#passing = source ? this.#pass(source) : this.#writer.close().catch(() => {})
  }

  /**
   * Waits until the body is passed on. What the reader left is drained, so that the sender gets to the answer. To be
   * called when the stream's reader has answered.
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
      // A body over the limit, or one whose reader has stopped: the sender may still be writing.
      await drain(reader)
    }
  }
}
