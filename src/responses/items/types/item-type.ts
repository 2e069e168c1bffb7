import type { Direction } from '../../../dlp/types.ts'
import type { ContextItem, Members } from '../../model/types.ts'
import type { SealOpener } from '../sealed-content.ts'
import type { InputItemForm } from './input-item.ts'
import type { ItemScan } from './item-scan.ts'

/**
 * One type of item of the Responses surface: an entry of the table in `item-types.ts`. Live events, recovery, replay from
 * storage, redaction and model requests follow from it, so that a new type needs no other change.
 */
export interface ItemType {
  /** Prefix of its ids, as in `msg_…`. */
  prefix: string
  /** Checks an item of a request. @throws ApiError invalid_request that names the member. */
  read: (item: ItemScan) => InputItemForm
  /**
   * The direction of one of its texts for data-loss prevention.
   * @param member of the item that has the text. @param role of the item, empty without one.
   */
  direction: (member: string, role: string) => Direction
  /** Form of the item in a model request. */
  toModel: ModelForm
  /** The output item of a call that the caller executes. */
  answer?: CallAnswer
  /** Whether truncation keeps or drops the item together with the item after it. */
  precedes?: true
  /** Members that are always stored, and returned only if `include` requests them. The item has them from its end on. */
  includable?: readonly IncludableMember[]
  /** The one of these members that this service seals. */
  sealedMember?: string
  /** Events of the item in a response; undefined for types that occur in requests only. */
  events?: ItemEvents
  /** The status of an item whose call failed, where the official type has no `failed`. */
  failedStatus?: 'incomplete'
  /** Converts the whole JSON of a call into the text of its item; undefined where the text is that JSON. */
  textOfCall?: (json: string) => string
}

/**
 * `itself`: the item as it is stored, which the gateway's operation `responses` translates. `nothing`: models do not get
 * it. A function returns the items that replace it.
 */
export type ModelForm = 'itself' | 'nothing' | ((item: ContextItem, open: SealOpener) => ModelItems)

/** The items that replace one item, as JSON. */
export interface ModelItems {
  items: Uint8Array[]
  /** Results of calls. They follow the last item of the turn. */
  results: Uint8Array[]
}

/** A member that callers get on request. */
export interface IncludableMember {
  /** Path of a member of the item, or of one of its members. */
  path: readonly [member: string, inner?: string]
  /** The value of `include`. */
  include: string
}

/** The output item of a call, and the names of both in error messages. */
export interface CallAnswer {
  /** Type of the output item. */
  type: string
  /** Name of the call in errors, such as `function call`. */
  callName: string
  /** Name of the output in errors, such as `function call output`. */
  outputName: string
}

/** A text of an item or of a part that is emitted in deltas. */
export interface DeltaText {
  /** Member with the text. */
  member: string
  /** Types of its events. */
  delta: string
  done: string
  /** Members of each delta besides the text. */
  deltaMembers?: Members
  /** Members of the done event besides the text. @param holder the item or part with the text. */
  doneMembers?: (holder: Members) => Members
}

/** A type of part. */
export interface PartForm extends DeltaText {
  /** Members of a new part. */
  empty: Members
}

/** The parts of an item, which open and close with events of their own. */
export interface PartList {
  /** Member of the item with the list. */
  member: string
  /** Member of the events with the index of a part. */
  index: string
  /** Types of their events. */
  added: string
  done: string
  /** Forms of the parts, by type. */
  parts: Readonly<Record<string, PartForm>>
  /** Annotations of an open part: the member with their list, the event, and the members of that event. */
  annotations?: { member: string; event: string; index: string; value: string }
  /** Whether the done event of a part that was cut off has a status. */
  cutStatus?: true
}

/** The events of an item between its `output_item.added` and its `output_item.done`. */
export interface ItemEvents {
  text?: DeltaText
  list?: PartList
  /** Members of a new item, besides those with its text and its parts. */
  initialMembers?: Members
  /** Members that an item has, or that change, at its end. */
  finalMembers?: readonly string[]
}
