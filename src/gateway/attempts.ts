/** One call over its candidates: each attempt is recorded, and only an attempt that gave nothing is followed by another. */
import { ApiError } from '../lib/api-error.ts'
import { logEvent } from '../lib/log.ts'
import { pause } from '../lib/pause.ts'
import type { Affinity } from './affinity.ts'
import { type AnswerDeps, CandidateCall, type DispatchedCall } from './candidate-call.ts'
import { type Candidate, inOrder } from './candidates.ts'
import { HeldAnswer } from './held-answer.ts'
import type { ModelAnswer } from './invoke-model.ts'
import { restOf } from './route-health.ts'
import { CLIENT_LEFT } from './settlement.ts'
import { noAnswer } from './upstream-attempt.ts'

/**
 * Candidates are tried while nothing was sent to the caller: the next one when the last could not be reached, gave no
 * usable answer, or answered a status of `movesOn`. Every other answer, such as a 400, is the caller's. A candidate that
 * asked to wait (`Retry-After`) is asked again before its time only when nobody else has said anything; when its time
 * comes within UPSTREAM_RETRY_WAIT_MS and nobody answered, it is waited for and tried once more. A model with one route
 * is asked once: its errors are told as they are, and callers repeat by themselves.
 * @param candidates in the order of the catalogue. @param affinity where the conversation belongs; null for nowhere.
 * @returns the first answer, else the most useful error that an upstream told, unchanged.
 * @throws ApiError upstream when none answered; what the first candidate refused when none can express the request.
 */
export function dispatch(
  deps: AnswerDeps,
  call: DispatchedCall,
  candidates: readonly Candidate[],
  affinity: Affinity | null,
): Promise<ModelAnswer> {
  return new Dispatch(deps, call, candidates, affinity).run()
}

/**
 * The longest that `dispatch` can take to begin an answer, in milliseconds.
 * @param stream whether a stream was asked for. @param candidates how many there are.
 */
export function longestDispatch(
  configuration: AnswerDeps['configuration'],
  stream: boolean,
  candidates: number,
): number {
  const attempt = stream
    ? configuration.UPSTREAM_HEADERS_TIMEOUT_MS + configuration.UPSTREAM_FIRST_EVENT_TIMEOUT_MS
    : configuration.UPSTREAM_ANSWER_TIMEOUT_MS
  const again = candidates > 1
  const attempts = candidates + (again ? 1 : 0)
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

/** An attempt that ended with an error of the upstream. */
interface Held {
  candidate: Candidate
  call: CandidateCall
  status: number
  answer: HeldAnswer
}

class Dispatch {
  readonly #deps: AnswerDeps
  readonly #call: DispatchedCall
  readonly #candidates: readonly Candidate[]
  readonly #affinity: Affinity | null
  /** By the candidate, so that the newer answer of one replaces the older. */
  readonly #held = new Map<Candidate, Held>()
  readonly #askedUntil = new Map<Candidate, number>()
  #failure: ApiError | null = null
  #refusal: ApiError | null = null
  #isAdmitted = false

  constructor(
    deps: AnswerDeps,
    call: DispatchedCall,
    candidates: readonly Candidate[],
    affinity: Affinity | null,
  ) {
    this.#deps = deps
    this.#call = call
    this.#candidates = candidates
    this.#affinity = affinity
  }

  async run(): Promise<ModelAnswer> {
    try {
      return (await this.#tryAll()) ?? (await this.#tryAgain()) ?? (await this.#tell())
    } catch (error) {
      if (!this.#call.signal.aborted) throw error
      this.#call.settlement.callerLeft()
      return { status: CLIENT_LEFT, headers: new Headers(), body: new Uint8Array() }
    } finally {
      for (const { call } of this.#held.values()) call.dispose(true)
    }
  }

  async #tryAll(): Promise<ModelAnswer | null> {
    const home = (await this.#affinity?.home) ?? null
    for (const candidate of inOrder(this.#candidates, home, this.#deps.clock())) {
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
    return this.#candidates.length === 1
  }

  /** Waits for the candidate that is to be asked again soonest, if that is soon, and asks it once more. */
  async #tryAgain(): Promise<ModelAnswer | null> {
    const soonest = this.#soonest()
    if (!soonest) return null
    this.#call.settlement.sent = false
    await pause(soonest.wait, this.#call.signal)
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
  async #try(candidate: Candidate): Promise<ModelAnswer | null> {
    const { settlement, signal } = this.#call
    settlement.sent = false
    const candidateCall = this.#candidateCall(candidate)
    if (!candidateCall) return null
    await this.#admit(candidateCall)
    let held = false
    try {
      const response = await candidateCall.begin()
      held = !this.#alone && movesOn(response.status)
      if (held) return this.#hold(candidate, candidateCall, response)
      const answer = await candidateCall.answer(response)
      if (answer.status < 400) await this.#affinity?.served(candidate)
      return answer
    } catch (error) {
      if (signal.aborted || !(error instanceof ApiError) || error.kind !== 'upstream') throw error
      candidateCall.gaveNothing()
      this.#failure ??= error
      return null
    } finally {
      if (!held) candidateCall.dispose(false)
    }
  }

  /** Once, and not before some candidate can be told the call: what none can be told is refused before it begins. */
  async #admit(first: CandidateCall): Promise<void> {
    if (this.#isAdmitted) return
    this.#isAdmitted = true
    try {
      await this.#call.onAdmitted?.()
    } catch (error) {
      first.dispose(false)
      throw error
    }
  }

  /** @returns null for a candidate that cannot express the request. */
  #candidateCall(candidate: Candidate): CandidateCall | null {
    try {
      return new CandidateCall(this.#deps, this.#call, candidate)
    } catch (error) {
      if (!(error instanceof ApiError) || error.kind !== 'invalid_request') throw error
      this.#refusal ??= error
      return null
    }
  }

  #hold(candidate: Candidate, call: CandidateCall, response: Response): null {
    const { status } = response
    this.#call.settlement.sent = false
    this.#held.get(candidate)?.call.dispose(true)
    this.#held.delete(candidate)
    this.#held.set(candidate, { candidate, call, status, answer: new HeldAnswer(response) })
    if (call.askedUntil === null) this.#askedUntil.delete(candidate)
    else this.#askedUntil.set(candidate, call.askedUntil)
    if (OURS.has(status)) {
      logEvent('error', 'upstream_refuses_us', { provider: candidate.provider.name, status })
    }
    return null
  }

  /** @throws ApiError when no upstream has said anything. */
  async #tell(): Promise<ModelAnswer> {
    const best = [...this.#held.values()].sort(
      (left, right) => usefulness(right.status) - usefulness(left.status),
    )
    for (const { candidate, call, answer } of best) {
      const response = await answer.response()
      if (!response) continue
      this.#call.settlement.provider = candidate.provider.name
      return call.answer(response)
    }
    throw this.#failure ?? this.#refusal ?? noAnswer('The upstream gave no answer.')
  }
}
