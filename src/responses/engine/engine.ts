import { type SentTurn, sendTurn } from '../../gateway/model-turn.ts'
import type { CallOutcome } from '../../governance/audit-record.ts'
import { type GovernedCall, settle } from '../../governance/governed-call.ts'
import type { Principal } from '../../governance/principal.ts'
import { addUsage, type Usage } from '../../governance/usage.ts'
import { newId } from '../../lib/ids.ts'
import { withinTime } from '../../lib/time-limit.ts'
import type { ResponseEmitter, TurnEnd } from '../emitter/emitter.ts'
import { refusedCallItems, sealedItems, withResults } from '../items/output-items.ts'
import type { EventLog } from '../log/event-log.ts'
import type { ResponseDeps } from '../object/response-deps.ts'
import type { Interruption, Progress, StoredRequest, UnsettledCall } from '../object/response-head.ts'
import type { ResponseState } from '../object/response-state.ts'
import type { ContextItem, Owner } from '../types.ts'
import { currentPrincipal } from './current-principal.ts'
import { admitNextTurn, type ReadyTurn } from './next-turn.ts'
import { endOfFailure, incomplete, type ResponseEnd } from './response-end.ts'
import { runTools } from './run-tools.ts'
import type { ToolRules } from './tool-rules.ts'
import { decideTurn, isRefused, storedCalls } from './turn-decision.ts'

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
  /** The context of every turn; null when it is too large to be held, and has to be loaded again. */
  context: readonly ContextItem[] | null
}

/** A response with its engine. */
export interface RunningResponse {
  engine: ResponseEngine
  emitter: ResponseEmitter
}

interface SentCall {
  sent: SentTurn
  call: GovernedCall
}

/** How long the response waits for the outcome of a call that has ended. */
const SETTLING_LIMIT_MS = 1_000

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
  #progress: Progress
  /** Items that each turn added to the context. */
  readonly #turns: ContextItem[][]
  #ready: ReadyTurn | null
  /** The first turn, if `dispatch` has sent it. */
  #dispatched: Promise<SentCall> | null = null
  /** As the ledger confirmed it for the last turn. */
  #principal: Principal | null

  constructor(deps: ResponseDeps, run: EngineRun) {
    this.#deps = deps
    this.#run = run
    this.#ready = run.ready
    this.#principal = run.ready?.turn.planned.rights.principal ?? null
    this.#progress = run.state.known.progress
    this.#turns = run.state.turns
  }

  /** What the ended turns were charged for. */
  get usage(): Usage | null {
    return this.#progress.usage
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
    this.#dispatched = this.#send()
    const { sent } = await this.#dispatched
    return sent.kind === 'failed' ? sent.error : null
  }

  /** Stores the outcome of a dispatched turn that failed, in place of `run`. The ledger does not have it yet. */
  async closeRefused(): Promise<void> {
    const dispatched = await this.#dispatched
    if (!dispatched) return
    const outcome = await dispatched.sent.outcome
    this.#charge(outcome.usage, [{ call: dispatched.call, outcome }])
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
      return this.#interrupted() ?? endOfFailure(error, this.#progress.turns > 0)
    } finally {
      clearTimeout(timer)
    }
  }

  /** @returns how the response ends; null when another step follows, in the phase that is stored by then. */
  #step(): Promise<ResponseEnd | null> {
    const { phase } = this.#run.state.known
    if (phase === 'generating') return this.#generate()
    if (phase === 'running_tools') return this.#runTools()
    if (phase === 'between_turns') return this.#beginTurn()
    throw new Error(`there is no step for a response that is ${phase}`)
  }

  /** generating: sends the admitted turn, emits its answer, and stores its result. */
  async #generate(): Promise<ResponseEnd | null> {
    const { emitter } = this.#run
    const from = emitter.outputLength
    const { sent, call } = await (this.#dispatched ?? this.#send())
    this.#dispatched = null
    await this.#emitAnswer(sent, call)
    const end = emitter.endTurn()
    return this.#interrupted() ?? this.#finishTurn(end, from)
  }

  /** A function of its own, so that a body of 50 MB is not referenced for as long as its answer. */
  async #send(): Promise<SentCall> {
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

  async #emitAnswer(sent: SentTurn, call: GovernedCall): Promise<void> {
    const { emitter } = this.#run
    if (sent.kind === 'failed') {
      await this.#settleAnswer(call, sent.outcome)
      throw sent.error
    }
    emitter.origin = sent.origin
    try {
      for await (const batch of sent.batches) {
        for (const event of batch) emitter.model(event)
      }
    } finally {
      await this.#settleAnswer(call, sent.outcome)
    }
  }

  async #settleAnswer(call: GovernedCall, outcome: Promise<CallOutcome>): Promise<void> {
    try {
      this.#settle(call, await withinTime(outcome, SETTLING_LIMIT_MS, 'settling a call'))
    } catch {
      // The usage that the upstream has reported so far.
      this.#charge(this.#run.emitter.turnUsage, [])
      this.#deps.waitUntil(outcome.then((late) => settle(this.#deps, call, late)))
    }
  }

  /** The charge is stored before the ledger gets it: response and audit record are then the same after a restart. */
  #settle(call: GovernedCall, outcome: CallOutcome): void {
    this.#charge(outcome.usage, [{ call, outcome }])
    this.#deps.waitUntil(this.#run.state.settleCalls())
  }

  #charge(used: Usage | null, calls: UnsettledCall[]): void {
    const { state } = this.#run
    const { usage } = this.#progress
    const progress = this.#advance({ openCall: null, usage: used ? addUsage(usage, used) : usage })
    state.change({ progress, unsettled: [...(state.head?.unsettled ?? []), ...calls] })
  }

  #advance(progress: Partial<Progress>): Progress {
    this.#progress = { ...this.#progress, ...progress }
    return this.#progress
  }

  /** Stores an ended turn together with the next phase. @param from index of its first item in the output. */
  #finishTurn(end: TurnEnd, from: number): ResponseEnd | null {
    const { owner, state, request, emitter, tools } = this.#run
    const { turns, refusedTurns } = this.#progress
    const counted = this.#advance({ turns: turns + 1, refusedTurns: isRefused(end) ? refusedTurns + 1 : 0 })
    const decision = decideTurn(end, counted, {
      mostTurns: this.#deps.configuration.RESPONSE_MAX_TURNS,
      mostOutput: request.settings.max_output_tokens ?? null,
      compatibility: state.known.compatibility,
    })
    // The last turn is stored with the final response.
    if (decision.kind === 'end') return decision.end
    // The stored state must not be ahead of the stored events.
    this.#run.log.flush()
    const output = emitter.response.output.slice(from)
    const items = [
      ...sealedItems(this.#deps, owner, output, emitter),
      ...refusedCallItems(end.calls, tools.has),
    ]
    this.#turns.push(items)
    state.storeRequest(request)
    state.storeTurn(counted.turns, items)
    if (decision.kind === 'run_tools') {
      const calls = storedCalls(decision.calls, request.settings, counted.toolCalls)
      state.storeToolCalls(calls)
      const toolCalls = (counted.toolCalls ?? 0) + calls.length
      state.enter('running_tools', { progress: this.#advance({ endAfterTools: decision.end, toolCalls }) })
    } else this.#enterBetweenTurns()
    return null
  }

  /** The id of the next call is stored before its admission: an admission that is repeated after a restart opens one call. */
  #enterBetweenTurns(): void {
    const progress = this.#advance({ nextCallId: newId('call'), endAfterTools: null })
    this.#run.state.enter('between_turns', { progress })
  }

  /** running_tools: executes the calls. */
  async #runTools(): Promise<ResponseEnd | null> {
    const { owner, state, emitter, request, log } = this.#run
    const principal = await currentPrincipal(this.#deps, owner, request, this.#principal)
    const { conversationId, responseId } = state.known
    const caller = { owner, principal, workspaceId: conversationId ?? responseId, responseId }
    await runTools(this.#deps, this.#run, caller, this.#abort.signal)
    log.flush()
    const { endAfterTools, turns } = this.#progress
    if (endAfterTools) return endAfterTools
    const items = withResults(this.#turns.at(-1) ?? [], emitter.response.output, emitter)
    this.#turns[turns - 1] = items
    state.storeTurn(turns, items)
    this.#enterBetweenTurns()
    return null
  }

  /** between_turns: admits the next turn. */
  async #beginTurn(): Promise<null> {
    const { state, emitter, request } = this.#run
    const callId = this.#progress.nextCallId ?? newId('call')
    const identity = { ...request.identity, callId, at: this.#deps.clock() }
    const past = { items: this.#turns.flat(), usage: this.usage, principal: this.#principal }
    const ready = await admitNextTurn(this.#deps, this.#run, identity, past, this.#abort.signal)
    const { open, planned } = ready.turn
    this.#ready = ready
    this.#principal = planned.rights.principal
    const openCall = { open, after: emitter.lastSequence }
    state.enter('generating', { progress: this.#advance({ openCall, nextCallId: null }) })
    return null
  }

  #interrupted(): ResponseEnd | null {
    return this.#interruption && incomplete(this.#interruption)
  }
}
