import { ApiError } from '../lib/api-error.ts'
import type { EditedBytes } from '../lib/byte-edits.ts'
import type { Clock } from '../lib/clock.ts'
import { errorText, logEvent } from '../lib/log.ts'
import { readAll } from '../lib/read-stream.ts'
import type { Candidate } from './candidates.ts'
import type { RequestOutline } from './protocols/request-outline.ts'
import { ProviderUnreachable, sendToProvider } from './providers/provider.ts'
import type { Settlement } from './settlement.ts'

export interface AttemptDeps {
  clock: Clock
  configuration: {
    EGRESS_ALLOW: readonly string[]
    UPSTREAM_HEADERS_TIMEOUT_MS: number
    UPSTREAM_ANSWER_TIMEOUT_MS: number
  }
}

/** What an attempt needs of the call it is made for. */
export interface AttemptedCall {
  outline: Pick<RequestOutline, 'stream'>
  /** The caller's headers. */
  headers: Headers
  /** Fires when the caller leaves. */
  signal: AbortSignal
  settlement: Settlement
}

/** Answers of an upstream are held whole up to this; a longer one is refused. */
const LONGEST_ANSWER_BYTES = 32 * 1024 * 1024
const NO_HEADERS = new Headers()

/** Interface, errors of chat completions: an upstream without a body is 502 `upstream_empty_body`. */
export const noAnswer = (message: string) =>
  new ApiError('upstream', message, { code: 'upstream_empty_body' })

/** One request to one upstream, recorded whatever becomes of it. */
export class UpstreamAttempt {
  readonly abort = new AbortController()
  readonly #deps: AttemptDeps
  readonly #call: AttemptedCall
  readonly #candidate: Candidate
  readonly #startedAt: number
  #timer: ReturnType<typeof setTimeout> | undefined
  #timedOut = false
  #recorded = false
  readonly #leave = () => this.abort.abort()

  constructor(deps: AttemptDeps, call: AttemptedCall, candidate: Candidate) {
    this.#deps = deps
    this.#call = call
    this.#candidate = candidate
    this.#startedAt = deps.clock()
    call.signal.addEventListener('abort', this.#leave)
    if (call.signal.aborted) this.abort.abort()
  }

  /** @throws ApiError upstream when the provider cannot be reached in time. */
  async send(body: Pick<EditedBytes, 'pieces' | 'length'>): Promise<Response> {
    const { configuration } = this.#deps
    const { outline, settlement, headers } = this.#call
    const { provider, operation, translation } = this.#candidate
    this.#limit(
      outline.stream ? configuration.UPSTREAM_HEADERS_TIMEOUT_MS : configuration.UPSTREAM_ANSWER_TIMEOUT_MS,
    )
    settlement.provider = provider.name
    try {
      this.abort.signal.throwIfAborted()
      settlement.sent = true
      const response = await sendToProvider(provider, {
        operation,
        pieces: body.pieces,
        length: body.length,
        // Versions and betas of one protocol mean nothing to another; the transport's own are pinned.
        callerHeaders: translation ? NO_HEADERS : headers,
        stream: outline.stream,
        signal: this.abort.signal,
        allow: configuration.EGRESS_ALLOW,
      })
      this.#record(response.status, null)
      return response
    } catch (error) {
      throw this.#unanswered(error)
    }
  }

  #unanswered(error: unknown): ApiError {
    const unreachable = error instanceof ProviderUnreachable ? error.reason : 'aborted'
    const reason = this.#timedOut ? 'timeout' : unreachable
    this.#record(null, reason)
    this.#call.settlement.unanswered ||= this.#timedOut
    logEvent('warn', 'upstream_failed', {
      provider: this.#candidate.provider.name,
      reason,
      error: errorText(error instanceof Error ? (error.cause ?? error) : error),
    })
    return noAnswer(
      this.#timedOut ? 'The upstream did not answer in time.' : 'The upstream could not be reached.',
    )
  }

  #limit(milliseconds: number): void {
    this.#timer = setTimeout(() => {
      this.#timedOut = true
      this.abort.abort()
    }, milliseconds)
  }

  #record(status: number | null, failure: string | null): void {
    if (this.#recorded) return
    this.#recorded = true
    this.#call.settlement.attempts.push({
      provider: this.#candidate.provider.name,
      upstreamModel: this.#candidate.upstreamModel,
      status,
      failure,
      durationMilliseconds: this.#deps.clock() - this.#startedAt,
    })
  }

  /** The whole body of an answer. @throws ApiError upstream when it breaks off or takes too long. */
  async read(response: Response): Promise<Uint8Array> {
    if (!response.body) return new Uint8Array()
    try {
      return await readAll(response.body, LONGEST_ANSWER_BYTES)
    } catch {
      this.#call.settlement.unanswered = true
      throw noAnswer(
        this.#timedOut ? 'The upstream did not answer in time.' : 'The upstream broke off its answer.',
      )
    }
  }

  /** The answer is a stream, which has times of its own. */
  streams(): void {
    clearTimeout(this.#timer)
  }

  /** A stream goes on by itself; what watched its beginning ends here. */
  dispose(): void {
    clearTimeout(this.#timer)
    this.#call.signal.removeEventListener('abort', this.#leave)
  }
}
