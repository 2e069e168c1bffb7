import type { ItemStatus, OutputItem } from '../../wire/responses.ts'
import type { DeltaText, ItemEvents, PartForm, PartList } from '../items/types/item-type.ts'
import { ITEM_TYPES, newItemId } from '../items/types/item-types.ts'
import type { Members } from '../model/types.ts'
import { DeltaWriter, type EventWriter } from './event-writer.ts'

/** The events of items of a type. @throws for a type that responses do not generate. */
function eventsOf(type: string): ItemEvents {
  const events = ITEM_TYPES.get(type)?.events
  if (!events) throw new Error(`a response makes no items of the type ${type}`)
  return events
}

/** A part that is not closed. */
interface OpenPart {
  part: Members
  index: number
  form: PartForm
  textEnded: boolean
  /** Null after a restart: no deltas follow then. */
  deltas: DeltaWriter | null
}

/**
 * An item of the output while it is generated. Builds the item and writes its events by the table of item types. After a
 * restart, `replay` rebuilds its state from its stored events.
 */
export class OpenItem {
  readonly item: OutputItem
  readonly #events: ItemEvents
  readonly #writer: EventWriter
  readonly #outputIndex: number
  #textEnded = false
  #openPart: OpenPart | null = null
  #deltas: DeltaWriter | null = null
  #closed = false

  /** @param item as in its first event. */
  constructor(writer: EventWriter, outputIndex: number, item: OutputItem) {
    this.item = item
    this.#events = eventsOf(item.type)
    this.#writer = writer
    this.#outputIndex = outputIndex
  }

  /**
   * Creates an item and writes its first event.
   * @param members besides id, type and status. @param turn absent for an item that no model generated.
   */
  static begin(
    writer: EventWriter,
    outputIndex: number,
    type: string,
    members: Members,
    turn?: string,
  ): OpenItem {
    const item = {
      id: newItemId(type, turn),
      type,
      status: 'in_progress',
      ...members,
      ...emptyMembers(eventsOf(type)),
    }
    const open = new OpenItem(writer, outputIndex, item as unknown as OutputItem)
    writer.write('response.output_item.added', { output_index: outputIndex, item })
    return open
  }

  get closed(): boolean {
    return this.#closed
  }

  /** The open part; null between two parts. */
  get part(): Members | null {
    return this.#openPart?.part ?? null
  }

  /** Appends to the item's own text. */
  append(delta: string): void {
    const { text } = this.#events
    if (!text) return
    appendText(this.#members, text.member, delta)
    this.#deltas ??= new DeltaWriter(this.#writer, text.delta, this.#place, text.deltaMembers)
    this.#deltas.write(delta)
  }

  /** Writes that the item's own text is complete. */
  endText(): void {
    const { text } = this.#events
    if (!text || this.#textEnded) return
    this.#textEnded = true
    this.#writer.write(text.done, { ...this.#place, ...doneMembers(text, this.#members) })
  }

  openPart(type: string): void {
    const { list } = this.#events
    const form = list?.parts[type]
    if (!list || !form) throw new Error(`no part of ${this.item.type} is a ${type}`)
    const part: Members = { type, ...structuredClone(form.empty) }
    const index = this.#parts.push(part) - 1
    const deltas = new DeltaWriter(this.#writer, form.delta, this.#placeOf(index), form.deltaMembers)
    this.#openPart = { part, index, form, textEnded: false, deltas }
    this.#writer.write(list.added, { ...this.#placeOf(index), part })
  }

  appendToPart(delta: string): void {
    const open = this.#openPart
    if (!open) return
    appendText(open.part, open.form.member, delta)
    open.deltas?.write(delta)
  }

  /** Adds an annotation to the open part. */
  annotate(value: unknown): void {
    const open = this.#openPart
    const annotations = this.#events.list?.annotations
    if (!open || !annotations) return
    const list = open.part[annotations.member] as unknown[]
    const place = { ...this.#placeOf(open.index), [annotations.index]: list.length }
    this.#writer.write(annotations.event, { ...place, [annotations.value]: value })
    list.push(value)
  }

  closePart(status: ItemStatus): void {
    const open = this.#openPart
    const { list } = this.#events
    if (!open || !list) return
    this.#openPart = null
    const place = this.#placeOf(open.index)
    if (!open.textEnded) {
      this.#writer.write(open.form.done, { ...place, ...doneMembers(open.form, open.part) })
    }
    const cut = list.cutStatus && status === 'incomplete' ? { status } : {}
    this.#writer.write(list.done, { ...place, part: open.part, ...cut })
  }

  /** Closes the open part and the item. @param members that the item has from its end on. */
  close(status: ItemStatus | 'failed', members: Members = {}): void {
    if (this.#closed) return
    this.closePart(status === 'failed' ? 'incomplete' : status)
    this.endText()
    this.#closed = true
    Object.assign(this.item, { status, ...members })
    this.#writer.write('response.output_item.done', { output_index: this.#outputIndex, item: this.item })
  }

  /** Applies a stored event of this item after a restart. Writes nothing. */
  replay(event: Members & { type: string }): void {
    const { text, list } = this.#events
    if (event.type === 'response.output_item.done') {
      Object.assign(this.item, event.item)
      this.#closed = true
    } else if (event.type === text?.delta) appendText(this.#members, text.member, event.delta as string)
    else if (event.type === text?.done) this.#textEnded = true
    else if (event.type === list?.added) this.#replayPart(event.part as Members)
    else if (event.type === list?.done) this.#openPart = null
    else this.#replayPartEvent(event)
  }

  #replayPart(part: Members): void {
    const form = this.#events.list?.parts[String(part.type)]
    if (!form) return
    const index = this.#parts.push(part) - 1
    this.#openPart = { part, index, form, textEnded: false, deltas: null }
  }

  #replayPartEvent(event: Members & { type: string }): void {
    const open = this.#openPart
    if (!open) return
    const annotations = this.#events.list?.annotations
    if (event.type === open.form.delta) appendText(open.part, open.form.member, event.delta as string)
    else if (event.type === open.form.done) open.textEnded = true
    else if (event.type === annotations?.event) {
      ;(open.part[annotations.member] as unknown[]).push(event[annotations.value])
    }
  }

  get #members(): Members {
    return this.item as unknown as Members
  }

  get #parts(): Members[] {
    return this.#members[this.#events.list?.member ?? ''] as Members[]
  }

  get #place() {
    return { item_id: this.item.id, output_index: this.#outputIndex }
  }

  #placeOf(part: number) {
    return { ...this.#place, [this.#events.list?.index ?? '']: part }
  }
}

const appendText = (holder: Members, member: string, text: string): void => {
  holder[member] = ((holder[member] as string | undefined) ?? '') + text
}

const emptyMembers = ({ text, list, initialMembers }: ItemEvents): Members => ({
  ...initialMembers,
  ...(text && { [text.member]: '' }),
  ...(list && { [list.member]: [] }),
})

/** Members of the event that ends a text. */
const doneMembers = ({ member, doneMembers: more }: DeltaText, holder: Members): Members => ({
  [member]: holder[member],
  ...more?.(holder),
})

/** Writes the events of a stored item, whose own are erased: those that it had live, in their order, without deltas. */
export function writeStoredItem(writer: EventWriter, item: OutputItem, outputIndex: number): void {
  const events = eventsOf(item.type)
  const { text, list, finalMembers = [] } = events
  const members = item as unknown as Members
  const place = { item_id: item.id, output_index: outputIndex }
  const initial = Object.fromEntries(Object.entries(members).filter(([name]) => !finalMembers.includes(name)))
  const added = { ...initial, status: 'in_progress', ...emptyMembers(events) }
  writer.write('response.output_item.added', { output_index: outputIndex, item: added })
  const parts = list ? (members[list.member] as Members[]) : []
  for (const [index, part] of parts.entries()) {
    const cut = list?.cutStatus && item.status === 'incomplete' && index === parts.length - 1
    if (list)
      writeStoredPart(
        writer,
        list,
        { ...place, [list.index]: index },
        part,
        cut ? { status: 'incomplete' } : {},
      )
  }
  if (text) writer.write(text.done, { ...place, ...doneMembers(text, members) })
  writer.write('response.output_item.done', { output_index: outputIndex, item })
}

/** @param cut members of the done event of a part that was cut off. */
function writeStoredPart(
  writer: EventWriter,
  list: PartList,
  place: object,
  part: Members,
  cut: object,
): void {
  const form = list.parts[String(part.type)]
  if (!form) return
  writer.write(list.added, { ...place, part: { ...part, ...form.empty } })
  const { annotations } = list
  const values = annotations ? ((part[annotations.member] as unknown[] | undefined) ?? []) : []
  for (const [index, value] of values.entries()) {
    if (!annotations) continue
    writer.write(annotations.event, { ...place, [annotations.index]: index, [annotations.value]: value })
  }
  writer.write(form.done, { ...place, ...doneMembers(form, part) })
  writer.write(list.done, { ...place, part, ...cut })
}
