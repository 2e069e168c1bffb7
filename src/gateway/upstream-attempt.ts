import type { Attempt } from '../governance/audit-record.ts'
import type { Principal } from '../governance/principal.ts'
import { ApiError } from '../lib/api-error.ts'
import type { HeldBody } from '../lib/body-collector.ts'
import type { EditedBytes } from '../lib/byte-edits.ts'
import type { Clock } from '../lib/clock.ts'
import { errorText, logEvent } from '../lib/log.ts'
import { TooLongError } from '../lib/read-stream.ts'
import type { Candidate } from './candidates.ts'
import type { Metered } from './metering.ts'
import { OPERATIONS, type Operation } from './operations.ts'
import type { RequestOutline } from './protocols/request-outline.ts'
import { ProviderUnreachable, sendToProvider } from './providers/send-to-provider.ts'
import { beginTrial, heardLately, noteAnswer, noteSilence, noteUnreachable } from './route-health.ts'
import type { Settlement } from './settlement.ts'
import { LONGEST_ANSWER_BYTES, LONGEST_TRANSLATED_BYTES, readWhole } from './whole-answers.ts'

export interface AttemptDeps {
  clock: Clock
  configuration: {
    EGRESS_ALLOW: readonly string[]
    UPSTREAM_CONNECT_TIMEOUT_MS: number
    UPSTREAM_HEADERS_TIMEOUT_MS: number
    UPSTREAM_ANSWER_TIMEOUT_MS: number
    BUFFER_LIMIT_BYTES: number
  }
}

/** What an attempt needs of the call it is made for. */
export interface AttemptedCall {
  operation: Operation
  principal: Pick<Principal, 'organizationId'>
  outline: Pick<RequestOutline, 'stream'>
  /** The caller's headers. */
  headers: Headers
  /** Fires when the caller leaves. */
  signal: AbortSignal
  settlement: Settlement
}

/** Interface, errors of chat completions: an upstream without a body is 502 `upstream_empty_body`. */
export const noAnswer = (message: string) =>
  new ApiError('upstream', message, { code: 'upstream_empty_body' })

/** How far a request has come: nobody knows whether it is connected, on its way, waits for an answer, or is over. */
type Phase = 'unknown' | 'connecting' | 'waiting' | 'over'

/** One request to one upstream, recorded whatever becomes of it. */
export class UpstreamAttempt {
  readonly abort = new AbortController()
  /** Until when the upstream asked to wait, in milliseconds since the epoch; null when it did not. */
  askedUntil: number | null = null
  readonly #deps: AttemptDeps
  readonly #call: AttemptedCall
  readonly #candidate: Candidate
  readonly #startedAt: number
  #timer: ReturnType<typeof setTimeout> | undefined
  #timedOut = false
  #phase: Phase = 'unknown'
  #entry: Attempt | null = null
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
    const { settlement, headers, outline } = this.#call
    const { provider, operation, upstreamModel, translation } = this.#candidate
    settlement.provider = provider.name
    try {
      this.abort.signal.throwIfAborted()
      beginTrial(this.#candidate, this.#startedAt)
      const response = await sendToProvider(provider, {
        operation,
        upstreamModel,
        body,
        // Versions and betas of one protocol mean nothing to another; the transport's own are pinned.
        callerHeaders: translation ? null : headers,
        stream: outline.stream,
        signal: this.abort.signal,
        onConnected: this.#beginConnecting(),
        allow: this.#deps.configuration.EGRESS_ALLOW,
        now: this.#startedAt,
      })
      this.#connected()
      this.askedUntil = noteAnswer(this.#candidate, response, this.#deps.clock())
      this.#record(response.status, null)
      return response
    } catch (error) {
      throw this.#unanswered(error)
    }
  }

  /** A provider that answered just now is reachable: then the connection is not watched, which costs. */
  #beginConnecting(): (() => void) | null {
    if (heardLately(this.#candidate.provider, this.#startedAt)) {
      this.#wait()
      return null
    }
    this.#phase = 'connecting'
    this.#limit(this.#deps.configuration.UPSTREAM_CONNECT_TIMEOUT_MS)
    return () => this.#connected()
  }

  readonly #connected = (): void => {
    if (this.#phase === 'connecting' && !this.#timedOut) {
      this.#phase = 'waiting'
      this.#wait()
    }
  }

  /** From here on the upstream has the request, or may have it. */
  #wait(): void {
    const { configuration } = this.#deps
    this.#call.settlement.sent = true
    this.#limit(
      this.#call.outline.stream
        ? configuration.UPSTREAM_HEADERS_TIMEOUT_MS
        : configuration.UPSTREAM_ANSWER_TIMEOUT_MS,
    )
  }

  #unanswered(error: unknown): ApiError {
    const reason = this.#failure(error)
    this.#record(null, reason)
    this.#remember(reason)
    logEvent('warn', 'upstream_failed', {
      provider: this.#candidate.provider.name,
      reason,
      error: errorText(error instanceof Error ? (error.cause ?? error) : error),
    })
    return noAnswer(
      this.#timedOut ? 'The upstream did not answer in time.' : 'The upstream could not be reached.',
    )
  }

  #failure(error: unknown): string {
    if (this.#timedOut) return this.#phase === 'connecting' ? 'connect_timeout' : 'timeout'
    if (!(error instanceof ProviderUnreachable)) return 'aborted'
    return error.reason
  }

  /** A connection that broke off later may be one that was kept open too long; it says nothing of the next. */
  #remember(reason: string): void {
    const now = this.#deps.clock()
    if (reason === 'timeout') {
      noteSilence(this.#candidate, now)
      this.#lose()
    } else if (reason === 'connect_timeout' || (reason === 'unreachable' && this.#phase === 'connecting')) {
      noteUnreachable(this.#candidate, now)
    }
  }

  /** Counting tokens is free. @param use what is known of it, else the input alone. */
  #lose(use?: Metered): void {
    if (OPERATIONS[this.#call.operation].generates) this.#call.settlement.lose(use)
  }

  #limit(milliseconds: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#timedOut = true
      this.abort.abort()
    }, milliseconds)
  }

  #record(status: number | null, failure: string | null): void {
    if (this.#entry) return
    this.#entry = {
      provider: this.#candidate.provider.name,
      upstreamModel: this.#candidate.upstreamModel,
      status,
      failure,
      durationMilliseconds: this.#deps.clock() - this.#startedAt,
    }
    this.#call.settlement.attempts.push(this.#entry)
  }

  /**
   * The answer that had begun is of no use.
   * @param charged whether the upstream may charge for it.
   */
  gaveNothing(failure: string, charged = false): void {
    if (charged) this.#lose()
    if (!this.#entry || this.#entry.failure !== null) return
    this.#entry.failure = failure
    this.#entry.durationMilliseconds = this.#deps.clock() - this.#startedAt
  }

  /**
   * The whole body of an answer, in the isolate's budget until it is released.
   * @throws ApiError upstream when it breaks off, is too long or takes too long; rate_limited when there is no room for
   * it, which its caller can wait for.
   */
  async read(response: Response): Promise<HeldBody> {
    const room = {
      limitBytes: this.#deps.configuration.BUFFER_LIMIT_BYTES,
      holder: this.#call.principal.organizationId,
    }
    const longest = this.#candidate.translation ? LONGEST_TRANSLATED_BYTES : LONGEST_ANSWER_BYTES
    let received = 0
    const arrived = (bytes: number) => {
      received += bytes
    }
    try {
      return await readWhole(response, room, longest, arrived)
    } catch (error) {
      throw this.#unread(error, response.status, received)
    }
  }

  /** No provider charges for an error; whatever else it sent, it has made all of it. */
  #unread(error: unknown, status: number, received: number): ApiError {
    const charged = status < 400
    const hasNoRoom = error instanceof ApiError
    if (!hasNoRoom && !(error instanceof TooLongError)) {
      this.gaveNothing(this.#timedOut ? 'timeout' : 'cut', charged)
      return noAnswer(
        this.#timedOut ? 'The upstream did not answer in time.' : 'The upstream broke off its answer.',
      )
    }
    if (charged) this.#lose(this.#call.settlement.answerUse(null, received))
    this.gaveNothing(hasNoRoom ? 'no_room' : 'too_long')
    if (!hasNoRoom) return noAnswer('The upstream sent an answer that is too long.')
    const message =
      'The answer does not fit beside the others that are in progress here. Try again in a moment.'
    return new ApiError('rate_limited', message, { retryAfterSeconds: 1 })
  }

  /** The answer is a stream, which has times of its own. */
  streams(): void {
    this.#phase = 'over'
    clearTimeout(this.#timer)
  }

  /** A stream goes on by itself; what watched its beginning ends here. */
  dispose(): void {
    this.#phase = 'over'
    clearTimeout(this.#timer)
    this.#call.signal.removeEventListener('abort', this.#leave)
  }
}
