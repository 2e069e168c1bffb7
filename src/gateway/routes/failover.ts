/** One call over its routes: another route is tried only after one that gave no usable answer. */
import type { Attempt, InspectionCounts } from '../../governance/audit-record.ts'
import type { GovernedCall } from '../../governance/governed-call.ts'
import { addUsage, type Usage } from '../../governance/usage.ts'
import { ApiError } from '../../lib/api-error.ts'
import { pause } from '../../lib/pause.ts'
import { inTurns } from '../../lib/slices.ts'
import type { Charge } from '../calls/charges.ts'
import type { PlannedCall } from '../calls/model-call.ts'
import { OPERATIONS } from '../operations.ts'
import type { StartedStream, StreamDeps } from '../relay/stream-answer.ts'
import { isRefusalStatus, refusesGateway } from '../translation/upstream-errors.ts'
import { Affinity } from './affinity.ts'
import { noAnswer } from './attempt.ts'
import { inOrder, type Route } from './call-routes.ts'
import { DeferredErrors } from './deferred-errors.ts'
import { noteErrorAnswer, noteServed, type ProviderHealthDeps } from './provider-health.ts'
import { type BufferedAnswer, type RouteAnswer, RouteCall, type SendOptions } from './route-call.ts'
import { backoffOf } from './route-health.ts'
import { type RouteRequest, routeRequest } from './route-request.ts'

export interface FailoverDeps extends StreamDeps, ProviderHealthDeps {
  configuration: StreamDeps['configuration'] & { UPSTREAM_RETRY_WAIT_MS: number }
}

/** The result of a call over all its attempts. */
export interface FailoverResult {
  answer: FailoverAnswer
  attempts: Attempt[]
  /** What attempts without a usable answer may be charged for; null for nothing. */
  lost: Usage | null
  /** The route that answered, or was tried last; null when none was. */
  route: Route | null
  /** Members of the caller's request that its translation for this route dropped. */
  dropped: readonly string[]
  /** Null when no request was sent. */
  requestCounts: InspectionCounts | null
  /** Of an answer that must not pass; null when none came. */
  responseCounts: InspectionCounts | null
}

type FailoverAnswer =
  | BufferedAnswer
  | StartedStream
  /** The most useful error answer of an upstream. */
  | { kind: 'upstream_error'; response: Response; body: Uint8Array }
  | { kind: 'failed'; error: unknown }
  /** @see CLIENT_LEFT */
  | { kind: 'client_left'; charge?: Charge; counts?: InspectionCounts }

/**
 * Routes are tried while nothing was sent to the caller: the next one when the last could not be reached, gave no usable
 * answer, or answered a status of `movesOn`. Every other answer, such as a 400, is the caller's. A route that requested to
 * wait (`Retry-After`) is tried before its time only when no other has answered; when its time comes within
 * UPSTREAM_RETRY_WAIT_MS and none answered, the call waits for it and tries it once more. A model with one route is tried
 * once: its errors are passed on, and callers repeat by themselves.
 * @returns the first answer, else the most useful error of an upstream, unchanged. Never throws.
 */
export function sendWithFailover(
  deps: FailoverDeps,
  planned: PlannedCall,
  call: GovernedCall,
  options: SendOptions,
): Promise<FailoverResult> {
  return new Failover(deps, planned, call, options).run()
}

/**
 * The longest time until `sendWithFailover` begins an answer, in milliseconds.
 * @param stream whether the caller requested a stream. @param routes their number.
 */
export function longestFailover(
  configuration: FailoverDeps['configuration'],
  stream: boolean,
  routes: number,
): number {
  const attempt = stream
    ? configuration.UPSTREAM_HEADERS_TIMEOUT_MS + configuration.UPSTREAM_FIRST_EVENT_TIMEOUT_MS
    : configuration.UPSTREAM_ANSWER_TIMEOUT_MS
  const again = routes > 1
  const attempts = routes + (again ? 1 : 0)
  const wait = again ? configuration.UPSTREAM_RETRY_WAIT_MS : 0
  return (configuration.UPSTREAM_CONNECT_TIMEOUT_MS + attempt) * attempts + wait
}

/** Time-outs, conflicts and limits of the upstream, which official SDKs repeat as well. */
const PASSING = new Set([408, 409, 429])

/** A provider that refuses the gateway itself is no evidence about the others. */
const movesOn = (status: number): boolean => isRefusalStatus(status) || PASSING.has(status) || status >= 500

class Failover {
  readonly #deps: FailoverDeps
  readonly #planned: PlannedCall
  readonly #call: GovernedCall
  readonly #options: SendOptions
  readonly #affinity: Affinity
  /** In the order in which they were made. */
  readonly #routeCalls: RouteCall[] = []
  readonly #deferred = new DeferredErrors()
  /** Until when routes requested to wait, in milliseconds since the epoch. */
  readonly #requestedUntil = new Map<Route, number>()
  /** Where the answer is a deferred error, the call that received it. */
  #answering: RouteCall | null = null
  /** The first failure of an upstream, and of a translation: the result when no upstream sent an error. */
  #failure: ApiError | null = null
  #untranslatable: ApiError | null = null
  /** Made with the plan; null once it was sent. */
  #firstRequest: RouteRequest | null

  constructor(deps: FailoverDeps, planned: PlannedCall, call: GovernedCall, options: SendOptions) {
    this.#deps = deps
    this.#planned = planned
    this.#call = call
    this.#options = options
    this.#affinity = new Affinity(planned, deps.clock)
    this.#firstRequest = planned.firstRequest
  }

  async run(): Promise<FailoverResult> {
    try {
      const answer = (await this.#tryAll()) ?? (await this.#tryAgain()) ?? (await this.#bestError())
      return this.#result(this.#options.signal.aborted ? unreceived(answer) : answer)
    } catch (error) {
      return this.#result(this.#options.signal.aborted ? { kind: 'client_left' } : { kind: 'failed', error })
    } finally {
      this.#deferred.giveUp()
    }
  }

  async #tryAll(): Promise<FailoverAnswer | null> {
    for (const route of inOrder(this.#planned.routes, this.#affinity.route, this.#deps.clock())) {
      this.#options.signal.throwIfAborted()
      const answer = this.#isSkipped(route) ? null : await this.#try(route)
      if (answer) return answer
    }
    return null
  }

  /** Whether a route that requested to wait is left alone for now: others have answered, or the call can wait for it. */
  #isSkipped(route: Route): boolean {
    const backoff = this.#hasOneRoute ? null : backoffOf(route, this.#deps.clock())
    if (backoff?.reason !== 'requested') return false
    this.#requestedUntil.set(route, backoff.until)
    return this.#deferred.size > 0 || this.#soonest() !== null
  }

  get #hasOneRoute(): boolean {
    return this.#planned.routes.length === 1
  }

  /** Waits for the route with the shortest wait, if that is short, and tries it once more. */
  async #tryAgain(): Promise<FailoverAnswer | null> {
    const soonest = this.#soonest()
    if (!soonest) return null
    await pause(soonest.wait, this.#options.signal)
    return this.#try(soonest.route)
  }

  /** The route with the shortest wait; null when that is too long, or none requested to wait. */
  #soonest(): { route: Route; wait: number } | null {
    const [soonest] = [...this.#requestedUntil].sort(([, left], [, right]) => left - right)
    if (!soonest || this.#hasOneRoute) return null
    const [route, until] = soonest
    const longest = this.#deps.configuration.UPSTREAM_RETRY_WAIT_MS
    const wait = Math.max(0, until - this.#deps.clock())
    return longest === 0 || wait > longest ? null : { route, wait }
  }

  /** @returns null when another route may be tried. */
  async #try(route: Route): Promise<FailoverAnswer | null> {
    const request = await this.#requestFor(route)
    if (!request) return null
    const lost = this.#lost()
    const routeCall = new RouteCall(this.#deps, this.#planned, this.#call, request, this.#options)
    this.#routeCalls.push(routeCall)
    let answer: RouteAnswer | null = null
    try {
      answer = await routeCall.run(lost)
    } finally {
      // The body of an error is still to be read, within the time-out of its attempt.
      if (answer?.kind !== 'error_status') routeCall.attempt.dispose()
    }
    if (answer.kind === 'error_status') return this.#errorStatus(routeCall, answer.response)
    if (answer.kind === 'nothing') {
      this.#failure ??= answer.error
      return null
    }
    this.#affinity.noteAnswer(route)
    noteServed(this.#deps, route.provider)
    return answer
  }

  /** @returns null for a route whose protocol cannot express the request. */
  async #requestFor(route: Route): Promise<RouteRequest | null> {
    const first = this.#firstRequest
    if (first?.route === route) {
      this.#firstRequest = null
      return first
    }
    const request = await inTurns(routeRequest(this.#planned, route))
    if (!(request instanceof ApiError)) return request
    this.#untranslatable ??= request
    return null
  }

  async #errorStatus(routeCall: RouteCall, response: Response): Promise<FailoverAnswer | null> {
    const { status } = response
    if (this.#hasOneRoute || !movesOn(status)) return this.#readError(routeCall, response)
    const { route } = routeCall.request
    this.#deferred.add(routeCall, response).then((body) => noteErrorAnswer(this.#deps, route, status, body))
    const { requestedUntil } = routeCall.attempt
    if (requestedUntil === null) this.#requestedUntil.delete(route)
    else this.#requestedUntil.set(route, requestedUntil)
    return null
  }

  /** @returns null when its body failed: another route may be tried. */
  async #readError(routeCall: RouteCall, response: Response): Promise<FailoverAnswer | null> {
    const { attempt, request } = routeCall
    try {
      const body = this.#options.buffered.take(await attempt.read(response))
      noteErrorAnswer(this.#deps, request.route, response.status, body)
      return this.#errorAnswer(response, body)
    } catch (error) {
      if (!(error instanceof ApiError) || error.kind !== 'upstream') throw error
      attempt.discard('unusable_answer')
      this.#failure ??= error
      return null
    } finally {
      attempt.dispose()
    }
  }

  /** @throws ApiError when no upstream sent an error. */
  async #bestError(): Promise<FailoverAnswer> {
    const best = await this.#deferred.best()
    if (best) {
      this.#answering = best.routeCall
      return this.#errorAnswer(best.response, best.body)
    }
    throw this.#failure ?? this.#untranslatable ?? noAnswer('The upstream gave no answer.')
  }

  /** On surfaces with errors of their own, a provider that refuses the gateway is a fault of the gateway. */
  #errorAnswer(response: Response, body: Uint8Array): FailoverAnswer {
    const { status } = response
    const { ownErrorEnvelope } = OPERATIONS[this.#planned.request.operation]
    if (!ownErrorEnvelope || !refusesGateway(status, body)) return { kind: 'upstream_error', response, body }
    const message =
      `The provider of this model refused the gateway (status ${status}). Your API key is not the cause: the operator of ` +
      'the gateway has to renew its credential or account at the provider.'
    const error = new ApiError('internal', message, { code: 'provider_refused_gateway', shouldRetry: false })
    return { kind: 'failed', error }
  }

  #lost(): Usage | null {
    let lost: Usage | null = null
    for (const { attempt } of this.#routeCalls) if (attempt.lost) lost = addUsage(lost, attempt.lost)
    return lost
  }

  #result(answer: FailoverAnswer): FailoverResult {
    const last = this.#answering ?? this.#routeCalls.at(-1)
    return {
      answer,
      attempts: this.#routeCalls.map(({ attempt }) => attempt.record),
      lost: this.#lostWithPending(answer),
      route: last?.request.route ?? null,
      dropped: last?.request.translated?.dropped ?? [],
      requestCounts: last?.requestCounts ?? null,
      responseCounts: last?.responseCounts ?? null,
    }
  }

  /** When the caller left or the gateway failed, the upstream that had the request at that moment has read it. */
  #lostWithPending(answer: FailoverAnswer): Usage | null {
    const lost = this.#lost()
    const attempt = this.#routeCalls.at(-1)?.attempt
    const isFault = answer.kind === 'failed' && !(answer.error instanceof ApiError)
    if ((answer.kind !== 'client_left' && !isFault) || !attempt?.mayBeCharged) return lost
    if ('charge' in answer) return lost
    const pending = isFault ? attempt.inputUsage : attempt.abandonedUsage
    return pending ? addUsage(lost, pending) : lost
  }
}

/** A whole answer whose caller left while it was generated is charged by its usage. */
const unreceived = (answer: FailoverAnswer): FailoverAnswer =>
  answer.kind === 'buffered' ? { kind: 'client_left', charge: answer.charge, counts: answer.counts } : answer
