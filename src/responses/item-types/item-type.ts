import type { Direction } from '../../governance/dlp/types.ts'
import type { ContextItem } from '../types.ts'
import type { GivenForm } from './given-item.ts'
import type { ItemScan } from './item-scan.ts'
import type { ReasoningSecret } from './reasoning-secret.ts'

/**
 * Everything that the Responses surface knows of one type of item. An entry of the table in `item-types.ts`: the events
 * of a running response, its recovery, its replay from storage, the reading under policies and the body of a turn follow
 * from it, so that a new type touches nothing else.
 */
export interface ItemType {
  /** Of its ids, as in `msg_…`. */
  prefix: string
  /** Checks an item of a request. @throws ApiError invalid_request that names the member. */
  read: (item: ItemScan) => GivenForm
  /**
   * What a text of it is to data-loss prevention.
   * @param member of the item that the text stands in. @param role of the item, empty without one.
   */
  direction: (member: string, role: string) => Direction
  /** What a model is given of it. */
  toModel: ModelForm
  /** Of a call that the caller answers. */
  answer?: CallAnswer
  /** Goes together with the item after it when a context is cut. */
  precedes?: true
  /**
   * A member whose content is sealed by us: always stored, and shown to the owner only where `include` asks for it.
   * Its content comes with the end of the item.
   */
  sealedMember?: string
  /** How a response tells it; absent for types that only callers bring in. */
  events?: ItemEvents
  /** Of a call: its text, made of the whole JSON that a model wrote; absent where it is that JSON. */
  textOfCall?: (json: string) => string
}

/**
 * `itself`: the item as it is stored, in the form that the gateway's operation `responses` translates. `nothing`: it is
 * kept for its owner. A function gives the items that stand in its place.
 * @param open opens what is sealed, null where that cannot be done.
 */
export type ModelForm =
  | 'itself'
  | 'nothing'
  | ((item: ContextItem, open: (sealed: string) => ReasoningSecret | null) => ModelItems)

/** Items in place of one, as JSON. */
export interface ModelItems {
  items: Uint8Array[]
  /** What calls came to: it follows the last of the calls that stand together. */
  results: Uint8Array[]
}

/** Who answers a call, and how messages to the caller name it. */
export interface CallAnswer {
  /** Type of the item that answers it. */
  type: string
  /** Such as `function call`. */
  callName: string
  /** Such as `function call output`. */
  outputName: string
}

/** An item or a part as the members that it has. */
export type Members = Record<string, unknown>

/** A text of an item, or of a part of one, that is told as it grows. */
export interface GrowingText {
  /** Member that holds it. */
  member: string
  /** Types of its events. */
  delta: string
  done: string
  /** What each delta has besides the text. */
  deltaMembers?: Members
  /** What the event of its end has besides the text. @param holder the item or part with the text. */
  doneMembers?: (holder: Members) => Members
}

/** A kind of part: its text, and what it is before it has any. */
export interface PartForm extends GrowingText {
  empty: Members
}

/** Parts of an item, which open and close with events of their own. */
export interface PartList {
  /** Member of the item that holds them. */
  member: string
  /** Member of events that counts them. */
  index: string
  /** Types of their events. */
  added: string
  done: string
  /** By the type of the part. */
  parts: Readonly<Record<string, PartForm>>
  /** What is noted at a part while it is open: its list, and the event with its members. */
  notes?: { member: string; event: string; index: string; value: string }
  /** Whether the event of the end says that a part was cut off. */
  tellsCut?: true
  /** Whether a stored item is replayed part by part: accumulators of official clients build messages from their parts. */
  replayed?: true
}

/** The events of an item between its `output_item.added` and its `output_item.done`. */
export interface ItemEvents {
  text?: GrowingText
  list?: PartList
  /** Members that an item has only at its end. */
  late?: readonly string[]
}
