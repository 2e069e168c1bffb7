import { ApiError } from '../lib/api-error.ts'
import { PartReader } from '../lib/bytes/read-bytes.ts'
import type { RequestContent } from '../responses/model/types.ts'
import type { AppContext } from './context.ts'
import {
  type BodySource,
  bodySource,
  declaredLength,
  drain,
  eachPart,
  readSmallBody,
} from './request-body.ts'

/** The body of a request that an object reads. */
interface PassedBody {
  /** The body, decompressed. A stream fails when it is too large or cannot be read; `failure` is the reason. */
  readonly content: RequestContent
  /** The length of the content as it was declared; null if it is not known. */
  readonly declaredBytes: number | null
  /** The error for the sender of the body. */
  readonly failure: ApiError | null
  /**
   * Waits until the body is passed on. The part that the reader left is drained, so that the sender gets to the answer. Call it
   * when the reader has answered.
   */
  finish(): Promise<void>
}

/**
 * The body of a request to be passed on: a small one as bytes, others as a stream.
 * @throws ApiError invalid_request for a small body that ends early, and for an encoding that is not supported.
 */
export async function passedBody(context: AppContext): Promise<PassedBody> {
  const declared = declaredLength(context)
  const small = declared === null ? null : await readSmallBody(context, declared)
  if (small) return { content: small.bytes, declaredBytes: declared, failure: null, finish: async () => {} }
  return new StreamedBody(bodySource(context))
}

/** A body that is counted while it passes, and never held as a whole. */
class StreamedBody implements PassedBody {
  readonly content: ReadableStream<Uint8Array>
  readonly declaredBytes: number | null
  failure: ApiError | null = null
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>
  readonly #passing: Promise<void>

  /** @param source null for a request without a body. */
  constructor(source: BodySource | null) {
    // The native stream: a write resolves when it was read, and RPC takes only byte streams.
    const { readable, writable } = new IdentityTransformStream()
    this.content = readable
    this.declaredBytes = source ? source.declared : 0
    this.#writer = writable.getWriter()
    this.#writer.closed.catch(() => {})
    this.#passing = source ? this.#pass(source) : this.#writer.close().catch(() => {})
  }

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
