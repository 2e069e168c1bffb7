import type { ModelEvent, StopReason } from '../../gateway/translation/model-events.ts'
import type { Usage } from '../../ledger/audit-record.ts'
import type { Includes } from '../../wire/response-queries.ts'
import type { OutputItem, ResponseObject } from '../../wire/responses.ts'
import { excludedMembers, withIncluded } from '../items/included-members.ts'
import type { ReasoningSecret } from '../items/reasoning-seal.ts'
import { ITEM_TYPES } from '../items/types/item-types.ts'
import { isCut, type ResponseEnd } from '../model/response-end.ts'
import { outputTextOf, responseUsage } from '../model/response-members.ts'
import type { ToolResult } from '../model/tool-result.ts'
import type { Members } from '../model/types.ts'
import type { ToolCall } from './call-item.ts'
import { OpenItem } from './open-item.ts'
import { type ItemDeps, TurnItems } from './turn-items.ts'

export interface EmitterOptions extends Pick<ItemDeps, 'writer' | 'nameOf' | 'purposeOf' | 'approvalIdOf'> {
  /** The response as in its first event. */
  response: ResponseObject
  /** The output so far, when the response continues after a restart. */
  items?: readonly OpenItem[]
  /** Secrets of the reasoning items in that output. */
  secrets?: ReadonlyMap<string, ReasoningSecret>
  /** The members of items that the caller gets, beside those that it always gets. */
  includes?: Includes
  /** Members of items in that output that the caller does not get, by item id. */
  excluded?: ReadonlyMap<string, Members>
  /** Makes `encrypted_content`; returns null when the request does not include it. */
  seal: (secret: ReasoningSecret) => string | null
}

/** A call that a response makes by itself. */
interface AddedCall {
  callId: string
  itemType: string
  /** Members of the call's item, such as `name`. */
  members: Members
  /** JSON. */
  arguments: string
}

/** The end of a turn of the model. */
export interface TurnEnd {
  /** Null when the upstream gave no reason. */
  stop: StopReason | null
  /** Whether a content filter ended the answer, and not the model with a refusal. */
  filtered: boolean
  calls: readonly ToolCall[]
  /** See `turnOf`. */
  turn: string
}

/** The end of a response, with the figures of its last event. */
export type FinalEnd = ResponseEnd & {
  usage: Usage | null
  /** Seconds since the epoch. */
  completedSeconds: number
}

/**
 * The chat protocol reports a content filter, and the messages protocol a refusal, by the stop reason alone. Without a text
 * of the refusal it counts as filtered, which is what the official `content_filter` means.
 */
const isFiltered = ({ stop, refused, explanation }: RunningTurn): boolean =>
  stop === 'refusal' && !refused && explanation === null

type Handlers = {
  [Type in ModelEvent['type']]: (turn: RunningTurn, event: Extract<ModelEvent, { type: Type }>) => void
}

interface RunningTurn {
  items: TurnItems
  stop: StopReason | null
  explanation: string | null
  /** Whether the model gave the text of a refusal. */
  refused: boolean
  usage: Usage | null
}

/**
 * Turns the events of a model into the numbered events of the Responses surface, and builds the response from them. One
 * emitter writes all events of a response, over all of its turns.
 */
export class ResponseEmitter {
  /** The family of the model of the next turn, which alone can verify its signatures. */
  origin: string | null = null
  readonly #response: ResponseObject
  readonly #context: ItemDeps
  readonly #secrets: Map<string, ReasoningSecret>
  readonly #includes: Includes
  readonly #excluded: Map<string, Members>
  /** Items of calls without a result, by call id. */
  readonly #pendingCalls: Map<string, OpenItem>
  #turn: RunningTurn | null = null
  #ended = false

  constructor({ response, items = [], secrets, excluded, includes, ...options }: EmitterOptions) {
    const output = items.map(({ item }) => item)
    const pending = items.filter(({ closed }) => !closed)
    this.#response = response
    this.#secrets = new Map(secrets)
    this.#includes = includes ?? new Set()
    this.#excluded = new Map(excluded)
    this.#pendingCalls = new Map(pending.flatMap((open) => callIdOf(open.item).map((id) => [id, open])))
    this.#context = { ...options, output, callIds: new Set(output.flatMap(callIdOf)) }
  }

  /** Writes `response.created` and `response.in_progress`. */
  begin(): void {
    if (!this.#ended) this.#context.writer.writeBeginning(this.response)
  }

  /** Applies one event of the model. Items open and close as needed; choices other than the first are ignored. */
  model<Event extends ModelEvent>(event: Event): void {
    if (this.#ended || ('choice' in event && event.choice !== 0)) return
    const handler = HANDLERS[event.type] as (turn: RunningTurn, event: Event) => void
    handler(this.#currentTurn(), event)
  }

  /** Ends a turn and closes its items, as incomplete where the stop reason cut them off. */
  endTurn(): TurnEnd {
    const turn = this.#currentTurn()
    const { stop, items } = turn
    this.#turn = null
    const filtered = isFiltered(turn)
    const status = filtered || isCut(stop) ? 'incomplete' : 'completed'
    // A refusal is complete, but interrupts the call that the model was writing.
    this.#close(items, status, 'completed', stop === 'refusal' ? 'incomplete' : status)
    return { stop, filtered, calls: items.calls, turn: items.turn }
  }

  /**
   * Adds an item for the items before it that a summary replaces.
   * @param sealed its `encrypted_content`. @param announces whether the caller requested it with a `compaction_trigger`,
   *   for which the official types have an event.
   */
  addCompaction(sealed: string, announces: boolean): void {
    if (this.#ended) return
    const { writer, output } = this.#context
    const place = { output_index: output.length }
    const open = OpenItem.begin(writer, output.length, 'compaction', {})
    output.push(open.item)
    if (announces) writer.write('response.compaction.compacting', { item_id: open.item.id, ...place })
    open.close('completed', { encrypted_content: sealed })
  }

  /** Adds a server-side call that no turn of the model makes. It stays open until it has its result. */
  addCall({ callId, itemType, members, arguments: json }: AddedCall): void {
    if (this.#ended) return
    const { writer, output, callIds } = this.#context
    const open = OpenItem.begin(writer, output.length, itemType, { call_id: callId, ...members })
    output.push(open.item)
    callIds.add(callId)
    open.append(json)
    open.endText()
    this.#pendingCalls.set(callId, open)
  }

  /** Writes the result of a server-side call. A second result is ignored. */
  addResult(callId: string, { status, members }: ToolResult): void {
    const item =
      this.#pendingCalls.get(callId)?.item ??
      this.#context.output.find((item) => callIdOf(item).includes(callId))
    if (!item) return
    const typed = { ...members, type: item.type }
    // After a restart too, when the item has its result already and the members withheld from the caller are lost.
    this.#excluded.set(item.id, excludedMembers(typed, this.#includes))
    const { type: _, ...included } = withIncluded(typed, this.#includes)
    const failedStatus = ITEM_TYPES.get(item.type)?.failedStatus
    const shown = status === 'failed' ? (failedStatus ?? status) : status
    this.#pendingCalls.get(callId)?.close(shown, included)
    this.#pendingCalls.delete(callId)
  }

  /**
   * Fixes the final response and closes open items as incomplete. A second call changes nothing. `terminate` writes the
   * last event, so that the response can be stored before a client sees its end.
   * @returns the final response.
   */
  end(end: FinalEnd): ResponseObject {
    if (this.#ended) return this.response
    if (this.#turn) this.#close(this.#turn.items, 'incomplete', 'incomplete', 'incomplete')
    this.#turn = null
    for (const open of this.#pendingCalls.values()) open.close('incomplete')
    this.#ended = true
    Object.assign(this.#response, {
      status: end.status,
      error: end.status === 'failed' ? end.error : null,
      incomplete_details: end.status === 'incomplete' ? { reason: end.reason } : null,
      completed_at: end.status === 'completed' ? end.completedSeconds : null,
      usage: responseUsage(end.usage),
    })
    return this.response
  }

  /** Writes the last events. @throws if `end` was not called. */
  terminate(): void {
    if (!this.#ended) throw new Error('a response has to be ended before its last event')
    this.#context.writer.writeEnd(this.response)
  }

  /** A copy of the response in its current state. */
  get response(): ResponseObject {
    const output = structuredClone(this.#context.output)
    return { ...this.#response, output, output_text: outputTextOf(output) }
  }

  /** Number of items so far. */
  get outputLength(): number {
    return this.#context.output.length
  }

  get lastSequence(): number {
    return this.#context.writer.lastSequence
  }

  /** See `StoredNumbers`. */
  get itemNumbers(): number[][] {
    return this.#context.writer.itemNumbers
  }

  /** Usage of the running turn as far as the upstream has reported it. */
  get turnUsage(): Usage | null {
    return this.#turn?.usage ?? null
  }

  /** Secrets of the closed reasoning items, by item id. */
  get reasoningSecrets(): ReadonlyMap<string, ReasoningSecret> {
    return this.#secrets
  }

  /** Members of items that the caller does not get and that are stored, by item id. */
  get excludedMembers(): ReadonlyMap<string, Members> {
    return this.#excluded
  }

  #currentTurn(): RunningTurn {
    this.#turn ??= {
      items: new TurnItems(this.#context, this.origin),
      stop: null,
      explanation: null,
      refused: false,
      usage: null,
    }
    return this.#turn
  }

  #close(items: TurnItems, ...statuses: Parameters<TurnItems['close']>): void {
    items.close(...statuses)
    for (const { item, secret } of items.reasoning) this.#secrets.set(item.id, secret)
    for (const { callId, item } of items.calls) if (item && !item.closed) this.#pendingCalls.set(callId, item)
  }
}

const callIdOf = (item: OutputItem): string[] =>
  'call_id' in item && item.call_id !== undefined ? [item.call_id] : []

const HANDLERS: Handlers = {
  start(turn, event) {
    turn.usage = event.usage ?? turn.usage
  },
  text: ({ items }, event) => items.appendText('output_text', event.text),
  refusal(turn, event) {
    turn.refused ||= event.text !== ''
    turn.items.appendText('refusal', event.text)
  },
  reasoning: ({ items }, event) => items.appendReasoning(event.text),
  reasoning_signature: ({ items }, event) => items.addSignature(event.signature),
  redacted_reasoning: ({ items }, event) => items.addRedacted(event.data),
  tool_call: ({ items }, event) => items.beginCall(event),
  tool_arguments: ({ items }, event) => items.appendArguments(event.call, event.json),
  citation: ({ items }, event) => items.addCitation(event.citation, event.length),
  stop(turn, { reason, explanation }) {
    turn.stop = reason
    turn.explanation = explanation
    // The messages protocol explains a refusal apart from the model's text. On this surface that is the refusal.
    if (explanation !== null && !turn.refused) turn.items.appendText('refusal', explanation)
  },
  usage(turn, event) {
    turn.usage = event.usage
  },
  end() {},
}
