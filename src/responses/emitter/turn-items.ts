import type { ModelEvent } from '../../gateway/translation/model-events.ts'
import { upstreamToolName } from '../../gateway/translation/requests/responses-tools.ts'
import { newId } from '../../lib/ids.ts'
import type { ItemStatus, OutputItem } from '../../wire/responses.ts'
import type { CallPurpose } from '../engine/tool-rules.ts'
import { isIdText } from '../ids.ts'
import type { Members } from '../item-types/item-type.ts'
import { OpenMessage } from '../item-types/message.ts'
import { OpenReasoning } from '../item-types/reasoning.ts'
import type { ReasoningSecret } from '../item-types/reasoning-secret.ts'
import { type CalledTool, CallItem } from './call-item.ts'
import type { EventWriter } from './event-writer.ts'
import { OpenItem } from './open-item.ts'

/** Callers send ids back, and more than this is not taken from them (`input-items.ts`). */
const LONGEST_CALL_ID = 4_000
const LONGEST_NAME = 256

/** Whether an id of an upstream can be stored and sent back. It only ties an output to its call, so any other will do. */
const isCallId = (id: string): boolean => id !== '' && id.length <= LONGEST_CALL_ID && isIdText(id)

/** What the items of a response are made with. */
export interface ItemMaker {
  writer: EventWriter
  /** Of tools, by the name that the model calls them. */
  nameOf: (upstreamName: string) => CalledTool
  /** What answers a call. A refused one is no item. */
  purposeOf: (upstreamName: string) => CallPurpose
  seal: (secret: ReasoningSecret) => string | null
  /** Items are appended as they begin: the place of an item is its index. */
  output: OutputItem[]
  /** Of every call so far: an upstream may give the same ids in each turn, and clients refuse that. */
  callIds: Set<string>
}

/**
 * The items of one turn of the model, which open and close as its events demand. A message or a run of thinking is open
 * alone, while calls stay open beside everything until they are complete, since their arguments may arrive mixed.
 */
export class TurnItems {
  readonly #maker: ItemMaker
  readonly #origin: string | null
  readonly #calls = new Map<number, CallItem>()
  #open: OpenMessage | OpenReasoning | null = null
  readonly thoughts: OpenReasoning[] = []

  /** @param origin the family of the model. */
  constructor(maker: ItemMaker, origin: string | null) {
    this.#maker = maker
    this.#origin = origin
  }

  /** In the order in which they began. */
  get calls(): CallItem[] {
    return [...this.#calls.values()]
  }

  say(type: 'output_text' | 'refusal', text: string): void {
    if (text !== '') this.#message().say(type, text)
  }

  cite(citation: Record<string, unknown>, length: number): void {
    if (this.#open instanceof OpenMessage) this.#open.cite(citation, length)
  }

  think(text: string): void {
    if (text !== '') this.#reasoning().think(text)
  }

  sign(signature: string): void {
    if (signature !== '') this.#reasoning().sign(signature)
  }

  redact(data: string): void {
    if (data !== '') this.#reasoning().redact(data)
  }

  call({ call, id, name: given }: Extract<ModelEvent, { type: 'tool_call' }>): void {
    if (this.#calls.has(call)) return
    this.#closeBefore()
    const { callIds, nameOf, purposeOf } = this.#maker
    const callId = isCallId(id) && !callIds.has(id) ? id : newId('call')
    // No tool is offered under a name that is none, so that nothing but what is told of it changes.
    const name = isIdText(given) && given.length <= LONGEST_NAME ? given : upstreamToolName(null, given)
    callIds.add(callId)
    const { itemType, members } = nameOf(name)
    const purpose = purposeOf(name)
    const item = purpose === 'refused' ? null : this.#begin(itemType, { call_id: callId, ...members })
    this.#calls.set(call, new CallItem(callId, name, purpose, item))
  }

  argue(call: number, json: string): void {
    this.#calls.get(call)?.argue(json)
  }

  /** @param status of what was being written. @param whole of calls that have all their arguments. @param cut of others. */
  close(status: ItemStatus, whole: ItemStatus, cut: ItemStatus): void {
    this.#open?.close(status)
    this.#open = null
    for (const call of this.#calls.values()) call.close(call.complete ? whole : cut)
  }

  #message(): OpenMessage {
    if (this.#open instanceof OpenMessage) return this.#open
    this.#closeBefore()
    const message = new OpenMessage(this.#begin('message', { role: 'assistant' }))
    this.#open = message
    return message
  }

  #reasoning(): OpenReasoning {
    if (this.#open instanceof OpenReasoning) return this.#open
    this.#closeBefore()
    const reasoning = new OpenReasoning(this.#begin('reasoning', {}), this.#origin, this.#maker.seal)
    this.thoughts.push(reasoning)
    this.#open = reasoning
    return reasoning
  }

  #begin(type: string, members: Members): OpenItem {
    const { writer, output } = this.#maker
    const open = OpenItem.begin(writer, output.length, type, members)
    output.push(open.item)
    return open
  }

  /** Callers act on a call when it is told to be done, so that a complete one does not wait for the end of the turn. */
  #closeBefore(): void {
    this.#open?.close('completed')
    this.#open = null
    for (const call of this.#calls.values()) if (call.complete) call.close('completed')
  }
}
