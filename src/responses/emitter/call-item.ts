import { JsonExtent } from '../../gateway/translation/events/json-extent.ts'
import type { ItemStatus } from '../../wire/responses.ts'
import { ITEM_TYPES } from '../items/types/item-types.ts'
import { type CallPurpose, isServerSide } from '../tools/tool-rules.ts'
import type { OpenItem } from './open-item.ts'

/** A tool call of a turn. */
export interface ToolCall {
  callId: string
  upstreamName: string
  /** JSON. */
  arguments: string
  purpose: CallPurpose
  /** Whether the turn ended before the arguments were complete. */
  cut: boolean
}

/** A tool call while its arguments are streamed, with or without an item in the output. */
export class CallItem implements ToolCall {
  readonly callId: string
  readonly upstreamName: string
  readonly purpose: CallPurpose
  /** Null for a refused call, which the caller does not see, and for one that needs an approval: the request for it is an item. */
  readonly item: OpenItem | null
  readonly #textOf: ((json: string) => string) | null
  readonly #extent = new JsonExtent()
  #arguments = ''
  #closed = false
  #cut = false

  constructor(callId: string, upstreamName: string, purpose: CallPurpose, item: OpenItem | null) {
    this.callId = callId
    this.upstreamName = upstreamName
    this.purpose = purpose
    this.item = item
    this.#textOf = (item && ITEM_TYPES.get(item.item.type)?.textOfCall) ?? null
  }

  /** Whether the arguments are a whole JSON value. */
  get complete(): boolean {
    return this.#extent.complete
  }

  get closed(): boolean {
    return this.#closed
  }

  get cut(): boolean {
    return this.#cut
  }

  /** Callers parse it as JSON, so that a call without arguments has an empty object. */
  get arguments(): string {
    return this.#arguments === '' ? '{}' : this.#arguments
  }

  /** Arguments that follow after the call was closed are ignored. */
  appendArguments(json: string): void {
    if (json === '' || this.#closed) return
    this.#arguments += json
    this.#extent.push(json)
    if (!this.#textOf) this.item?.append(json)
  }

  /** The item of a server-side tool stays open until it has its result, unless its arguments were cut off. */
  close(status: ItemStatus): void {
    if (this.#closed) return
    if (this.#arguments === '') this.appendArguments('{}')
    this.#closed = true
    this.#cut = status === 'incomplete'
    const text = this.#textOf?.(this.#arguments)
    if (text) this.item?.append(text)
    if (isServerSide(this.purpose) && !this.#cut) this.item?.endText()
    else this.item?.close(status)
  }
}
