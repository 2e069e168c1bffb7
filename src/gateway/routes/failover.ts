/** One call over its routes: each attempt is recorded, and only an attempt that gave nothing is followed by another. */
import type { Attempt, InspectionCounts } from '../../governance/audit-record.ts'
import { addUsage, type Usage } from '../../governance/credits.ts'
import type { GovernedCall } from '../../governance/governed-call.ts'
import { ApiError } from '../../lib/api-error.ts'
import { logEvent } from '../../lib/log.ts'
import { pause } from '../../lib/pause.ts'
import type { PlannedCall } from '../calls/model-call.ts'
import type { BufferedResponses } from '../relay/buffered-responses.ts'
import type { CallerForm, StartedStream, StreamDeps } from '../relay/stream-answer.ts'
import type { Affinity } from './affinity.ts'
import { noAnswer } from './attempt.ts'
import { type Candidate, inOrder } from './call-routes.ts'
import { DeferredError } from './deferred-error.ts'
import { type ErrorStatus, type RouteAnswer, RouteAttempt, type WholeAnswer } from './route-call.ts'
import { restOf } from './route-health.ts'
import { type RouteRequest, routeRequest } from './route-request.ts'

export interface DispatchDeps extends StreamDeps {
  configuration: StreamDeps['configuration'] & { UPSTREAM_RETRY_WAIT_MS: number }
}

/** What sending a call came to, over all its attempts. */
export interface Dispatched {
  answer: DispatchedAnswer
  attempts: Attempt[]
  /** What attempts without a usable answer may be charged for; null for nothing. */
  lost: Usage | null
  /** The route that answered, or was tried last; null when none was. */
  candidate: Candidate | null
  /** What left as the request; null when nothing did. */
  requestCounts: InspectionCounts | null
  /** What came of an answer that must not pass; null when nothing came. */
  responseCounts: InspectionCounts | null
}

export type DispatchedAnswer =
  | WholeAnswer
  | StartedStream
  /** The most useful error that an upstream answered. */
  | { kind: 'upstream_error'; response: Response; body: Uint8Array }
  | { kind: 'failed'; error: unknown }
  /** @see CLIENT_LEFT */
  | { kind: 'client_left' }

/** What a dispatch is made with besides its call. */
export interface DispatchOptions {
  /** Fires when the caller leaves. */
  signal: AbortSignal
  form: CallerForm
  /** Where the conversation belongs; null for nowhere. */
  affinity: Affinity | null
  /** Takes the bodies that are read. */
  answers: BufferedResponses
}

/**
 * Routes are tried while nothing was sent to the caller: the next one when the last could not be reached, gave no usable
 * answer, or answered a status of `movesOn`. Every other answer, such as a 400, is the caller's. A route that asked to
 * wait (`Retry-After`) is asked again before its time only when no other has answered; when its time comes within
 * UPSTREAM_RETRY_WAIT_MS and none answered, it is waited for and tried once more. A model with one route is asked once:
 * its errors are passed on, and callers repeat by themselves.
 * @returns the first answer, else the most useful error of an upstream, unchanged. Never throws.
 */
export function dispatch(
  deps: DispatchDeps,
  planned: PlannedCall,
  call: GovernedCall,
  options: DispatchOptions,
): Promise<Dispatched> {
  return new Dispatch(deps, planned, call, options).run()
}

/**
 * The longest that `dispatch` can take to begin an answer, in milliseconds.
 * @param stream whether a stream was asked for. @param routes how many there are.
 */
export function longestDispatch(
  configuration: DispatchDeps['configuration'],
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

/** Credentials that a provider refuses, and accounts without means, are ours: another provider may still answer. */
const OURS = new Set([401, 402, 403])
/** Time-outs, conflicts and limits of the upstream, as official SDKs repeat them. */
const PASSING = new Set([408, 409, 429])

const movesOn = (status: number): boolean => OURS.has(status) || PASSING.has(status) || status >= 500

/** What of several errors helps the caller most: when to come back, then what is wrong there, then what is wrong here. */
function usefulness(status: number): number {
  if (status === 429) return 2
  return OURS.has(status) ? 0 : 1
}

/** An attempt that ended with an error of the upstream, which is sent only if no other route answers. */
interface Deferred {
  route: RouteAttempt
  status: number
  answer: DeferredError
}

class Dispatch {
  readonly #deps: DispatchDeps
  readonly #planned: PlannedCall
  readonly #call: GovernedCall
  readonly #options: DispatchOptions
  /** In the order in which they were made. */
  readonly #routes: RouteAttempt[] = []
  /** By the candidate, so that the newer answer of one replaces the older. */
  readonly #held = new Map<Candidate, Deferred>()
  readonly #askedUntil = new Map<Candidate, number>()
  /** The route whose error is sent, where that is not the last one. */
  #answering: RouteAttempt | null = null
  #failure: ApiError | null = null
  #refusal: ApiError | null = null
  /** The request that was made with the plan, until it is sent. */
  #firstRequest: RouteRequest | null

  constructor(deps: DispatchDeps, planned: PlannedCall, call: GovernedCall, options: DispatchOptions) {
    this.#deps = deps
    this.#planned = planned
    this.#call = call
    this.#options = options
    this.#firstRequest = planned.firstRequest
  }

  async run(): Promise<Dispatched> {
    try {
      const answer = (await this.#tryAll()) ?? (await this.#tryAgain()) ?? (await this.#bestError())
      return this.#dispatched(answer)
    } catch (error) {
      return this.#dispatched(
        this.#options.signal.aborted ? { kind: 'client_left' } : { kind: 'failed', error },
      )
    } finally {
      for (const { route } of this.#held.values()) giveUp(route)
    }
  }

  async #tryAll(): Promise<DispatchedAnswer | null> {
    const home = (await this.#options.affinity?.home) ?? null
    for (const candidate of inOrder(this.#planned.candidates, home, this.#deps.clock())) {
      if (this.#isAskedLater(candidate)) continue
      const answer = await this.#try(candidate)
      if (answer) return answer
    }
    return null
  }

  /** Whether a candidate that asked to wait is left alone for now: others have answered, or can be waited for. */
  #isAskedLater(candidate: Candidate): boolean {
    const now = this.#deps.clock()
    const rest = this.#alone ? null : restOf(candidate, now)
    if (rest?.reason !== 'asked') return false
    this.#askedUntil.set(candidate, rest.until)
    return this.#held.size > 0 || this.#soonest() !== null
  }

  get #alone(): boolean {
    return this.#planned.candidates.length === 1
  }

  /** Waits for the candidate that is to be asked again soonest, if that is soon, and asks it once more. */
  async #tryAgain(): Promise<DispatchedAnswer | null> {
    const soonest = this.#soonest()
    if (!soonest) return null
    await pause(soonest.wait, this.#options.signal)
    return this.#try(soonest.candidate)
  }

  /** The candidate that may be asked again soonest; null when that takes too long, or none asked to wait. */
  #soonest(): { candidate: Candidate; wait: number } | null {
    const [soonest] = [...this.#askedUntil].sort(([, left], [, right]) => left - right)
    if (!soonest || this.#alone) return null
    const [candidate, until] = soonest
    const longest = this.#deps.configuration.UPSTREAM_RETRY_WAIT_MS
    const wait = Math.max(0, until - this.#deps.clock())
    return longest === 0 || wait > longest ? null : { candidate, wait }
  }

  /** @returns null when another candidate may be tried. */
  async #try(candidate: Candidate): Promise<DispatchedAnswer | null> {
    const route = this.#routeTo(candidate)
    if (!route) return null
    const lost = this.#lost()
    this.#routes.push(route)
    let answer: RouteAnswer | null = null
    try {
      answer = await route.run(this.#call, lost, this.#options.form)
    } finally {
      // The body of an error is still to be read, within the time-out of its attempt.
      if (answer?.kind !== 'error_status') route.attempt.dispose()
    }
    if (answer.kind === 'error_status') return this.#errorStatus(route, answer)
    if (answer.kind === 'nothing') {
      this.#failure ??= answer.error
      return null
    }
    await this.#options.affinity?.served(candidate)
    return answer
  }

  /** @returns null for a candidate that cannot express the request. */
  #routeTo(candidate: Candidate): RouteAttempt | null {
    const { signal, answers } = this.#options
    const request = this.#requestFor(candidate)
    return request && new RouteAttempt(this.#deps, this.#planned, request, signal, answers)
  }

  #requestFor(candidate: Candidate): RouteRequest | null {
    const first = this.#firstRequest
    if (first?.candidate === candidate) {
      this.#firstRequest = null
      return first
    }
    try {
      return routeRequest(this.#planned, candidate)
    } catch (error) {
      if (!(error instanceof ApiError) || error.kind !== 'invalid_request') throw error
      this.#refusal ??= error
      return null
    }
  }

  async #errorStatus(
    route: RouteAttempt,
    { response, askedUntil }: ErrorStatus,
  ): Promise<DispatchedAnswer | null> {
    const { status } = response
    if (this.#alone || !movesOn(status)) return this.#readError(route, response)
    const earlier = this.#held.get(route.candidate)
    if (earlier) giveUp(earlier.route)
    this.#held.delete(route.candidate)
    this.#held.set(route.candidate, { route, status, answer: new DeferredError(response) })
    if (askedUntil === null) this.#askedUntil.delete(route.candidate)
    else this.#askedUntil.set(route.candidate, askedUntil)
    if (OURS.has(status)) {
      logEvent('error', 'upstream_refuses_us', { provider: route.candidate.provider.name, status })
    }
    return null
  }

  /** @returns null when its body broke off: another candidate may be tried. */
  async #readError(route: RouteAttempt, response: Response): Promise<DispatchedAnswer | null> {
    try {
      const body = this.#options.answers.take(await route.attempt.read(response))
      return { kind: 'upstream_error', response, body }
    } catch (error) {
      if (!(error instanceof ApiError) || error.kind !== 'upstream') throw error
      route.attempt.discard('unusable_answer')
      this.#failure ??= error
      return null
    } finally {
      route.attempt.dispose()
    }
  }

  /** @throws ApiError when no upstream has said anything. */
  async #bestError(): Promise<DispatchedAnswer> {
    const best = [...this.#held.values()].sort(
      (left, right) => usefulness(right.status) - usefulness(left.status),
    )
    for (const { route, answer } of best) {
      const response = await answer.response()
      const error = response && (await this.#readError(route, response))
      if (!error) continue
      this.#answering = route
      return error
    }
    throw this.#failure ?? this.#refusal ?? noAnswer('The upstream gave no answer.')
  }

  #lost(): Usage | null {
    let lost: Usage | null = null
    for (const { attempt } of this.#routes) if (attempt.lost) lost = addUsage(lost, attempt.lost)
    return lost
  }

  #dispatched(answer: DispatchedAnswer): Dispatched {
    const last = this.#answering ?? this.#routes.at(-1)
    return {
      answer,
      attempts: this.#routes.map(({ attempt }) => attempt.record),
      lost: this.#withPending(answer),
      candidate: last?.candidate ?? null,
      requestCounts: last?.requestCounts ?? null,
      responseCounts: last?.responseCounts ?? null,
    }
  }

  /** An upstream that was sent the request when its caller left, or when the gateway failed, has read it. */
  #withPending(answer: DispatchedAnswer): Usage | null {
    const lost = this.#lost()
    const last = this.#routes.at(-1)
    const isFault = answer.kind === 'failed' && !(answer.error instanceof ApiError)
    if (answer.kind !== 'client_left' && !isFault) return lost
    const pending = last?.attempt.mayBeCharged ? last.attempt.inputUsage : null
    return pending ? addUsage(lost, pending) : lost
  }
}

/** The upstream may still be sending what will not be read. */
function giveUp({ attempt }: RouteAttempt): void {
  attempt.dispose()
  attempt.abort.abort()
}
