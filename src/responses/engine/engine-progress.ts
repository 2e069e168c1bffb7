import { type GovernedCall, settle } from '../../calls/governed-call.ts'
import { addUsage } from '../../calls/usage.ts'
import type { CallOutcome, Usage } from '../../ledger/audit-record.ts'
import { withinTime } from '../../lib/time-limit.ts'
import type { Progress, UnsettledCall } from '../model/response-head.ts'
import type { ResponseDeps } from '../response-deps.ts'
import type { ResponseState } from '../store/response-state.ts'

/** Time that the response waits for the outcome of a call that has ended. */
const SETTLING_LIMIT_MS = 1_000

/** The progress of an engine, with the charges of its calls. */
export class EngineProgress {
  readonly #deps: ResponseDeps
  readonly #state: ResponseState
  #current: Progress

  constructor(deps: ResponseDeps, state: ResponseState) {
    this.#deps = deps
    this.#state = state
    this.#current = state.known.progress
  }

  get current(): Progress {
    return this.#current
  }

  /** The progress with these members, for the caller to store with the state that belongs to it. */
  advance(members: Partial<Progress>): Progress {
    this.#current = { ...this.#current, ...members }
    return this.#current
  }

  /**
   * Settles a call that has ended, and waits for its outcome for a short time.
   * @param reported the usage that the upstream has reported so far.
   */
  async settleAnswer(
    call: GovernedCall,
    outcome: Promise<CallOutcome>,
    reported: () => Usage | null,
  ): Promise<void> {
    try {
      this.#settle(call, await withinTime(outcome, SETTLING_LIMIT_MS, 'settling a call'))
    } catch {
      this.charge(reported(), [])
      this.#deps.waitUntil(outcome.then((late) => this.#settleLate(call, late)))
    }
  }

  /** Stores what a call was charged for. @param calls with outcomes that the ledger does not have yet. */
  charge(used: Usage | null, calls: UnsettledCall[]): void {
    this.#state.change(this.#charged(used, calls))
  }

  #charged(used: Usage | null, calls: UnsettledCall[]) {
    const { usage } = this.#current
    const progress = this.advance({ openCall: null, usage: used ? addUsage(usage, used) : usage })
    const { unsettled = [], cost = 0 } = this.#state.head ?? {}
    return { progress, unsettled: [...unsettled, ...calls], cost: cost + costOf(calls) }
  }

  async #settleLate(call: GovernedCall, outcome: CallOutcome): Promise<void> {
    this.#state.change({ cost: (this.#state.head?.cost ?? 0) + outcome.cost })
    await settle(this.#deps, call, outcome)
  }

  /** Stores the output tokens of a summary, which do not count as tokens of a turn. */
  storeSummaryOutput(tokens: number): void {
    const otherOutput = (this.#current.otherOutput ?? 0) + tokens
    this.#state.change({ progress: this.advance({ otherOutput }) })
  }

  /**
   * The charge is stored before the ledger gets it: response and audit record are then the same after a restart. It is stored
   * together with what the turn has ended with, which follows without waiting for I/O.
   */
  #settle(call: GovernedCall, outcome: CallOutcome): void {
    this.#state.note(this.#charged(outcome.usage, [{ call, outcome }]))
    const nextTurn = new Promise((resolve) => setTimeout(resolve))
    this.#deps.waitUntil(nextTurn.then(() => this.#state.settleCalls()))
  }
}

/** Micro-credits. */
const costOf = (calls: readonly UnsettledCall[]): number =>
  calls.reduce((sum, { outcome }) => sum + outcome.cost, 0)
