import type { ModelDeps } from '../../gateway/invoke-model.ts'
import { type AdmittedTurn, admitTurn, type SentTurn, sendTurn } from '../../gateway/model-turn.ts'
import type { CallOutcome } from '../../governance/audit-record.ts'
import { addUsage, type Usage } from '../../governance/credits.ts'
import {
  type CallIdentity,
  type GovernedCall,
  openingOf,
  type Refused,
  refusalOutcome,
  settle,
} from '../../governance/governed-call.ts'
import type { Principal } from '../../governance/principal.ts'
import { ApiError } from '../../lib/api-error.ts'
import type { OwnedBytes } from '../../lib/bytes/owned-bytes.ts'
import { newId } from '../../lib/ids.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { withinTime } from '../../lib/time-limit.ts'
import type { ResponseEmitter, TurnEnd } from '../emitter/emitter.ts'
import { type OutputDeps, turnItems, withResults } from '../items/output-items.ts'
import type { Interruption, Progress, StoredRequest, UnsettledCall } from '../object/response-head.ts'
import type { ResponseState } from '../object/response-state.ts'
import { currentPrincipal } from '../object/rights.ts'
import type { ContextItem } from '../types.ts'
import { runToolCall } from './hosted-tool.ts'
import { endOfFailure, incomplete, type ResponseEnd } from './response-end.ts'
import { decideTurn, isRefused, nextTurnSettings } from './turn-decision.ts'
import { type TurnBasis, turnRequest } from './turn-request.ts'

export interface EngineDeps extends ModelDeps {
  configuration: ModelDeps['configuration'] &
    OutputDeps['configuration'] & { RESPONSE_MAX_TURNS: number; RESPONSE_TIME_LIMIT_MS: number }
}

/** A turn that is admitted and not sent yet, and the bytes that it is made of: they are released when it was sent. */
export interface ReadyTurn {
  turn: AdmittedTurn
  held: readonly OwnedBytes[]
}

/** What the engine works on. */
export interface EngineRun extends TurnBasis {
  state: ResponseState
  request: StoredRequest
  emitter: ResponseEmitter
  /** The first turn; null for a response that goes on after a restart. */
  ready: ReadyTurn | null
  /** The context of every turn, unless it is too large to be held. */
  context: readonly ContextItem[] | null
  loadContext: (principal: Principal) => Promise<ContextItem[]>
  /** Stores the events that are pending: the state never says more than they do. */
  flushEvents: () => void
}

/** A call that has ended is settled at once, as far as this object goes. */
const SETTLING_LIMIT_MS = 1_000

/**
 * Runs the turns of one response in steps. Each step begins in a stored phase and ends with the next one stored
 * (`phases.ts`), so that another life of the object can go on between two of them. Every turn is a governed call of its
 * own: access, policies, credits and audit hold for each, and each is settled when it ends.
 */
export class ResponseEngine {
  readonly #deps: EngineDeps
  readonly #run: EngineRun
  readonly #abort = new AbortController()
  #interruption: Interruption | null = null
  #progress: Progress
  /** What each turn that ended added to the context. */
  readonly #turns: ContextItem[][]
  #ready: ReadyTurn | null
  /** As the ledger knew it to be current at the last turn. */
  #principal: Principal | null

  constructor(deps: EngineDeps, run: EngineRun) {
    this.#deps = deps
    this.#run = run
    this.#ready = run.ready
    this.#principal = run.ready?.turn.planned.rights.principal ?? null
    this.#progress = run.state.known.progress
    this.#turns = Array.from({ length: this.#progress.turns }, (_, index) => run.state.turn(index + 1))
  }

  /** What the turns that have ended were charged for. */
  get usage(): Usage | null {
    return this.#progress.usage
  }

  /** Ends the response soon. The call in flight is settled for what it used. */
  interrupt(why: Interruption): void {
    this.#interruption ??= why
    this.#abort.abort()
  }

  /** Runs until the response has to end. To be called once. Never throws. */
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

  /** generating: sends the admitted turn, tells its answer, and stores what it came to. */
  async #generate(): Promise<ResponseEnd | null> {
    const { emitter } = this.#run
    const from = emitter.outputLength
    const { sent, call } = await this.#send()
    await this.#tell(sent, call)
    const end = emitter.endTurn()
    return this.#interrupted() ?? this.#follow(end, from)
  }

  /** Apart from what follows: a body of 50 MB must not live as long as its answer. */
  async #send(): Promise<{ sent: SentTurn; call: GovernedCall }> {
    const ready = this.#ready
    this.#ready = null
    if (!ready) throw new Error('there is no turn to send')
    const { planned, call } = ready.turn
    try {
      return { sent: await sendTurn(this.#deps, planned, call, this.#abort.signal), call }
    } finally {
      // What the upstream still reads is borrowed, and freed when it has it.
      for (const bytes of ready.held) bytes.release()
    }
  }

  /** Tells an answer as it comes. */
  async #tell(sent: SentTurn, call: GovernedCall): Promise<void> {
    const { emitter } = this.#run
    if (sent.kind === 'failed') {
      this.#settle(call, await sent.outcome)
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
      // What its upstream told so far, should the rest stay unknown.
      this.#charge(this.#run.emitter.turnUsage, [])
      this.#deps.waitUntil(outcome.then((late) => settle(this.#deps, call, late)))
    }
  }

  /** What a call is charged for is stored before the ledger is told: both then say the same after a restart. */
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

  /** Stores a turn that ended together with what follows it. @param from place of its first item in the output. */
  #follow(end: TurnEnd, from: number): ResponseEnd | null {
    const { state, request, emitter, tools } = this.#run
    const { turns, refusedTurns } = this.#progress
    const counted = this.#advance({ turns: turns + 1, refusedTurns: isRefused(end) ? refusedTurns + 1 : 0 })
    const decision = decideTurn(end, counted, {
      mostTurns: this.#deps.configuration.RESPONSE_MAX_TURNS,
      mostOutput: request.settings.max_output_tokens ?? null,
      functionCallsComplete: request.functionCallsComplete,
    })
    // The end of a response is stored with all that it became.
    if (decision.kind === 'end') return decision.end
    this.#run.flushEvents()
    const items = turnItems(this.#deps, this.#run.owner, emitter, end, from, tools.knows)
    this.#turns.push(items)
    state.storeRequest(request)
    state.storeTurn(counted.turns, items)
    if (decision.kind === 'run_tools') {
      const calls = decision.calls.map(({ callId, upstreamName, arguments: json }) => ({
        callId,
        upstreamName,
        arguments: json,
        state: 'intended' as const,
        result: null,
      }))
      state.storeToolCalls(calls)
      state.enter('running_tools', { progress: this.#advance({ endAfterTools: decision.end }) })
    } else this.#enterBetweenTurns()
    return null
  }

  /** The id of the next call is stored before the ledger is asked for it: asked again, it opens the call once. */
  #enterBetweenTurns(): void {
    const progress = this.#advance({ nextCallId: newId('call'), endAfterTools: null })
    this.#run.state.enter('between_turns', { progress })
  }

  /** running_tools: answers the calls one after the other. Each is stored before it is dispatched, and with its result. */
  async #runTools(): Promise<ResponseEnd | null> {
    const { state, emitter } = this.#run
    const calls = state.toolCalls
    for (const [index, call] of calls.entries()) {
      if (call.result === null) {
        const tool = this.#run.tools.hosted.get(call.upstreamName)
        if (call.state === 'dispatched' && !tool?.repeatable) throw interruptedTool()
        calls[index] = { ...call, state: 'dispatched' }
        state.storeToolCalls(calls)
        const result = await runToolCall(tool, { ...call, owner: this.#run.owner }, this.#abort.signal)
        calls[index] = { ...call, state: 'done', result }
        state.storeToolCalls(calls)
      }
      const { result } = calls[index] ?? call
      if (result) emitter.answer(call.callId, result)
    }
    this.#run.flushEvents()
    const { endAfterTools, turns } = this.#progress
    if (endAfterTools) return endAfterTools
    const items = withResults(this.#turns.at(-1) ?? [], emitter.response.output)
    this.#turns[turns - 1] = items
    state.storeTurn(turns, items)
    this.#enterBetweenTurns()
    return null
  }

  /** between_turns: admits the next turn, under the rights of now. */
  async #beginTurn(): Promise<null> {
    const { state, emitter, request } = this.#run
    const callId = this.#progress.nextCallId ?? newId('call')
    const identity = { ...request.identity, callId, at: this.#deps.clock() }
    const admission = await this.#admit(identity).catch((error) => this.#recordRefusal(identity, error))
    if ('error' in admission) throw admission.error
    const { open, planned } = admission.turn
    this.#ready = admission
    this.#principal = planned.rights.principal
    const openCall = { open, after: emitter.lastSequence }
    state.enter('generating', { progress: this.#advance({ openCall, nextCallId: null }) })
    return null
  }

  async #admit(identity: CallIdentity): Promise<ReadyTurn | Refused> {
    const { owner, request, loadContext } = this.#run
    const principal = await currentPrincipal(this.#deps, owner, request, this.#principal)
    const context = this.#run.context ?? (await loadContext(principal))
    this.#abort.signal.throwIfAborted()
    const settings = nextTurnSettings(request.settings, this.#progress.usage)
    const items = [...context, ...this.#turns.flat()]
    const asked = { identity, principal, counted: false }
    const { request: turnOf, body } = turnRequest(this.#deps, this.#run, asked, settings, items)
    const turn = await admitTurn(this.#deps, turnOf)
    if (turn.kind === 'admitted') return { turn, held: [body] }
    body.release()
    return turn
  }

  /** A turn that governance did not come to decide about is recorded here: the request has its record already. */
  async #recordRefusal(identity: CallIdentity, error: unknown): Promise<never> {
    if (error instanceof ApiError) {
      const opening = openingOf(identity, this.#run.owner, null)
      await this.#deps
        .ledgerOf(opening.organizationId, opening.shard)
        .record(opening, refusalOutcome(opening, this.#deps.clock(), error))
        .catch((failure) => logEvent('error', 'audit_failed', { error: errorText(failure) }))
    }
    throw error
  }

  #interrupted(): ResponseEnd | null {
    return this.#interruption && incomplete(this.#interruption)
  }
}

/** It is not known whether the call was made, and a second one could do harm. */
const interruptedTool = () =>
  new ApiError('internal', 'The response was interrupted while a tool ran.', { code: 'server_error' })
