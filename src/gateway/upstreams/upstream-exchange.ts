import type { Attempt } from '../../ledger/audit-record.ts'
import { ApiError } from '../../lib/api-error.ts'
import type { EditedBytes } from '../../lib/byte-edits.ts'
import type { OwnedBytes } from '../../lib/bytes/owned-bytes.ts'
import { TooLongError } from '../../lib/bytes/read-bytes.ts'
import type { Clock } from '../../lib/clock.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { answerCharge, type ChargeBasis, hidesOutput, inputUsage } from '../calls/charges.ts'
import { noAnswer, type UnusableAnswer, unusable } from '../calls/unusable-answer.ts'
import type { Route } from '../catalogue/call-routes.ts'
import { transportOf } from '../providers/provider.ts'
import { ProviderUnreachable, sendToProvider, type UpstreamRequest } from '../providers/send-to-provider.ts'
import { LONGEST_ANSWER_BYTES, LONGEST_TRANSLATED_BYTES, readWhole } from '../relay/buffered-responses.ts'
import { beginTrial, heardLately, noteAnswer, noteSilence, noteUnreachable } from './route-health.ts'

export interface AttemptDeps {
  clock: Clock
  configuration: {
    EGRESS_ALLOW: readonly string[]
    UPSTREAM_CONNECT_TIMEOUT_MS: number
    UPSTREAM_HEADERS_TIMEOUT_MS: number
    UPSTREAM_ANSWER_TIMEOUT_MS: number
    UPSTREAM_READ_ON_MS: number
    BUFFER_LIMIT_BYTES: number
  }
}

/**
 * The call of an attempt, without the plan, which holds the request's body: an exchange may live as long as a stream.
 */
interface AttemptedCall {
  organizationId: string
  /** Whether the caller requested a stream. */
  stream: boolean
  /** The caller's headers. */
  headers: Headers
  /** Fires when the caller leaves. */
  signal: AbortSignal
  basis: ChargeBasis
}

/** One request to one upstream, with its time-outs. */
export class UpstreamExchange {
  readonly abort = new AbortController()
  readonly #deps: AttemptDeps
  readonly #call: AttemptedCall
  readonly #route: Route
  readonly #startedAt: number
  #timer: ReturnType<typeof setTimeout> | undefined
  #timedOut = false
  #phase: 'connecting' | 'waiting' | 'over' = 'connecting'
  /** The upstream has the request, or may have it. */
  #sent = false
  /** The end of the request: the status of its answer, or why there was none. */
  #end: Pick<Attempt, 'status' | 'failure' | 'durationMilliseconds'> | null = null
  #requestedUntil: number | null = null
  #leaveTimer: ReturnType<typeof setTimeout> | undefined
  /** A call that reasons is read on: what it has used shows only in its usage. */
  readonly #leave = () => {
    const wait = hidesOutput(this.#call.basis, null) ? this.#deps.configuration.UPSTREAM_READ_ON_MS : 0
    if (wait === 0) this.abort.abort()
    else this.#leaveTimer = setTimeout(() => this.abort.abort(), wait)
  }

  constructor(deps: AttemptDeps, call: AttemptedCall, route: Route) {
    this.#deps = deps
    this.#call = call
    this.#route = route
    this.#startedAt = deps.clock()
    call.signal.addEventListener('abort', this.#leave)
    if (call.signal.aborted) this.abort.abort()
  }

  /** The end of the wait that the upstream requested, in milliseconds since the epoch; null when it requested none. */
  get requestedUntil(): number | null {
    return this.#requestedUntil
  }

  /**
   * Whether the upstream has the request, or may have it, and its charge is not known.
   * @param failure why an answer that had begun is of no use; null for none.
   */
  mayBeCharged(failure: string | null): boolean {
    const reason = this.#end?.failure ?? failure
    return this.#sent && (reason === null || reason === 'aborted') && (this.#end?.status ?? 0) < 400
  }

  /**
   * The entry for the audit record of the call. @param failure why an answer that had begun is unusable; null for a usable one.
   */
  record(failure: string | null): Attempt {
    const { provider, upstreamModel } = this.#route
    const ended = this.#end ?? this.#ending(null, null)
    const isLater = failure !== null && ended.failure === null
    const end = isLater ? this.#ending(ended.status, failure) : ended
    return { provider: provider.name, upstreamModel, ...end }
  }

  #ending(status: number | null, failure: string | null) {
    return { status, failure, durationMilliseconds: this.#deps.clock() - this.#startedAt }
  }

  /** @returns unusable when the provider cannot be reached, or does not answer in time. */
  async send(body: Pick<EditedBytes, 'pieces' | 'length'>): Promise<Response | UnusableAnswer> {
    const { headers, stream } = this.#call
    const { provider, operation, upstreamModel, translation } = this.#route
    try {
      this.abort.signal.throwIfAborted()
      beginTrial(this.#route, this.#startedAt)
      const response = await sendToProvider(transportOf(provider), {
        operation,
        upstreamModel,
        body,
        // Version and beta headers belong to one protocol; on translated calls the transport's own are pinned.
        callerHeaders: translation ? null : headers,
        stream,
        signal: this.abort.signal,
        ...this.#beginConnecting(),
        allow: this.#deps.configuration.EGRESS_ALLOW,
        now: this.#startedAt,
      })
      this.#connected()
      this.#requestedUntil = noteAnswer(this.#route, response, this.#deps.clock())
      this.#end = this.#ending(response.status, null)
      return response
    } catch (error) {
      return this.#unanswered(error)
    }
  }

  /**
   * A provider that answered just now is reachable: its connection is not watched, which would cost time. Until a request is
   * authorized nothing of it is sent, and the token service is not the provider.
   */
  #beginConnecting(): Pick<UpstreamRequest, 'onConnected' | 'onSending'> {
    const isReachable = heardLately(this.#route.provider, this.#startedAt)
    if (isReachable && transportOf(this.#route.provider).authorize === null) {
      this.#wait()
      return { onConnected: null, onSending: null }
    }
    this.#limit(this.#deps.configuration.UPSTREAM_CONNECT_TIMEOUT_MS)
    const connected = () => this.#connected()
    return isReachable
      ? { onConnected: null, onSending: connected }
      : { onConnected: connected, onSending: null }
  }

  #connected(): void {
    if (this.#phase === 'connecting' && !this.#timedOut) this.#wait()
  }

  #wait(): void {
    const { UPSTREAM_HEADERS_TIMEOUT_MS, UPSTREAM_ANSWER_TIMEOUT_MS } = this.#deps.configuration
    this.#phase = 'waiting'
    this.#sent = true
    this.#limit(this.#call.stream ? UPSTREAM_HEADERS_TIMEOUT_MS : UPSTREAM_ANSWER_TIMEOUT_MS)
  }

  #limit(milliseconds: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#timedOut = true
      this.abort.abort()
    }, milliseconds)
  }

  #unanswered(error: unknown): UnusableAnswer {
    const reason = this.#reasonOf(error)
    this.#end = this.#ending(null, reason)
    const now = this.#deps.clock()
    if (reason === 'timeout') noteSilence(this.#route, now)
    else if (reason === 'connect_timeout' || (reason === 'unreachable' && this.#phase === 'connecting')) {
      // A connection that breaks later may be one that was kept open too long: this is no evidence about the next request.
      noteUnreachable(this.#route, now)
    }
    logEvent('warn', 'upstream_failed', {
      provider: this.#route.provider.name,
      reason,
      error: errorText(error instanceof Error ? (error.cause ?? error) : error),
    })
    const message = this.#timedOut
      ? 'The upstream did not answer in time.'
      : 'The upstream could not be reached.'
    return unusable(noAnswer(message), reason, reason === 'timeout' ? inputUsage(this.#call.basis) : null)
  }

  #reasonOf(error: unknown): string {
    if (this.#timedOut) return this.#phase === 'connecting' ? 'connect_timeout' : 'timeout'
    return error instanceof ProviderUnreachable ? error.reason : 'aborted'
  }

  /**
   * The whole body of an answer, in the isolate's budget until it is released.
   * @returns unusable when its body fails, is too long or takes too long; also when there is no room for it, which its caller can
   * wait for (`rate_limited`).
   */
  async read(response: Response): Promise<OwnedBytes | UnusableAnswer> {
    const limitBytes = this.#deps.configuration.BUFFER_LIMIT_BYTES
    const longest = this.#route.translation ? LONGEST_TRANSLATED_BYTES : LONGEST_ANSWER_BYTES
    let received = 0
    const arrived = (bytes: number) => {
      received += bytes
    }
    try {
      return await readWhole(response, { limitBytes, holder: this.#call.organizationId }, longest, arrived)
    } catch (error) {
      return this.#unread(error, response.status, received)
    }
  }

  /** No provider charges for an error. An answer that was given up while it was read has been generated in full. */
  #unread(error: unknown, status: number, received: number): UnusableAnswer {
    const isCharged = status < 400
    const { basis } = this.#call
    const hasNoRoom = error instanceof ApiError
    if (!hasNoRoom && !(error instanceof TooLongError)) {
      const message = this.#timedOut
        ? 'The upstream did not answer in time.'
        : 'The upstream broke off its answer.'
      const lost = isCharged ? inputUsage(basis) : null
      return unusable(noAnswer(message), this.#timedOut ? 'timeout' : 'cut', lost)
    }
    const lost = isCharged ? answerCharge(basis, null, received).usage : null
    if (!hasNoRoom)
      return unusable(noAnswer('The upstream sent an answer that is too long.'), 'too_long', lost)
    const message =
      "The gateway's memory for large answers is in use, and this one does not fit. Try again in a moment."
    return unusable(new ApiError('rate_limited', message, { retryAfterSeconds: 1 }), 'no_room', lost)
  }

  /** Ends the time-outs, once the answer has been read or is a stream, which has its own. */
  dispose(): void {
    this.#phase = 'over'
    clearTimeout(this.#timer)
    clearTimeout(this.#leaveTimer)
    this.#call.signal.removeEventListener('abort', this.#leave)
  }
}
