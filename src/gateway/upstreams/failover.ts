/** One call over its routes: another route is tried only after one that gave no usable answer. */

import type { GovernedCall } from '../../calls/governed-call.ts'
import { withRenewedLease } from '../../calls/renewed-lease.ts'
import { addUsage } from '../../calls/usage.ts'
import type { Attempt } from '../../ledger/audit-record.ts'
import { ApiError } from '../../lib/api-error.ts'
import { pause } from '../../lib/pause.ts'
import { runSlices } from '../../lib/slices.ts'
import type { InspectionCounts } from '../../wire/records.ts'
import { costAtRoute } from '../calls/charge-basis.ts'
import type { Charge, LostCharge } from '../calls/charges.ts'
import type { PlannedCall } from '../calls/model-call.ts'
import { type RouteRequest, routeRequest } from '../calls/route-request.ts'
import { noAnswer } from '../calls/unusable-answer.ts'
import type { Route } from '../catalogue/call-routes.ts'
import type { StartedStream } from '../relay/stream-answer.ts'
import { waitInBody } from '../translation/error-shapes.ts'
import {
  type Attempted,
  attemptRoute,
  type DeferredError,
  type RouteDeps,
  type SendOptions,
} from './attempt.ts'
import type { BufferedAnswer } from './buffered-answer.ts'
import { type ErrorAnswer, errorAnswer, hasWait, movesOn, usefulness } from './error-answers.ts'
import { noteErrorAnswer, noteServed, type ProviderHealthDeps } from './provider-health.ts'
import { backoffOf, noteRequestedWait } from './route-health.ts'
import { inOrder } from './route-order.ts'

export type FailoverDeps = RouteDeps &
  ProviderHealthDeps & { configuration: { UPSTREAM_RETRY_WAIT_MS: number } }

/** The result of a call over all its attempts. */
export interface FailoverResult {
  answer: FailoverAnswer
  attempts: Attempt[]
  /** The possible charge of attempts without a usable answer; null for nothing. */
  lost: LostCharge | null
  /** The route that answered, or was tried last; null when none was. */
  route: Route | null
  /** When the first attempt could begin, in milliseconds since the epoch. */
  startedAt: number
  /** `RouteRequest.dropped` of this route. */
  dropped: readonly string[]
  /** Null when no request was sent. */
  requestCounts: InspectionCounts | null
  /** Counts of an answer that must not pass; null when none came. */
  responseCounts: InspectionCounts | null
}

type FailoverAnswer =
  | BufferedAnswer
  | StartedStream
  | ErrorAnswer
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
  // Every route may use its whole time, which is longer than a lease.
  return withRenewedLease(deps, call, deps.configuration.LEDGER_LEASE_MS, () =>
    new Failover(deps, planned, call, options).run(),
  )
}

class Failover {
  readonly #deps: FailoverDeps
  readonly #planned: PlannedCall
  readonly #call: GovernedCall
  readonly #options: SendOptions
  /** Attempts in the order in which they were made. */
  readonly #attempts: Attempted[] = []
  /** Error answers that wait for the other routes: the latest of each route, in the order of the attempts. */
  readonly #deferred = new Map<Route, Deferred>()
  /** Time until which routes requested to wait, in milliseconds since the epoch. */
  readonly #requestedUntil = new Map<Route, number>()
  /** The first translation that failed: the result when no upstream was asked. */
  #untranslatable: ApiError | null = null
  /** Made with the plan; null once it was sent. */
  #firstRequest: RouteRequest | null
  readonly #startedAt: number

  constructor(deps: FailoverDeps, planned: PlannedCall, call: GovernedCall, options: SendOptions) {
    this.#deps = deps
    this.#planned = planned
    this.#call = call
    this.#options = options
    this.#firstRequest = planned.firstRequest
    this.#startedAt = deps.clock()
  }

  async run(): Promise<FailoverResult> {
    try {
      const decided = (await this.#tryAll()) ?? (await this.#tryAgain()) ?? (await this.#bestError())
      const answer = this.#options.signal.aborted ? unreceived(decided.answer) : decided.answer
      return this.#result(answer, decided.attempted)
    } catch (error) {
      return this.#result(this.#options.signal.aborted ? { kind: 'client_left' } : { kind: 'failed', error })
    } finally {
      for (const { answer } of this.#deferred.values()) answer.giveUp()
    }
  }

  async #tryAll(): Promise<Decided | null> {
    for (const route of inOrder(this.#planned.routes, this.#deps.clock())) {
      this.#options.signal.throwIfAborted()
      const decided = this.#isSkipped(route) ? null : await this.#try(route)
      if (decided) return decided
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
  async #tryAgain(): Promise<Decided | null> {
    await this.#readWaits()
    const soonest = this.#soonest()
    if (!soonest) return null
    await pause(soonest.wait, this.#options.signal)
    return this.#try(soonest.route)
  }

  /** Reads the waits that upstreams requested in the body of an error, and not in a header. */
  async #readWaits(): Promise<void> {
    if (this.#deps.configuration.UPSTREAM_RETRY_WAIT_MS === 0) return
    for (const [route, { answer, requestedUntil }] of this.#deferred) {
      if (requestedUntil !== null || !hasWait(answer.response.status)) continue
      const wait = waitInBody((await answer.body) ?? new Uint8Array())
      if (wait !== null) this.#requestedUntil.set(route, noteRequestedWait(route, wait, this.#deps.clock()))
    }
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
  async #try(route: Route): Promise<Decided | null> {
    const request = await this.#requestFor(route)
    if (!request) return null
    const defersError = (status: number, body?: Uint8Array) => !this.#hasOneRoute && movesOn(status, body)
    const earlier = { lost: this.#lost, defersError }
    const [deps, planned, call, options] = [this.#deps, this.#planned, this.#call, this.#options]
    const attempted = await attemptRoute(deps, planned, call, request, options, earlier)
    this.#attempts.push(attempted)
    return this.#decided(attempted)
  }

  /** @returns null for an attempt after which another route may be tried. @throws what ends the call. */
  #decided(attempted: Attempted): Decided | null {
    const { answer, request } = attempted
    if (answer.kind === 'client_left') return { answer, attempted }
    if (answer.kind === 'fault') throw answer.error
    if (answer.kind === 'unusable') {
      if (answer.error.kind === 'upstream') return null
      throw answer.error
    }
    if (answer.kind === 'deferred_error') {
      this.#defer({ ...attempted, answer })
      return null
    }
    if (answer.kind === 'upstream_error') {
      noteErrorAnswer(this.#deps, request.route, answer.response.status, answer.body)
      return { answer: errorAnswer(this.#planned, answer.response, answer.body), attempted }
    }
    noteServed(this.#deps, request.route.provider)
    return { answer, attempted }
  }

  #defer(deferred: Deferred): void {
    const { answer, request, requestedUntil } = deferred
    const { route } = request
    this.#deferred.get(route)?.answer.giveUp()
    // Deleted first: a map keeps the place of a key that is set again.
    this.#deferred.delete(route)
    this.#deferred.set(route, deferred)
    answer.body.then((body) => noteErrorAnswer(this.#deps, route, answer.response.status, body))
    if (requestedUntil === null) this.#requestedUntil.delete(route)
    else this.#requestedUntil.set(route, requestedUntil)
  }

  /** @returns null for a route whose protocol cannot express the request. */
  async #requestFor(route: Route): Promise<RouteRequest | null> {
    const first = this.#firstRequest
    if (first?.route === route) {
      this.#firstRequest = null
      return first
    }
    const request = await runSlices(routeRequest(this.#planned, route))
    if (!(request instanceof ApiError)) return request
    this.#untranslatable ??= request
    return null
  }

  /**
   * The most useful error whose body was read, of equal ones the earliest.
   * @throws ApiError when no upstream sent an error.
   */
  async #bestError(): Promise<Decided> {
    const inOrder = [...this.#deferred.values()].sort(
      (left, right) => usefulness(right.answer.response.status) - usefulness(left.answer.response.status),
    )
    for (const attempted of inOrder) {
      const body = await attempted.answer.body
      if (body) return { answer: errorAnswer(this.#planned, attempted.answer.response, body), attempted }
    }
    const failure = this.#attempts.find(({ answer }) => answer.kind === 'unusable')?.answer
    if (failure?.kind === 'unusable') throw failure.error
    throw this.#untranslatable ?? noAnswer('The upstream gave no answer.')
  }

  /** The lost usage of all attempts, each at the prices of its route. */
  get #lost(): LostCharge | null {
    const { basis } = this.#planned
    return this.#attempts.reduce<LostCharge | null>((sum, { lost, request }) => {
      if (lost === null) return sum
      const cost = (sum?.cost ?? 0) + costAtRoute(basis, lost, request.route)
      return { usage: addUsage(sum?.usage ?? null, lost), cost }
    }, null)
  }

  /** @param decisive the attempt whose answer it is; the last one where it is left out. */
  #result(answer: FailoverAnswer, decisive = this.#attempts.at(-1)): FailoverResult {
    return {
      answer,
      attempts: this.#attempts.map(({ record }) => record),
      lost: this.#lost,
      route: decisive?.request.route ?? null,
      startedAt: this.#startedAt,
      dropped: decisive?.request.dropped ?? [],
      requestCounts: decisive?.requestCounts ?? null,
      responseCounts: decisive?.responseCounts ?? null,
    }
  }
}

type Deferred = Attempted & { answer: DeferredError }

/** The answer of a call, and the attempt that it is of. */
interface Decided {
  answer: FailoverAnswer
  attempted: Attempted
}

/** A whole answer whose caller left while it was generated is charged by its usage. */
const unreceived = (answer: FailoverAnswer): FailoverAnswer =>
  answer.kind === 'buffered' ? { kind: 'client_left', charge: answer.charge, counts: answer.counts } : answer
