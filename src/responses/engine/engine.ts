import type { GovernedCall } from '../../calls/governed-call.ts'
import { sendTurn } from '../../gateway/model-turn.ts'
import type { Principal } from '../../identity/principal.ts'
import type { Usage } from '../../ledger/audit-record.ts'
import { callOutcome } from '../../ledger/audit-record.ts'
import { newId } from '../../lib/ids.ts'
import type { CompactionPlan } from '../compaction/compaction-plan.ts'
import { sealedSummary } from '../compaction/sealed-summary.ts'
import type { SummaryPart } from '../compaction/summary-request.ts'
import type { ResponseEmitter, TurnEnd } from '../emitter/emitter.ts'
import { refusedCallItems, sealedItems, withResults } from '../emitter/output-items.ts'
import type { EventLog } from '../log/event-log.ts'
import { currentPrincipal } from '../model/current-principal.ts'
import type { ApprovedCall } from '../model/offered-tools.ts'
import { endOfFailure, incomplete, type ResponseEnd } from '../model/response-end.ts'
import { creditsLeft, type Interruption, type StoredRequest, workspaceIdOf } from '../model/response-head.ts'
import type { ContextItem, Owner } from '../model/types.ts'
import type { ResponseDeps } from '../response-deps.ts'
import type { ResponseState } from '../store/response-state.ts'
import type { ToolRules } from '../tools/tool-rules.ts'
import { type DispatchedCall, emitAnswer, summaryOf } from './answer-of-call.ts'
import { addApprovedCalls } from './approved-calls.ts'
import { EngineProgress } from './engine-progress.ts'
import { admitNextPart, admitNextTurn, type ReadyTurn } from './next-turn.ts'
import { runTools } from './run-tools.ts'
import { decideTurn, isRefused, storedCalls, turnUsage } from './turn-decision.ts'

/** The inputs of an engine. */
export interface EngineRun {
  owner: Owner
  state: ResponseState
  log: EventLog
  request: StoredRequest
  tools: ToolRules
  emitter: ResponseEmitter
  /** The first turn; null for a response that continues after a restart. */
  ready: ReadyTurn | null
  /** The calls that the request approves. They are made before the first turn, which is admitted again after them. */
  approved: readonly ApprovedCall[]
  /** The context of every turn; null when it is too large to be held, and has to be loaded again. */
  context: readonly ContextItem[] | null
  /** False: the model is not called, and the response has no output. */
  generates: boolean
}

/** A response with its engine. */
export interface RunningResponse {
  engine: ResponseEngine
  emitter: ResponseEmitter
}

/**
 * Runs the turns of one response in steps. Each step begins in a stored phase and ends with the next one stored
 * (`phases.ts`), so that a restarted object can continue between two steps. Every turn is a governed call of its own, with
 * access, policies, credits and audit, and is settled when it ends.
 */
export class ResponseEngine {
  readonly #deps: ResponseDeps
  readonly #run: EngineRun
  readonly #abort = new AbortController()
  #interruption: Interruption | null = null
  readonly #progress: EngineProgress
  /** Items that each turn added to the context. */
  readonly #turns: ContextItem[][]
  #ready: ReadyTurn | null
  /** The compaction that is made; null outside of the phase `compacting`. */
  #plan: CompactionPlan | null
  /** The first turn, if `dispatch` has sent it. */
  #dispatched: Promise<DispatchedCall> | null = null
  /** The principal that the ledger confirmed for the last turn. */
  #principal: Principal | null

  constructor(deps: ResponseDeps, run: EngineRun) {
    this.#deps = deps
    // The first turn and a compaction have up to 50 MB, which must not be referenced while the response generates.
    this.#run = { ...run, ready: null }
    this.#ready = run.ready
    this.#plan = run.ready?.plan ?? null
    this.#principal = run.ready?.turn.planned.rights.principal ?? null
    this.#progress = new EngineProgress(deps, run.state)
    this.#turns = run.state.turns
  }

  /** The usage that ended turns were charged for. */
  get usage(): Usage | null {
    return this.#progress.current.usage
  }

  /** Ends the response soon. The open call is settled for what it used. */
  interrupt(why: Interruption): void {
    this.#interruption ??= why
    this.#abort.abort()
  }

  /**
   * Sends the first turn, ahead of `run`. Never throws.
   * @returns its failure before anything was generated; null for a turn whose answer has begun.
   */
  async dispatch(): Promise<Error | null> {
    if (!this.#run.generates) return null
    this.#dispatched = this.#send()
    const { sent } = await this.#dispatched
    return sent.kind === 'failed' ? sent.error : null
  }

  /**
   * Stores the calls that the request approves, in place of a turn of the model: `run` begins with them. The admitted turn is
   * not sent, since it lacks their results, and its call costs nothing.
   */
  beginApproved(): void {
    const { owner, state, request, emitter, approved, tools } = this.#run
    const call = this.#releaseUnsent()
    if (call) this.#progress.charge(null, [{ call, outcome: emptyOutcome(this.#deps, call) }])
    this.#deps.waitUntil(state.settleCalls())
    const calls = addApprovedCalls(emitter, tools, approved)
    this.#storeTurn(1, sealedItems(this.#deps, owner, emitter.response.output, emitter))
    state.storeToolCalls(storedCalls(calls, request.settings))
    const counts = { turns: 1, toolCalls: calls.length, endAfterTools: null }
    state.enter('running_tools', { progress: this.#progress.advance(counts) })
  }

  /** Stores the outcome of a dispatched turn that failed, in place of `run`. The ledger does not have it yet. */
  async closeRefused(): Promise<void> {
    const dispatched = await this.#dispatched
    if (!dispatched) return
    const outcome = await dispatched.sent.outcome
    this.#progress.charge(outcome.usage, [{ call: dispatched.call, outcome }])
  }

  /** Runs until the response ends. Must be called once. Never throws. */
  async run(): Promise<ResponseEnd> {
    const { createdAt } = this.#run.state.known
    const left = createdAt + this.#deps.configuration.RESPONSE_TIME_LIMIT_MS - this.#deps.clock()
    const timer = setTimeout(() => this.interrupt('max_time'), Math.max(0, left))
    try {
      for (;;) {
        const end = await this.#step()
        if (end) return this.#interrupted() ?? end
      }
    } catch (error) {
      return this.#interrupted() ?? endOfFailure(error, this.usage !== null)
    } finally {
      clearTimeout(timer)
    }
  }

  /** @returns how the response ends; null when another step follows, in the phase that is stored by then. */
  #step(): Promise<ResponseEnd | null> {
    const { phase } = this.#run.state.known
    if (phase === 'compacting') return this.#compact()
    if (phase === 'generating') return this.#generate()
    if (phase === 'running_tools') return this.#runTools()
    if (phase === 'between_turns') return this.#beginTurn()
    throw new Error(`there is no step for a response that is ${phase}`)
  }

  /** generating: sends the admitted turn, emits its answer, and stores its result. */
  async #generate(): Promise<ResponseEnd | null> {
    const { emitter, generates } = this.#run
    if (!generates) return this.#endUnsent()
    const from = emitter.outputLength
    const sentCall = await (this.#dispatched ?? this.#send())
    this.#dispatched = null
    await emitAnswer(sentCall, emitter, this.#progress)
    const end = emitter.endTurn()
    return this.#interrupted() ?? this.#finishTurn(end, from)
  }

  /** compacting: has the context summarized part by part, and stores the summary in its place. */
  async #compact(): Promise<ResponseEnd | null> {
    const plan = this.#plan
    this.#plan = null
    if (!plan) throw new Error('there is nothing to compact')
    let summary: string | null = null
    for (const index of plan.parts.keys()) {
      if (index > 0) await this.#admitPart(plan, { index, summary })
      const sentCall = await (this.#dispatched ?? this.#send())
      this.#dispatched = null
      summary = await summaryOf(sentCall, this.#progress)
      const interrupted = this.#interrupted()
      if (interrupted) return interrupted
    }
    const { owner, emitter } = this.#run
    const from = emitter.outputLength
    emitter.addCompaction(sealedSummary(this.#deps, owner, { summary, ...plan.kept }), plan.ends)
    if (plan.ends) return { status: 'completed' }
    const { turns } = this.#progress.advance({ turns: this.#progress.current.turns + 1 })
    this.#storeTurn(turns, sealedItems(this.#deps, owner, emitter.response.output.slice(from), emitter))
    this.#enterBetweenTurns()
    return null
  }

  async #admitPart(plan: CompactionPlan, part: SummaryPart): Promise<void> {
    const identity = { ...this.#run.request.identity, callId: newId('call'), at: this.#deps.clock() }
    this.#ready = await admitNextPart(this.#deps, this.#run, identity, plan, part, this.#principal)
    const { open, planned } = this.#ready.turn
    this.#principal = planned.rights.principal
    const openCall = { open, after: this.#run.emitter.lastSequence }
    this.#run.state.change({ progress: this.#progress.advance({ openCall }) })
  }

  /** Ends a response whose model is not called: its call was admitted, and costs nothing. */
  async #endUnsent(): Promise<ResponseEnd> {
    const call = this.#releaseUnsent()
    if (call) {
      const outcome = Promise.resolve(emptyOutcome(this.#deps, call))
      await this.#progress.settleAnswer(call, outcome, () => null)
    }
    return { status: 'completed' }
  }

  /** @returns the call of an admitted turn that is not sent, for the caller to close. */
  #releaseUnsent(): GovernedCall | null {
    const ready = this.#ready
    this.#ready = null
    this.#plan = null
    for (const bytes of ready?.buffers ?? []) bytes.release()
    return ready?.turn.call ?? null
  }

  /** A function of its own, so that a body of 50 MB is not referenced for as long as its answer. */
  async #send(): Promise<DispatchedCall> {
    const ready = this.#ready
    this.#ready = null
    if (!ready) throw new Error('there is no turn to send')
    const { planned, call } = ready.turn
    try {
      return { sent: await sendTurn(this.#deps, planned, call, this.#abort.signal), call }
    } finally {
      // Bytes that the upstream still reads are borrowed, and freed when it has read them.
      for (const bytes of ready.buffers) bytes.release()
    }
  }

  /** Stores an ended turn together with the next phase. @param from index of its first item in the output. */
  #finishTurn(end: TurnEnd, from: number): ResponseEnd | null {
    const { owner, state, request, emitter, tools } = this.#run
    const { turns, refusedTurns } = this.#progress.current
    const counted = this.#progress.advance({
      turns: turns + 1,
      refusedTurns: isRefused(end) ? refusedTurns + 1 : 0,
    })
    const decision = decideTurn(end, counted, {
      mostTurns: this.#deps.configuration.RESPONSE_MAX_TURNS,
      mostOutput: request.settings.max_output_tokens ?? null,
      creditsLeft: creditsLeft(request, state.known) ?? null,
      compatibility: state.known.compatibility,
    })
    // The last turn is stored with the final response.
    if (decision.kind === 'end') return decision.end
    const output = emitter.response.output.slice(from)
    const items = [...sealedItems(this.#deps, owner, output, emitter), ...refusedCallItems(end, tools.has)]
    this.#storeTurn(counted.turns, items)
    if (decision.kind === 'run_tools') {
      const calls = storedCalls(decision.calls, request.settings, counted.toolCalls)
      state.storeToolCalls(calls)
      const toolCalls = (counted.toolCalls ?? 0) + calls.length
      state.enter('running_tools', {
        progress: this.#progress.advance({ endAfterTools: decision.end, toolCalls }),
      })
    } else this.#enterBetweenTurns()
    return null
  }

  #storeTurn(turn: number, items: ContextItem[]): void {
    const { state, request, log } = this.#run
    // The stored state must not be ahead of the stored events.
    log.flush()
    this.#turns.push(items)
    state.storeRequest(request)
    state.storeTurn(turn, items)
    const { turn: repeated } = state.known
    if (repeated) state.change({ turn: { ...repeated, interruptions: 0 }, restarts: 0 })
  }

  /** The id of the next call is stored before its admission: an admission that is repeated after a restart opens one call. */
  #enterBetweenTurns(): void {
    const progress = this.#progress.advance({ nextCallId: newId('call'), endAfterTools: null })
    this.#run.state.enter('between_turns', { progress })
  }

  /** running_tools: executes the calls. */
  async #runTools(): Promise<ResponseEnd | null> {
    const { owner, state, emitter, request, log } = this.#run
    const principal = await currentPrincipal(this.#deps, owner, request, this.#principal)
    const { responseId } = state.known
    const caller = { owner, principal, workspaceId: workspaceIdOf(state.known), responseId }
    this.#principal = await runTools(this.#deps, this.#run, caller, this.#abort.signal)
    log.flush()
    const { endAfterTools, turns } = this.#progress.current
    if (endAfterTools) return endAfterTools
    const items = withResults(this.#turns.at(-1) ?? [], emitter.response.output, emitter)
    this.#turns[turns - 1] = items
    state.storeTurn(turns, items)
    this.#enterBetweenTurns()
    return null
  }

  /** between_turns: admits the next turn, or the compaction before it. */
  async #beginTurn(): Promise<null> {
    const { state, emitter, request, log } = this.#run
    const callId = this.#progress.current.nextCallId ?? newId('call')
    const identity = { ...request.identity, callId, at: this.#deps.clock() }
    const usage = turnUsage(this.#progress.current)
    const past = { turns: this.#turns, usage, principal: this.#principal }
    const ready = await admitNextTurn(this.#deps, this.#run, identity, past, this.#abort.signal)
    const { open, planned } = ready.turn
    this.#ready = ready
    this.#plan = ready.plan
    this.#principal = planned.rights.principal
    const after = emitter.lastSequence
    const phase = ready.plan ? 'compacting' : 'generating'
    const { turn } = state.known
    state.enter(phase, {
      progress: this.#progress.advance({ openCall: { open, after }, nextCallId: null }),
      ...(turn && { turn: { ...turn, after, shown: log.openTails > 0 } }),
    })
    return null
  }

  #interrupted(): ResponseEnd | null {
    return this.#interruption && incomplete(this.#interruption)
  }
}

/** The outcome of a call that was admitted, and for which no request was sent. */
const emptyOutcome = ({ clock }: ResponseDeps, { opening }: GovernedCall) =>
  callOutcome(opening, clock(), { status: 200 })
