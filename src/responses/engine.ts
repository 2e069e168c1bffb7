import type { CallRecord } from '../gateway/call-record.ts'
import type { ModelDeps } from '../gateway/invoke-model.ts'
import { type ModelTurn, modelTurn, TurnFailure } from '../gateway/model-turn.ts'
import type { StopReason } from '../gateway/translation/model-events.ts'
import { addUsage, type Usage } from '../governance/credits.ts'
import { ApiError } from '../lib/api-error.ts'
import { newId } from '../lib/ids.ts'
import { errorText, logEvent } from '../lib/log.ts'
import type { ResponseSettings } from '../wire/responses.ts'
import type { ResponseEmitter, TurnEnd } from './emitter.ts'
import type { Admission, ContextItem } from './types.ts'

/** How a response ends, as its object tells it. */
export type ResponseEnd =
  | { status: 'completed' }
  | { status: 'incomplete'; reason: string }
  | { status: 'failed'; error: { code: string; message: string } }

export interface EngineDeps extends ModelDeps {
  configuration: ModelDeps['configuration'] & { RESPONSE_MAX_TURNS: number; RESPONSE_TIME_LIMIT_MS: number }
}

export interface EngineOptions {
  admission: Admission
  settings: ResponseSettings
  /** The context of the first turn. */
  items: readonly ContextItem[]
  /** Makes the body of a turn. @throws ApiError invalid_request */
  turnBody: (settings: ResponseSettings, items: readonly ContextItem[]) => Uint8Array
  /** What a turn said, as items for the next one. */
  saidItems: (end: TurnEnd) => ContextItem[]
  /** Called when the first turn is allowed and paid for, before it is sent. What it throws ends the admission. */
  onAdmitted: () => Promise<void>
  emitter: ResponseEmitter
}

/** Why a response that is running ends before its model does. */
export type Interruption = 'cancelled' | 'max_time'

/**
 * Runs the turns of one response: calls the model, tells its events, answers the calls that are not the caller's to
 * answer, and goes on until the model is done or a limit is reached. Every turn is a governed call of its own: access,
 * policies, credits and audit hold for each, and each is settled when it ends.
 */
export class ResponseEngine {
  readonly #deps: EngineDeps
  readonly #options: EngineOptions
  readonly #abort = new AbortController()
  readonly #first: Promise<ModelTurn>
  #interruption: Interruption | null = null
  #items: ContextItem[]
  #usage: Usage | null = null

  /** Begins the first turn: `admitted` tells whether it may be made. */
  constructor(deps: EngineDeps, options: EngineOptions) {
    this.#deps = deps
    this.#options = options
    this.#items = [...options.items]
    const admitted = Promise.withResolvers<void>()
    this.#first = this.#begin(options.admission.record, options.settings, async () => {
      await options.onAdmitted()
      admitted.resolve()
    })
    this.admitted = Promise.race([admitted.promise, this.#first.then(() => {})])
    // Both are awaited in turn; until then a failure must not count as unhandled.
    this.admitted.catch(() => {})
    this.#first.catch(() => {})
  }

  /** Resolves when the first turn is allowed and paid for. Rejects with the ApiError that says why not. */
  readonly admitted: Promise<void>

  /** What all turns used so far. */
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
      for (let turns = 1; ; turns++) {
        const end = await this.#tell(turn)
        const ended = this.#endOf(end, turns)
        if (ended) return ended
        this.#items = [...this.#items, ...this.#options.saidItems(end)]
        turn = await this.#begin(this.#nextRecord(), this.#nextSettings())
      }
    } catch (error) {
      return this.#interrupted() ?? endOfFailure(error, this.#usage !== null)
    } finally {
      clearTimeout(timer)
    }
  }

  async #begin(
    record: CallRecord,
    settings: ResponseSettings,
    onAdmitted?: () => Promise<void>,
  ): Promise<ModelTurn> {
    const { admission, turnBody } = this.#options
    const { principal, catalogueEpoch, headers } = admission
    return modelTurn(this.#deps, {
      body: turnBody(settings, this.#items),
      headers: new Headers(headers),
      signal: this.#abort.signal,
      principal,
      catalogueEpoch,
      record,
      ...(onAdmitted && { onAdmitted }),
    })
  }

  async #tell(turn: ModelTurn): Promise<TurnEnd> {
    const { emitter } = this.#options
    emitter.origin = turn.origin
    for await (const batch of turn.batches) {
      for (const event of batch) emitter.model(event)
    }
    const end = emitter.endTurn()
    if (end.usage) this.#usage = addUsage(this.#usage, end.usage)
    return end
  }

  /** @returns null when another turn follows. */
  #endOf(end: TurnEnd, turns: number): ResponseEnd | null {
    const interrupted = this.#interrupted()
    if (interrupted) return interrupted
    const shown = end.calls.filter((call) => call.shown)
    // Nobody can answer a call without the rest of its arguments.
    if (shown.some(({ cut }) => cut)) return endOfStop(end.stop)
    if (shown.length > 0) return this.#afterFunctionCall()
    if (end.calls.length === 0 || end.stop === 'length') return endOfStop(end.stop)
    if (turns >= this.#deps.configuration.RESPONSE_MAX_TURNS) return incomplete('max_turns')
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
    const forced = settings.tool_choice === 'required'
    return {
      ...settings,
      ...(left !== null && { max_output_tokens: left }),
      ...(forced && { tool_choice: 'auto' as const }),
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

const incomplete = (reason: string): ResponseEnd => ({ status: 'incomplete', reason })

/** What a stop of the model comes to. An upstream that named none has ended its answer whole all the same. */
function endOfStop(stop: StopReason | null): ResponseEnd {
  if (stop === 'length' || stop === 'context_window' || stop === 'pause')
    return incomplete('max_output_tokens')
  return { status: 'completed' }
}

/** @param later whether a turn was paid for already: then running out of credits is a limit, not a refusal. */
function endOfFailure(error: unknown, later: boolean): ResponseEnd {
  if (error instanceof TurnFailure) {
    return { status: 'failed', error: { code: error.code, message: error.message } }
  }
  if (error instanceof ApiError) {
    if (later && error.kind === 'rate_limited') return incomplete('insufficient_credits')
    return { status: 'failed', error: { code: error.code ?? 'stream_error', message: error.message } }
  }
  logEvent('error', 'response_failed', { error: errorText(error) })
  return { status: 'failed', error: { code: 'internal_error', message: 'Something went wrong.' } }
}
