/** A stream that begins before its upstream has sent anything: its caller would close a silent connection. */
import type { CallOutcome } from '../../ledger/audit-record.ts'
import { ApiError } from '../../lib/api-error.ts'
import { joinBytes } from '../../lib/byte-edits.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import type { ModelAnswer, SentCall } from '../calls/model-call.ts'
import type { Json } from '../protocols/json.ts'
import { OPERATIONS, type Operation } from '../protocols/operations.ts'
import { isOverload } from '../protocols/overload.ts'
import type { Dialect } from '../protocols/protocol.ts'
import { upstreamError } from '../translation/error-shapes.ts'
import { providerMessage } from '../translation/upstream-errors.ts'
import { streamHeaders } from './answer-headers.ts'
import { CLIENT_LEFT } from './stream-answer.ts'

interface EarlyStreamDeps {
  configuration: { STREAM_COMMIT_MS: number; STREAM_HEARTBEAT_MS: number }
}

/** A relay that has the upstream's headers commits at the same time, and is then first: its answer has these headers. */
const AFTER_RELAY_MS = 100

/**
 * The sent call, or after STREAM_COMMIT_MS a stream of heartbeats that the answer follows. A failure after that is a frame
 * of the stream. Routes are tried as before, because heartbeats are no part of an answer.
 */
export async function beginInTime(
  { configuration }: EarlyStreamDeps,
  operation: Operation,
  sending: Promise<SentCall>,
): Promise<SentCall> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), configuration.STREAM_COMMIT_MS + AFTER_RELAY_MS)
  })
  const inTime = await Promise.race([sending, late])
  clearTimeout(timer)
  if (inTime) return inTime
  const { dialect } = OPERATIONS[operation].protocol
  const { readable, writable } = new IdentityTransformStream()
  // A failure here means that the caller has left.
  new EarlyStream(writable, dialect, configuration.STREAM_HEARTBEAT_MS).follow(sending).catch(() => {})
  const headers = streamHeaders(new Headers(), { secrets: [] })
  const outcome = sending.then((sent) => sent.outcome).then(inBand)
  return { kind: 'answered', answer: { status: 200, headers, body: readable }, outcome, sending }
}

/** The caller of a call that failed late has received 200. */
function inBand(outcome: CallOutcome): CallOutcome {
  if (outcome.status < 400 || outcome.status === CLIENT_LEFT) return outcome
  return { ...outcome, status: 200, errorCode: 'stream_error', flags: [...outcome.flags, 'stream_error'] }
}

class EarlyStream {
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>
  readonly #dialect: Dialect
  readonly #timer: ReturnType<typeof setInterval>
  /** The caller has not taken the last heartbeat. */
  #isBehind = false

  constructor(writable: WritableStream<Uint8Array>, dialect: Dialect, heartbeatMilliseconds: number) {
    this.#writer = writable.getWriter()
    this.#dialect = dialect
    this.#timer = setInterval(() => this.#beat(), heartbeatMilliseconds)
    this.#beat()
  }

  #beat(): void {
    if (this.#isBehind) return
    this.#isBehind = true
    this.#writer.write(this.#dialect.heartbeat).then(
      () => {
        this.#isBehind = false
      },
      // The caller has left, which ends the call by its signal.
      () => clearInterval(this.#timer),
    )
  }

  /** Sends the answer after the heartbeats. @throws when the caller leaves. */
  async follow(sending: Promise<SentCall>): Promise<void> {
    const sent = await sending.finally(() => clearInterval(this.#timer))
    if (sent.kind === 'failed') return this.#fail(messageOf(sent.error))
    const { answer } = sent
    if (answer.status === CLIENT_LEFT) return this.#writer.abort()
    if (answer.status >= 400) {
      const error = await refusalOf(answer)
      return this.#fail(providerMessage(answer.status, error), answer.status === 529 || isOverload(error))
    }
    const isStream = answer.headers['content-type']?.includes('text/event-stream') ?? false
    if (!isStream) {
      if (answer.body instanceof ReadableStream) await answer.body.cancel()
      return this.#fail('The upstream did not stream its answer.')
    }
    if (answer.body instanceof ReadableStream) await this.#copy(answer.body.getReader())
    else await this.#writer.write(answer.body)
    await this.#writer.close()
  }

  /** Chunk by chunk, so that a slow caller slows the upstream. A pipe would have to wait for the last heartbeat. */
  async #copy(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    try {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return
        await this.#writer.write(value)
      }
    } catch (error) {
      reader.cancel(error).catch(() => {})
      this.#writer.abort(error).catch(() => {})
      throw error
    }
  }

  async #fail(message: string, isOverload = false): Promise<void> {
    await this.#writer.write(joinBytes(this.#dialect.failure(message, isOverload)))
    await this.#writer.close()
  }
}

/** Texts of unexpected errors are logged, and never sent. */
function messageOf(error: Error): string {
  if (error instanceof ApiError) return error.message
  logEvent('error', 'stream_failed', { error: errorText(error) })
  return 'Something went wrong.'
}

async function refusalOf({ body }: ModelAnswer): Promise<Json> {
  const bytes = body instanceof ReadableStream ? new Uint8Array(await new Response(body).arrayBuffer()) : body
  return upstreamError(bytes)
}
