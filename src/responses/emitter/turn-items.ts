import type { ModelEvent } from '../../gateway/translation/model-events.ts'
import { upstreamToolName } from '../../gateway/translation/requests/responses-tools.ts'
import { newId } from '../../lib/ids.ts'
import type { ItemStatus, OutputItem } from '../../wire/responses.ts'
import type { ReasoningSecret } from '../items/reasoning-seal.ts'
import { isIdText, newTurn } from '../model/response-ids.ts'
import type { CalledTool } from '../model/tool-result.ts'
import type { Members } from '../model/types.ts'
import type { CallPurpose } from '../tools/tool-rules.ts'
import { CallItem } from './call-item.ts'
import type { EventWriter } from './event-writer.ts'
import { OpenItem } from './open-item.ts'
import { OpenMessage } from './open-message.ts'
import { OpenReasoning } from './open-reasoning.ts'

/** Callers send ids back, and longer ones are refused there (`input-item.ts`). */
const LONGEST_CALL_ID = 4_000
const LONGEST_NAME = 256

/** Whether an upstream's id can be stored and sent back. If not, any other id serves: it only ties an output to its call. */
const isCallId = (id: string): boolean => id !== '' && id.length <= LONGEST_CALL_ID && isIdText(id)

/** Facts that all items of a response need at their creation. */
export interface ItemDeps {
  writer: EventWriter
  /** The tool that a model calls by this name. */
  nameOf: (upstreamName: string) => CalledTool
  /** Decides where a call is executed. A refused call has no item. */
  purposeOf: (upstreamName: string) => CallPurpose
  seal: (secret: ReasoningSecret) => string | null
  /** The id of a request for the approval of a call. @param members of its tool. @param json its arguments. */
  approvalIdOf: (members: Members, json: string) => string
  /** Items are appended when they begin: `output_index` is their index. */
  output: OutputItem[]
  /** Ids of all calls so far: an upstream may repeat ids in each turn, and clients refuse that. */
  callIds: Set<string>
}

/**
 * The items of one turn of the model, opened and closed as its events require. One message or run of reasoning is open at a
 * time. Calls stay open beside them until their arguments are complete, since those may arrive interleaved.
 */
export class TurnItems {
  /** See `turnOf`. */
  readonly turn = newTurn()
  readonly #context: ItemDeps
  readonly #origin: string | null
  readonly #calls = new Map<number, CallItem>()
  /** Numbers of calls whose arguments have become complete and that are not closed. */
  #finished = new Set<number>()
  #open: OpenMessage | OpenReasoning | null = null
  readonly reasoning: OpenReasoning[] = []

  /** @param origin the family of the model. */
  constructor(context: ItemDeps, origin: string | null) {
    this.#context = context
    this.#origin = origin
  }

  /** Calls in the order in which they began. */
  get calls(): CallItem[] {
    return [...this.#calls.values()]
  }

  appendText(type: 'output_text' | 'refusal', text: string): void {
    if (text !== '') this.#message().appendText(type, text)
  }

  addCitation(citation: Record<string, unknown>, length: number): void {
    if (this.#open instanceof OpenMessage) this.#open.addCitation(citation, length)
  }

  appendReasoning(text: string): void {
    if (text !== '') this.#reasoning().appendText(text)
  }

  addSignature(signature: string): void {
    if (signature !== '') this.#reasoning().addSignature(signature)
  }

  addRedacted(data: string): void {
    if (data !== '') this.#reasoning().addRedacted(data)
  }

  beginCall({ call, id, name }: Extract<ModelEvent, { type: 'tool_call' }>): void {
    if (this.#calls.has(call)) return
    this.#closeFinished()
    const { callIds, nameOf, purposeOf } = this.#context
    const callId = isCallId(id) && !callIds.has(id) ? id : newId('call')
    // No tool has such a name, so that only the name that is reported changes.
    const toolName = isIdText(name) && name.length <= LONGEST_NAME ? name : upstreamToolName(null, name)
    callIds.add(callId)
    const { itemType, members } = nameOf(toolName)
    const purpose = purposeOf(toolName)
    const hasItem = purpose !== 'refused' && purpose !== 'approval'
    const item = hasItem ? this.#begin(itemType, { call_id: callId, ...members }) : null
    this.#calls.set(call, new CallItem(callId, toolName, purpose, item))
  }

  appendArguments(call: number, json: string): void {
    const item = this.#calls.get(call)
    item?.appendArguments(json)
    if (item?.complete && !item.closed) this.#finished.add(call)
  }

  /** @param status of the open item. @param whole status of calls with complete arguments. @param cut of other calls. */
  close(status: ItemStatus, whole: ItemStatus, cut: ItemStatus): void {
    this.#open?.close(status)
    this.#open = null
    for (const call of this.#calls.values()) this.#closeCall(call, call.complete ? whole : cut)
  }

  #closeCall(call: CallItem, status: ItemStatus): void {
    if (call.closed) return
    call.close(status)
    if (call.purpose === 'approval' && !call.cut) this.#requestApproval(call)
  }

  /** The id of the request is bound to the arguments, so that its item begins when they are complete. */
  #requestApproval({ callId, upstreamName, arguments: json }: CallItem): void {
    const { nameOf, approvalIdOf } = this.#context
    const { itemType, members } = nameOf(upstreamName)
    const request = { id: approvalIdOf(members, json), call_id: callId, ...members, arguments: json }
    this.#begin(itemType, request).close('completed')
  }

  #message(): OpenMessage {
    if (this.#open instanceof OpenMessage) return this.#open
    this.#closeFinished()
    const message = new OpenMessage(this.#begin('message', { role: 'assistant' }))
    this.#open = message
    return message
  }

  #reasoning(): OpenReasoning {
    if (this.#open instanceof OpenReasoning) return this.#open
    this.#closeFinished()
    const reasoning = new OpenReasoning(this.#begin('reasoning', {}), this.#origin, this.#context.seal)
    this.reasoning.push(reasoning)
    this.#open = reasoning
    return reasoning
  }

  #begin(type: string, members: Members): OpenItem {
    const { writer, output } = this.#context
    const open = OpenItem.begin(writer, output.length, type, members, this.turn)
    output.push(open.item)
    return open
  }

  /** Clients act on a call when it is done, so that a complete one is closed before the end of the turn. */
  #closeFinished(): void {
    this.#open?.close('completed')
    this.#open = null
    const finished = [...this.#finished].sort((left, right) => left - right)
    this.#finished.clear()
    for (const number of finished) {
      const call = this.#calls.get(number)
      // Text after the complete arguments may begin another value.
      if (call?.complete) this.#closeCall(call, 'completed')
    }
  }
}
