import { type CallRecord, emptyOutcome, openingOf } from '../gateway/call-record.ts'
import type { ModelDeps } from '../gateway/invoke-model.ts'
import { type ModelTurn, modelTurn } from '../gateway/model-turn.ts'
import type { OpenedCall } from '../gateway/opened-call.ts'
import { addUsage, type Usage } from '../governance/credits.ts'
import { ApiError } from '../lib/api-error.ts'
import { freeBuffer, holdBuffer } from '../lib/buffer-holds.ts'
import { newId } from '../lib/ids.ts'
import { errorText, logEvent } from '../lib/log.ts'
import { withinTime } from '../lib/time-limit.ts'
import type { ResponseSettings } from '../wire/responses.ts'
import { isCut, type ResponseEmitter, type TurnEnd } from './emitter.ts'
import { endOfFailure, endOfStop, incomplete, type ResponseEnd } from './response-end.ts'
import type { CurrentRights } from './rights.ts'
import type { Admission, ContextItem } from './types.ts'

export interface EngineDeps extends ModelDeps {
  configuration: ModelDeps['configuration'] & { RESPONSE_MAX_TURNS: number; RESPONSE_TIME_LIMIT_MS: number }
}

export interface EngineOptions {
  admission: Admission
  settings: ResponseSettings
  /** The context of the first turn. A large one is gone when that was sent and `onAdmitted` is done with it. */
  items: readonly ContextItem[]
  /** The same once more, for a further turn. */
  itemsAgain: () => Promise<ContextItem[]>
  /** Makes the body of a turn, maybe of the items' own bytes (`TurnBodyOptions.moves`). @throws ApiError invalid_request */
  turnBody: (settings: ResponseSettings, items: readonly ContextItem[], moves: boolean) => Uint8Array
  /** What a turn said, as items for the next one. */
  saidItems: (end: TurnEnd) => ContextItem[]
  /** Called when the first turn is allowed and paid for, before it is sent. What it throws ends the admission. */
  onAdmitted: () => Promise<void>
  /** Keeps what would be unknown if this died: the call that is under way, and what calls were charged for. */
  calls: CallKeeper
  /** What the caller may do by now: asked before each further turn. @throws ApiError when that is nothing any more. */
  currentRights: () => Promise<CurrentRights>
  emitter: ResponseEmitter
}

/** Neither of both may throw. */
export interface CallKeeper {
  /** The ledger holds a call; what is told from here on is its answer. */
  opened(call: OpenedCall): void
  /** It is settled. @param usage what it is charged for; null for nothing. */
  settled(usage: Usage | null): void
}

/** A model that calls what it must not is told so; one that has been told so often goes on for nothing. */
const MOST_REFUSED_TURNS = 3
/** Bytes of a context that is held for as long as the response generates; a larger one is loaded again if need be. */
const MOST_HELD_BYTES = 1024 * 1024
/** A call that has ended is settled at once, as far as this object goes. */
const SETTLING_LIMIT_MS = 1_000

/** Why a response that is running ends before its model does. */
export type Interruption = 'cancelled' | 'max_time'

/**
 * Runs the turns of one response: calls the model, tells its events, answers the calls that are not the caller's to
 * answer, and goes on until the model is done or a limit is reached. Every turn is a governed call of its own: access,
 * policies, credits and audit hold for each, and each is settled when it ends.
 */
export class ResponseEngine {
  readonly #deps: EngineDeps
  readonly #options: Omit<EngineOptions, 'items' | 'onAdmitted'>
  readonly #abort = new AbortController()
  readonly #first: Promise<ModelTurn>
  #interruption: Interruption | null = null
  /** Null while it is not held. */
  #context: readonly ContextItem[] | null
  /** What the turns have added to it. */
  readonly #said: ContextItem[] = []
  #usage: Usage | null = null
  /** Turns that came to their end. */
  #turns = 0
  /** Those of them, one after the other, in which nothing was called but what may not be. */
  #refusedTurns = 0
  /** The call that was made last, until its usage is counted. */
  #call: { record: CallRecord; charged: Promise<Usage | null> } | null = null

  /** Begins the first turn: `admitted` tells whether it may be made. */
  constructor(deps: EngineDeps, { items, onAdmitted, ...options }: EngineOptions) {
    this.#deps = deps
    this.#options = options
    const admitted = Promise.withResolvers<void>()
    this.admitted = admitted.promise
    this.admitted.catch(() => {})
    const bytes = items.reduce((sum, item) => sum + item.bytes.length, 0)
    this.#context = bytes > MOST_HELD_BYTES ? null : items
    const { admission, settings } = options
    this.#first = this.#begin(admission.record, settings, admission, items, async () => {
      await onAdmitted()
      admitted.resolve()
    })
    this.sent = this.#first.then(
      () => {},
      () => {},
    )
    // What comes after the admission is told by `run`.
    this.#first.catch(admitted.reject)
  }

  /** Resolves when the first turn is allowed and paid for. Rejects with the ApiError that says why not. */
  readonly admitted: Promise<void>

  /** Resolves when the first turn is answered or has failed, and a large context is held no longer. */
  readonly sent: Promise<void>

  /** What the turns that have ended were charged for. */
  get usage(): Usage | null {
    return this.#usage
  }

  /** Ends the response soon. The call in flight is settled for what it used. */
  interrupt(why: Interruption): void {
    this.#interruption ??= why
    this.#abort.abort()
  }

  /** Runs until the response has to end. To be called once, after `admitted`. Never throws. */
  async run(): Promise<ResponseEnd> {
    const timer = setTimeout(
      () => this.interrupt('max_time'),
      this.#deps.configuration.RESPONSE_TIME_LIMIT_MS,
    )
    try {
      let turn = await this.#first
      for (;;) {
        const end = await this.#tell(turn)
        this.#turns++
        const ended = this.#endOf(end)
        if (ended) return ended
        this.#said.push(...this.#options.saidItems(end))
        turn = await this.#beginNext()
      }
    } catch (error) {
      await this.#count()
      return this.#interrupted() ?? endOfFailure(error, this.#turns > 0)
    } finally {
      clearTimeout(timer)
    }
  }

  /** What was allowed when the response began need not be allowed now. */
  async #beginNext(): Promise<ModelTurn> {
    const record = this.#nextRecord()
    try {
      const rights = await this.#options.currentRights()
      const context = this.#context ?? (await this.#options.itemsAgain())
      this.#abort.signal.throwIfAborted()
      return await this.#begin(record, this.#nextSettings(), rights, [...context, ...this.#said])
    } catch (error) {
      await this.#recordRefusal(record, error)
      throw error
    }
  }

  /** What the ledger did not open is recorded here: the request of this response has its record already. */
  async #recordRefusal(record: CallRecord, error: unknown): Promise<void> {
    if (record.opened || !(error instanceof ApiError)) return
    const { organizationId } = this.#options.admission.principal
    const outcome = emptyOutcome(record, this.#deps.clock(), error.status, error.code ?? error.kind)
    await this.#deps
      .ledgerOf(organizationId)
      .record(openingOf(record, organizationId), outcome)
      .catch((failure) => logEvent('error', 'audit_failed', { error: errorText(failure) }))
  }

  async #begin(
    record: CallRecord,
    settings: ResponseSettings,
    { principal, catalogueEpoch }: CurrentRights,
    items: readonly ContextItem[],
    onAdmitted?: () => Promise<void>,
  ): Promise<ModelTurn> {
    const { admission, turnBody, calls } = this.#options
    const charged = Promise.withResolvers<Usage | null>()
    this.#call = { record, charged: charged.promise }
    const moves = onAdmitted !== undefined && this.#context === null
    const body = turnBody(settings, items, moves)
    // The input is kept of what was moved.
    if (moves) this.admitted.finally(holdBuffer(body)).catch(() => {})
    const turn = modelTurn(this.#deps, {
      body,
      headers: new Headers(admission.headers),
      signal: this.#abort.signal,
      principal,
      catalogueEpoch,
      record,
      onOpened: (call) => calls.opened(call),
      onSettled: (usage) => {
        calls.settled(usage)
        charged.resolve(usage)
      },
      ...(onAdmitted && { onAdmitted }),
    })
    return turn.finally(() => freeIfLarge(body))
  }

  /** Adds what the call that was made last is charged for; what its upstream told of it, should that stay unknown. */
  async #count(): Promise<void> {
    const call = this.#call
    this.#call = null
    if (!call?.record.opened) return
    const told = this.#options.emitter.turnUsage
    const usage = await withinTime(call.charged, SETTLING_LIMIT_MS, 'settling a call').catch(() => told)
    if (usage) this.#usage = addUsage(this.#usage, usage)
  }

  async #tell(turn: ModelTurn): Promise<TurnEnd> {
    const { emitter } = this.#options
    emitter.origin = turn.origin
    for await (const batch of turn.batches) {
      for (const event of batch) emitter.model(event)
    }
    await this.#count()
    return emitter.endTurn()
  }

  /** @returns null when another turn follows. */
  #endOf(end: TurnEnd): ResponseEnd | null {
    const interrupted = this.#interrupted()
    if (interrupted) return interrupted
    if (end.filtered) return incomplete('content_filter')
    const shown = end.calls.filter((call) => call.shown)
    // Nobody can answer a call without the rest of its arguments.
    if (shown.some(({ cut }) => cut)) return endOfStop(end.stop)
    if (shown.length > 0) return this.#afterFunctionCall()
    if (end.calls.length === 0 || isCut(end.stop)) return endOfStop(end.stop)
    this.#refusedTurns++
    const most = this.#deps.configuration.RESPONSE_MAX_TURNS
    if (this.#turns >= most || this.#refusedTurns >= MOST_REFUSED_TURNS) return incomplete('max_turns')
    return this.#outputLeft() === 0 ? incomplete('max_output_tokens') : null
  }

  /** The caller answers it, so the response ends (interface: Response status). */
  #afterFunctionCall(): ResponseEnd {
    return this.#options.admission.functionCallsComplete ? { status: 'completed' } : incomplete('tool_use')
  }

  #interrupted(): ResponseEnd | null {
    return this.#interruption && incomplete(this.#interruption)
  }

  /** Tokens that the response may still generate; null without a limit. */
  #outputLeft(): number | null {
    const limit = this.#options.settings.max_output_tokens
    return limit ? Math.max(0, limit - (this.#usage?.output ?? 0)) : null
  }

  /** `max_output_tokens` bounds the response, whatever its turns. A forced call is made once. */
  #nextSettings(): ResponseSettings {
    const { settings } = this.#options
    const left = this.#outputLeft()
    return {
      ...settings,
      ...(left !== null && { max_output_tokens: left }),
      tool_choice: unforced(settings.tool_choice),
    }
  }

  /** Each turn is recorded and settled by itself, under the request that began the response. */
  #nextRecord(): CallRecord {
    const { record } = this.#options.admission
    return {
      ...record,
      callId: newId('call'),
      startedAt: this.#deps.clock(),
      modelId: null,
      flags: [],
      opened: false,
    }
  }
}

/** Whoever still sends it holds it. */
function freeIfLarge({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.resizable) freeBuffer(buffer, () => {})
}

/** The same choice of tools, of which none need be called any more. */
function unforced(choice: ResponseSettings['tool_choice']): ResponseSettings['tool_choice'] {
  if (choice === 'required') return 'auto'
  if (typeof choice === 'object' && choice?.type === 'allowed_tools') return { ...choice, mode: 'auto' }
  return choice
}
