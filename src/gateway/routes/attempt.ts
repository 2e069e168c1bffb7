import type { Attempt } from '../../governance/audit-record.ts'
import type { Usage } from '../../governance/credits.ts'
import { ApiError } from '../../lib/api-error.ts'
import type { EditedBytes } from '../../lib/byte-edits.ts'
import type { OwnedBytes } from '../../lib/bytes/owned-bytes.ts'
import { TooLongError } from '../../lib/bytes/read-bytes.ts'
import type { Clock } from '../../lib/clock.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { answerCharge, type ChargeBasis, inputUsage } from '../calls/charges.ts'
import { ProviderUnreachable, sendToProvider } from '../providers/send-to-provider.ts'
import { LONGEST_ANSWER_BYTES, LONGEST_TRANSLATED_BYTES, readWhole } from '../relay/buffered-responses.ts'
import type { Candidate } from './call-routes.ts'
import { beginTrial, heardLately, noteAnswer, noteSilence, noteUnreachable } from './route-health.ts'

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
  organizationId: string
  /** Whether a stream is asked for. */
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

/** How far a request has come: whether it is connected is not known at first. */
type Phase = 'unknown' | 'connecting' | 'waiting' | 'over'

/** One request to one upstream, with its time-outs, and what is known of it whatever becomes of it. */
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
  #sent = false
  #status: number | null = null
  #failure: string | null = null
  #endedAt: number | null = null
  #lost: Usage | null = null
  readonly #leave = () => this.abort.abort()

  constructor(deps: AttemptDeps, call: AttemptedCall, candidate: Candidate) {
    this.#deps = deps
    this.#call = call
    this.#candidate = candidate
    this.#startedAt = deps.clock()
    call.signal.addEventListener('abort', this.#leave)
    if (call.signal.aborted) this.abort.abort()
  }

  /** For the audit record of the call. */
  get record(): Attempt {
    return {
      provider: this.#candidate.provider.name,
      upstreamModel: this.#candidate.upstreamModel,
      status: this.#status,
      failure: this.#failure,
      durationMilliseconds: (this.#endedAt ?? this.#deps.clock()) - this.#startedAt,
    }
  }

  /** What the upstream may charge for although it gave no usable answer; null for nothing. */
  get lost(): Usage | null {
    return this.#lost
  }

  /** The input alone, estimated; null where tokens are not charged. */
  get inputUsage(): Usage | null {
    return inputUsage(this.#call.basis)
  }

  /** Whether the upstream has the request, or may have it, and nothing else is known of what it charges. */
  get mayBeCharged(): boolean {
    const isOpen = this.#failure === null || this.#failure === 'aborted'
    return this.#sent && isOpen && (this.#status ?? 0) < 400
  }

  /** @throws ApiError upstream when the provider cannot be reached in time. */
  async send(body: Pick<EditedBytes, 'pieces' | 'length'>): Promise<Response> {
    const { headers, stream } = this.#call
    const { provider, operation, upstreamModel, translation } = this.#candidate
    try {
      this.abort.signal.throwIfAborted()
      beginTrial(this.#candidate, this.#startedAt)
      const response = await sendToProvider(provider, {
        operation,
        upstreamModel,
        body,
        // Versions and betas of one protocol mean nothing to another; the transport's own are pinned.
        callerHeaders: translation ? null : headers,
        stream,
        signal: this.abort.signal,
        onConnected: this.#beginConnecting(),
        allow: this.#deps.configuration.EGRESS_ALLOW,
        now: this.#startedAt,
      })
      this.#connected()
      this.askedUntil = noteAnswer(this.#candidate, response, this.#deps.clock())
      this.#end(response.status, null)
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
    if (this.#phase === 'connecting' && !this.#timedOut) this.#wait()
  }

  /** From here on the upstream has the request, or may have it. */
  #wait(): void {
    const { configuration } = this.#deps
    this.#phase = 'waiting'
    this.#sent = true
    this.#limit(
      this.#call.stream
        ? configuration.UPSTREAM_HEADERS_TIMEOUT_MS
        : configuration.UPSTREAM_ANSWER_TIMEOUT_MS,
    )
  }

  #unanswered(error: unknown): ApiError {
    const reason = this.#reasonOf(error)
    this.#end(null, reason)
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

  #reasonOf(error: unknown): string {
    if (this.#timedOut) return this.#phase === 'connecting' ? 'connect_timeout' : 'timeout'
    if (!(error instanceof ProviderUnreachable)) return 'aborted'
    return error.reason
  }

  /** A connection that broke off later may be one that was kept open too long; it says nothing of the next. */
  #remember(reason: string): void {
    const now = this.#deps.clock()
    if (reason === 'timeout') {
      noteSilence(this.#candidate, now)
      this.#lost = inputUsage(this.#call.basis)
    } else if (reason === 'connect_timeout' || (reason === 'unreachable' && this.#phase === 'connecting')) {
      noteUnreachable(this.#candidate, now)
    }
  }

  #limit(milliseconds: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#timedOut = true
      this.abort.abort()
    }, milliseconds)
  }

  #end(status: number | null, failure: string | null): void {
    this.#status = status
    this.#failure = failure
    this.#endedAt = this.#deps.clock()
  }

  /**
   * Notes that the answer which had begun is of no use. The first reason counts.
   * @param lost what the upstream may charge for it all the same.
   */
  discard(failure: string, lost: Usage | null = null): void {
    this.#lost ??= lost
    if (this.#failure !== null || this.#endedAt === null) return
    this.#end(this.#status, failure)
  }

  /**
   * The whole body of an answer, in the isolate's budget until it is released.
   * @throws ApiError upstream when it breaks off, is too long or takes too long; rate_limited when there is no room for
   * it, which its caller can wait for.
   */
  async read(response: Response): Promise<OwnedBytes> {
    const room = {
      limitBytes: this.#deps.configuration.BUFFER_LIMIT_BYTES,
      holder: this.#call.organizationId,
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

  /** No provider charges for an error; whatever else it sent, it has generated all of it. */
  #unread(error: unknown, status: number, received: number): ApiError {
    const charged = status < 400
    const hasNoRoom = error instanceof ApiError
    if (!hasNoRoom && !(error instanceof TooLongError)) {
      this.discard(this.#timedOut ? 'timeout' : 'cut', charged ? inputUsage(this.#call.basis) : null)
      return noAnswer(
        this.#timedOut ? 'The upstream did not answer in time.' : 'The upstream broke off its answer.',
      )
    }
    const lost = charged ? answerCharge(this.#call.basis, null, received).usage : null
    this.discard(hasNoRoom ? 'no_room' : 'too_long', lost)
    if (!hasNoRoom) return noAnswer('The upstream sent an answer that is too long.')
    const message =
      'The answer does not fit beside the others that are in progress here. Try again in a moment.'
    return new ApiError('rate_limited', message, { retryAfterSeconds: 1 })
  }

  /** Ends the time-outs of a request whose answer is read, or is a stream, which has times of its own. */
  dispose(): void {
    this.#phase = 'over'
    clearTimeout(this.#timer)
    this.#call.signal.removeEventListener('abort', this.#leave)
  }
}
