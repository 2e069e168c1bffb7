import { answerContext, type BufferedAnswer, protocolOf, readBufferedAnswer } from './buffered-answer.ts'
/** One attempt on one route: its request is sent once, and the answer is read, or begins as a stream. */

import type { GovernedCall } from '../../calls/governed-call.ts'
import type { Inspection } from '../../dlp/inspection.ts'
import type { Attempt, Usage } from '../../ledger/audit-record.ts'
import { ApiError } from '../../lib/api-error.ts'
import { readAll } from '../../lib/bytes/read-bytes.ts'

import type { InspectionCounts } from '../../wire/records.ts'
import { abandonedCharge, inputUsage, type LostCharge } from '../calls/charges.ts'
import type { PlannedCall } from '../calls/model-call.ts'
import type { RouteRequest } from '../calls/route-request.ts'
import { noAnswer, type UnusableAnswer, unusable } from '../calls/unusable-answer.ts'
import type { Json } from '../protocols/json.ts'
import { OPERATIONS } from '../protocols/operations.ts'
import { transportOf } from '../providers/provider.ts'
import type { BufferedResponses } from '../relay/buffered-responses.ts'
import { type CallerForm, type StartedStream, type StreamDeps, startStream } from '../relay/stream-answer.ts'

import { errorIn } from '../translation/error-shapes.ts'
import { impliedStatus } from '../translation/upstream-errors.ts'
import { type AttemptDeps, UpstreamExchange } from './upstream-exchange.ts'

/** Dependencies of an attempt and of the stream that may answer it. */
export type RouteDeps = AttemptDeps & StreamDeps

/** Options of sending a call, besides its plan. */
export interface SendOptions {
  /** Fires when the caller leaves. */
  signal: AbortSignal
  form: CallerForm
  /** Takes the bodies that are read. */
  buffered: BufferedResponses
}

/** An error answer of the upstream, also one that it sent with status 200. */
interface UpstreamError {
  kind: 'upstream_error'
  response: Response
  body: Uint8Array
}

/** An error answer that is the caller's only if no other route answers. */
export interface DeferredError {
  kind: 'deferred_error'
  response: Response
  /** Read while other routes are tried; null when reading failed. */
  body: Promise<Uint8Array | null>
  /** Ends the exchange, whose upstream may still be sending. */
  giveUp: () => void
}

/** The result of one attempt: its answer, its record, and its possible charge without a usable answer. */
export interface Attempted {
  request: RouteRequest
  answer:
    | BufferedAnswer
    | StartedStream
    | UpstreamError
    | DeferredError
    | UnusableAnswer
    /** The caller left. */
    | { kind: 'client_left' }
    /** A fault of the gateway. */
    | { kind: 'fault'; error: unknown }
  record: Attempt
  /** Usage that the upstream may charge although it gave no usable answer; null for nothing. */
  lost: Usage | null
  requestCounts: InspectionCounts
  /** Counts of the answer, also when it must not pass; null when none came. */
  responseCounts: InspectionCounts | null
  /** The end of the wait that the upstream requested, in milliseconds since the epoch; null when it requested none. */
  requestedUntil: number | null
}

/** Facts about earlier attempts of the same call. */
interface EarlierAttempts {
  /** The possible charge of earlier attempts. */
  lost: LostCharge | null
  /** Whether an error answer is deferred, because another route may answer. @param body once it has been read. */
  defersError: (status: number, body?: Uint8Array) => boolean
}

/** The longest error body, in bytes, that is kept while other routes are tried. */
const LONGEST_DEFERRED_BYTES = 1024 * 1024

/** Sends a request over its route, and reads the answer, or the beginning of a stream. Never throws. */
export function attemptRoute(
  deps: RouteDeps,
  planned: PlannedCall,
  call: GovernedCall,
  request: RouteRequest,
  options: SendOptions,
  earlier: EarlierAttempts,
): Promise<Attempted> {
  return new RouteAttempt(deps, planned, call, request, options).run(earlier)
}

/** An answer of the upstream, with what its attempt is on record with: an error can be an answer, and a failure too. */
interface Outcome<Answer = Exclude<Attempted['answer'], { kind: 'client_left' | 'fault' }>> {
  answer: Answer
  failure: string | null
  lost: Usage | null
}

const answered = (answer: Exclude<Outcome['answer'], UnusableAnswer>): Outcome => ({
  answer,
  failure: null,
  lost: null,
})

const failedBy = (answer: UnusableAnswer): Outcome => ({
  answer,
  failure: answer.failure,
  lost: answer.lost,
})

class RouteAttempt {
  readonly #request: RouteRequest
  readonly #exchange: UpstreamExchange
  readonly #deps: RouteDeps
  readonly #planned: PlannedCall
  readonly #call: GovernedCall
  readonly #options: SendOptions
  #responseCounts: InspectionCounts | null = null

  constructor(
    deps: RouteDeps,
    planned: PlannedCall,
    call: GovernedCall,
    request: RouteRequest,
    options: SendOptions,
  ) {
    const { outline, basis } = planned
    const { headers, principal } = planned.request
    this.#deps = deps
    this.#planned = planned
    this.#call = call
    this.#request = request
    this.#options = options
    const { organizationId } = principal
    const attempted = { organizationId, stream: outline.stream, headers, signal: options.signal, basis }
    this.#exchange = new UpstreamExchange(deps, attempted, request.route)
  }

  async run(earlier: EarlierAttempts): Promise<Attempted> {
    const { answer, failure, lost } = await this.#settled(earlier)
    // The body of a deferred error is still to be read, within the time-out of its attempt.
    if (answer.kind !== 'deferred_error') this.#exchange.dispose()
    return this.#ended(answer, failure, lost)
  }

  async #settled(earlier: EarlierAttempts): Promise<Outcome<Attempted['answer']>> {
    const { signal } = this.#options
    try {
      const outcome = await this.#outcome(earlier)
      if (!signal.aborted || outcome.answer.kind !== 'unusable') return outcome
      const { failure, lost } = outcome
      return { answer: { kind: 'client_left' }, failure, lost: this.#abandoned(failure) ?? lost }
    } catch (error) {
      if (signal.aborted) {
        return { answer: { kind: 'client_left' }, failure: null, lost: this.#abandoned(null) }
      }
      if (error instanceof ApiError) return failedBy(unusable(error))
      const lost = this.#exchange.mayBeCharged(null) ? inputUsage(this.#planned.basis) : null
      return { answer: { kind: 'fault', error }, failure: null, lost }
    }
  }

  /** Possible usage of an upstream that had the request when the caller left; null when nothing can be charged. */
  #abandoned(failure: string | null): Usage | null {
    return this.#exchange.mayBeCharged(failure) ? abandonedCharge(this.#planned.basis, null).usage : null
  }

  #ended(answer: Attempted['answer'], failure: string | null, lost: Usage | null): Attempted {
    const { inspected } = this.#planned
    const { released, withheld } = this.#request.body
    return {
      request: this.#request,
      answer,
      record: this.#exchange.record(failure),
      lost,
      requestCounts: { ...inspected.counts, released, withheld },
      responseCounts: this.#responseCounts,
      requestedUntil: this.#exchange.requestedUntil,
    }
  }

  async #outcome({ lost, defersError }: EarlierAttempts): Promise<Outcome> {
    const { route, body, translated } = this.#request
    const response = await this.#exchange.send(translated?.takeRequest() ?? body)
    if ('kind' in response) return failedBy(response)
    if (response.status >= 400) return this.#errorAnswer(response, defersError)
    const { streamType } = transportOf(route.provider)
    const isStream = response.headers.get('content-type')?.includes(streamType) ?? false
    return isStream ? this.#stream(response, lost, defersError) : this.#buffered(response, defersError)
  }

  async #errorAnswer(response: Response, defersError: EarlierAttempts['defersError']): Promise<Outcome> {
    if (defersError(response.status)) {
      const reading = response.body ? readAll(response.body, LONGEST_DEFERRED_BYTES) : new Uint8Array()
      const body = Promise.resolve(reading).catch(() => null)
      const giveUp = () => {
        this.#exchange.dispose()
        this.#exchange.abort.abort()
      }
      return answered({ kind: 'deferred_error', response, body, giveUp })
    }
    const read = await this.#exchange.read(response)
    if ('kind' in read) return failedBy(read)
    const body = this.#options.buffered.take(read)
    if (!defersError(response.status, body)) return answered({ kind: 'upstream_error', response, body })
    const giveUp = () => this.#exchange.dispose()
    return answered({ kind: 'deferred_error', response, body: Promise.resolve(body), giveUp })
  }

  async #stream(
    response: Response,
    lost: LostCharge | null,
    defersError: EarlierAttempts['defersError'],
  ): Promise<Outcome> {
    const { request, model, outline, basis } = this.#planned
    const { route, translated } = this.#request
    if (translated && !outline.stream) {
      return failedBy(unusable(noAnswer('The upstream streamed an answer that was asked for whole.')))
    }
    this.#exchange.dispose()
    const inspection = this.#inspection()
    const { signal, form } = this.#options
    const started = await startStream(this.#deps, {
      response,
      route,
      reader: protocolOf(this.#request).streamReader(answerContext(this.#planned, this.#request, inspection)),
      inspection,
      translated,
      form,
      upstreamAbort: this.#exchange.abort,
      signal,
      call: this.#call,
      basis,
      lost,
      // The plan itself is not passed on: it would keep the request's body, up to 50 MB, for as long as the stream lasts.
      caller: { operation: request.operation, modelId: model.id, usageRequested: outline.usageRequested },
    })
    if (started.kind === 'stream') return answered(started)
    if (started.kind === 'unusable') return failedBy(started)
    const { body, error, failure, lost: used } = started
    return this.#errorUnder200(response, body, unusable(error, failure, used), defersError)
  }

  async #buffered(response: Response, defersError: EarlierAttempts['defersError']): Promise<Outcome> {
    const read = await this.#exchange.read(response)
    if ('kind' in read) return failedBy(read)
    const body = this.#options.buffered.take(read)
    const answer = await readBufferedAnswer(this.#planned, this.#request, response, body, this.#inspection())
    if (answer.kind === 'buffered') return answered(answer)
    if (answer.kind === 'unusable') return failedBy(answer)
    return this.#errorUnder200(response, answer.body, { ...answer, kind: 'unusable' }, defersError)
  }

  /**
   * An error that the upstream sent with status 200, as the answer with the status that the error stands for.
   * @param body after inspection. @param otherwise the result for an error without a known status.
   */
  async #errorUnder200(
    response: Response,
    body: Json,
    otherwise: UnusableAnswer,
    defersError: EarlierAttempts['defersError'],
  ): Promise<Outcome> {
    const error = errorIn(body)
    const status = impliedStatus(error)
    if (status === null) return failedBy(otherwise)
    const headers = new Headers(response.headers)
    for (const name of BODY_HEADERS) headers.delete(name)
    headers.set('content-type', 'application/json')
    // Errors with a status are forwarded unchanged. These have none, so that they get the envelope of the surface.
    const { ownErrorEnvelope } = OPERATIONS[this.#planned.request.operation]
    const sent = JSON.stringify(ownErrorEnvelope ? body : { error })
    const outcome = await this.#errorAnswer(new Response(sent, { status, headers }), defersError)
    return { ...outcome, failure: otherwise.failure, lost: otherwise.lost }
  }

  #inspection(): Inspection {
    const inspection = this.#planned.policy.responseInspection()
    this.#responseCounts = inspection.counts
    return inspection
  }
}

/** Headers of a body that is replaced. */
const BODY_HEADERS = ['content-encoding', 'content-length', 'transfer-encoding']
