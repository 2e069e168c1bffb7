import { JsonExtent } from '../../gateway/translation/events/json-extent.ts'
import type { ItemStatus } from '../../wire/responses.ts'
import { type CallPurpose, runsHere } from '../engine/tool-rules.ts'
import type { Members } from '../item-types/item-type.ts'
import { ITEM_TYPES } from '../item-types/item-types.ts'
import type { OpenItem } from './open-item.ts'

/** A tool as the caller knows it. */
export interface CalledTool {
  /** Of the items that its calls become. */
  itemType: string
  /** What these say of it, such as its name. */
  members: Members
}

/** A tool call while its arguments are written, told as an item or not. */
export class CallItem {
  readonly callId: string
  readonly upstreamName: string
  readonly purpose: CallPurpose
  /** Null when it is not told. */
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

  /** Whether its arguments are a whole JSON value. */
  get complete(): boolean {
    return this.#extent.complete
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Whether it ended before its arguments did. */
  get cut(): boolean {
    return this.#cut
  }

  /** JSON: callers parse it, so that a call without arguments has an empty object. */
  get arguments(): string {
    return this.#arguments === '' ? '{}' : this.#arguments
  }

  /** Adds arguments. What follows a call that was closed as complete means nothing. */
  argue(json: string): void {
    if (json === '' || this.#closed) return
    this.#arguments += json
    this.#extent.push(json)
    if (!this.#textOf) this.item?.grow(json)
  }

  /** The item of a tool that runs on this side stays open until it has its result, unless the call was cut off. */
  close(status: ItemStatus): void {
    if (this.#closed) return
    if (this.#arguments === '') this.argue('{}')
    this.#closed = true
    this.#cut = status === 'incomplete'
    const text = this.#textOf?.(this.#arguments)
    if (text) this.item?.grow(text)
    if (runsHere(this.purpose) && !this.#cut) this.item?.endText()
    else this.item?.close(status)
  }
}
