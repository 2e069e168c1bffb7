import type { Attempt } from '../../governance/audit-record.ts'
import type { Usage } from '../../governance/usage.ts'
import { ApiError } from '../../lib/api-error.ts'
import type { EditedBytes } from '../../lib/byte-edits.ts'
import type { OwnedBytes } from '../../lib/bytes/owned-bytes.ts'
import { TooLongError } from '../../lib/bytes/read-bytes.ts'
import type { Clock } from '../../lib/clock.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { abandonedCharge, answerCharge, type ChargeBasis, hidesOutput, inputUsage } from '../calls/charges.ts'
import { transportOf } from '../providers/provider.ts'
import { ProviderUnreachable, sendToProvider } from '../providers/send-to-provider.ts'
import { LONGEST_ANSWER_BYTES, LONGEST_TRANSLATED_BYTES, readWhole } from '../relay/buffered-responses.ts'
import type { Route } from './call-routes.ts'
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

/** The call of an attempt. Not the plan itself, which holds the request's body: an attempt may live as long as a stream. */
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

/** Interface, errors of chat completions: an upstream without a body is 502 `upstream_empty_body`. */
export const noAnswer = (message: string) =>
  new ApiError('upstream', message, { code: 'upstream_empty_body' })

/** One request to one upstream, with its time-outs. Its record and its costs are valid however it ends. */
export class UpstreamAttempt {
  readonly abort = new AbortController()
  /** For the audit record of the call. */
  readonly record: Attempt
  /** The end of the wait that the upstream requested, in milliseconds since the epoch; null when it requested none. */
  requestedUntil: number | null = null
  /** What the upstream may charge although it gave no usable answer; null for nothing. */
  lost: Usage | null = null
  readonly #deps: AttemptDeps
  readonly #call: AttemptedCall
  readonly #route: Route
  readonly #startedAt: number
  #timer: ReturnType<typeof setTimeout> | undefined
  #timedOut = false
  #phase: 'connecting' | 'waiting' | 'over' = 'connecting'
  /** The upstream has the request, or may have it. */
  #sent = false
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
    this.record = {
      provider: route.provider.name,
      upstreamModel: route.upstreamModel,
      status: null,
      failure: null,
      durationMilliseconds: 0,
    }
    call.signal.addEventListener('abort', this.#leave)
    if (call.signal.aborted) this.abort.abort()
  }

  /** The input alone, estimated; null where tokens are not charged. */
  get inputUsage(): Usage | null {
    return inputUsage(this.#call.basis)
  }

  /** The most that it can have used when its caller left before an answer began; null where tokens are not charged. */
  get abandonedUsage(): Usage | null {
    return abandonedCharge(this.#call.basis, null).usage
  }

  /** Whether the upstream has the request, or may have it, and its charge is not known. */
  get mayBeCharged(): boolean {
    const { status, failure } = this.record
    return this.#sent && (failure === null || failure === 'aborted') && (status ?? 0) < 400
  }

  /** @throws ApiError upstream when the provider cannot be reached in time. */
  async send(body: Pick<EditedBytes, 'pieces' | 'length'>): Promise<Response> {
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
        onConnected: this.#beginConnecting(),
        allow: this.#deps.configuration.EGRESS_ALLOW,
        now: this.#startedAt,
      })
      this.#connected()
      this.requestedUntil = noteAnswer(this.#route, response, this.#deps.clock())
      this.#end(response.status, null)
      return response
    } catch (error) {
      throw this.#unanswered(error)
    }
  }

  /** A provider that answered just now is reachable: its connection is not watched, which would cost time. */
  #beginConnecting(): (() => void) | null {
    if (heardLately(this.#route.provider, this.#startedAt)) {
      this.#wait()
      return null
    }
    this.#limit(this.#deps.configuration.UPSTREAM_CONNECT_TIMEOUT_MS)
    return () => this.#connected()
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

  #unanswered(error: unknown): ApiError {
    const reason = this.#reasonOf(error)
    this.#end(null, reason)
    const now = this.#deps.clock()
    if (reason === 'timeout') {
      noteSilence(this.#route, now)
      this.lost = this.inputUsage
    } else if (reason === 'connect_timeout' || (reason === 'unreachable' && this.#phase === 'connecting')) {
      // A connection that breaks later may be one that was kept open too long: this is no evidence about the next request.
      noteUnreachable(this.#route, now)
    }
    logEvent('warn', 'upstream_failed', {
      provider: this.record.provider,
      reason,
      error: errorText(error instanceof Error ? (error.cause ?? error) : error),
    })
    return noAnswer(
      this.#timedOut ? 'The upstream did not answer in time.' : 'The upstream could not be reached.',
    )
  }

  #reasonOf(error: unknown): string {
    if (this.#timedOut) return this.#phase === 'connecting' ? 'connect_timeout' : 'timeout'
    return error instanceof ProviderUnreachable ? error.reason : 'aborted'
  }

  #end(status: number | null, failure: string | null): void {
    const durationMilliseconds = this.#deps.clock() - this.#startedAt
    Object.assign(this.record, { status, failure, durationMilliseconds } satisfies Partial<Attempt>)
  }

  /**
   * Records that an answer which had begun is of no use. The first reason counts.
   * @param lost what the upstream may charge all the same.
   */
  discard(failure: string, lost: Usage | null = null): void {
    this.lost ??= lost
    if (this.record.failure === null) this.#end(this.record.status, failure)
  }

  /**
   * The whole body of an answer, in the isolate's budget until it is released.
   * @throws ApiError upstream when its body fails, is too long or takes too long; rate_limited when there is no room for
   * it, which its caller can wait for.
   */
  async read(response: Response): Promise<OwnedBytes> {
    const limitBytes = this.#deps.configuration.BUFFER_LIMIT_BYTES
    const longest = this.#route.translation ? LONGEST_TRANSLATED_BYTES : LONGEST_ANSWER_BYTES
    let received = 0
    const arrived = (bytes: number) => {
      received += bytes
    }
    try {
      return await readWhole(response, { limitBytes, holder: this.#call.organizationId }, longest, arrived)
    } catch (error) {
      throw this.#unread(error, response.status, received)
    }
  }

  /** No provider charges for an error. An answer that was given up while it was read has been generated in full. */
  #unread(error: unknown, status: number, received: number): ApiError {
    const charged = status < 400
    const hasNoRoom = error instanceof ApiError
    if (!hasNoRoom && !(error instanceof TooLongError)) {
      this.discard(this.#timedOut ? 'timeout' : 'cut', charged ? this.inputUsage : null)
      return noAnswer(
        this.#timedOut ? 'The upstream did not answer in time.' : 'The upstream broke off its answer.',
      )
    }
    const lost = charged ? answerCharge(this.#call.basis, null, received).usage : null
    this.discard(hasNoRoom ? 'no_room' : 'too_long', lost)
    if (!hasNoRoom) return noAnswer('The upstream sent an answer that is too long.')
    const message =
      "The gateway's memory for large answers is in use, and this one does not fit. Try again in a moment."
    return new ApiError('rate_limited', message, { retryAfterSeconds: 1 })
  }

  /** Ends the time-outs, once the answer has been read or is a stream, which has its own. */
  dispose(): void {
    this.#phase = 'over'
    clearTimeout(this.#timer)
    clearTimeout(this.#leaveTimer)
    this.#call.signal.removeEventListener('abort', this.#leave)
  }
}
