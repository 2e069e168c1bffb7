import type { ItemStatus, OutputItem } from '../../wire/responses.ts'
import type { GrowingText, ItemEvents, Members, PartForm } from '../item-types/item-type.ts'
import { ITEM_TYPES, newItemId } from '../item-types/item-types.ts'
import { DeltaWriter, type EventWriter } from './event-writer.ts'

/** How a response tells items of a type. @throws for a type that responses do not make. */
export function eventsOf(type: string): ItemEvents {
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
  deltas: DeltaWriter | null
}

/** How far an item has come: what is to be known to go on with it. */
interface Progress {
  /** Whether the end of the item's own text was told. */
  textEnded: boolean
  openPart: OpenPart | null
}

/**
 * An item of the output while it is written: keeps the item and writes its events, as the table of item types says.
 * After a restart `retold` brings it to where it was, so that it is closed as it would have been.
 */
export class OpenItem {
  readonly item: OutputItem
  readonly #events: ItemEvents
  readonly #writer: EventWriter
  readonly #outputIndex: number
  readonly #progress: Progress = { textEnded: false, openPart: null }
  #deltas: DeltaWriter | null = null
  #closed = false

  /** @param item as its first event says it. */
  constructor(writer: EventWriter, outputIndex: number, item: OutputItem) {
    this.item = item
    this.#events = eventsOf(item.type)
    this.#writer = writer
    this.#outputIndex = outputIndex
  }

  /** Begins a new item and tells that it is there. @param members besides id, type and status. */
  static begin(writer: EventWriter, outputIndex: number, type: string, members: Members): OpenItem {
    const { text, list } = eventsOf(type)
    const empty = { ...(text && { [text.member]: '' }), ...(list && { [list.member]: [] }) }
    const item = { id: newItemId(type), type, status: 'in_progress', ...members, ...empty }
    const open = new OpenItem(writer, outputIndex, item as unknown as OutputItem)
    writer.write('response.output_item.added', { output_index: outputIndex, item })
    return open
  }

  get closed(): boolean {
    return this.#closed
  }

  /** The part that is being written; null between two. */
  get part(): Members | null {
    return this.#progress.openPart?.part ?? null
  }

  /** Adds to the text of the item itself. */
  grow(delta: string): void {
    const { text } = this.#events
    if (!text) return
    append(this.#members, text.member, delta)
    this.#deltas ??= new DeltaWriter(this.#writer, text.delta, this.#place, text.deltaMembers)
    this.#deltas.write(delta)
  }

  /** Tells that the text of the item itself is whole. */
  endText(): void {
    const { text } = this.#events
    if (!text || this.#progress.textEnded) return
    this.#progress.textEnded = true
    this.#writer.write(text.done, { ...this.#place, ...endOf(text, this.#members) })
  }

  openPart(type: string): void {
    const { list } = this.#events
    const form = list?.parts[type]
    if (!list || !form) throw new Error(`no part of ${this.item.type} is a ${type}`)
    const parts = this.#parts
    const part: Members = { type, ...structuredClone(form.empty) }
    const index = parts.length
    parts.push(part)
    const deltas = new DeltaWriter(this.#writer, form.delta, this.#placeOf(index), form.deltaMembers)
    this.#progress.openPart = { part, index, form, textEnded: false, deltas }
    this.#writer.write(list.added, { ...this.#placeOf(index), part })
  }

  growPart(delta: string): void {
    const open = this.#progress.openPart
    if (!open) return
    append(open.part, open.form.member, delta)
    open.deltas?.write(delta)
  }

  /** Notes something at the part that is open. */
  note(value: unknown): void {
    const open = this.#progress.openPart
    const notes = this.#events.list?.notes
    if (!open || !notes) return
    const noted = open.part[notes.member] as unknown[]
    const place = { ...this.#placeOf(open.index), [notes.index]: noted.length }
    this.#writer.write(notes.event, { ...place, [notes.value]: value })
    noted.push(value)
  }

  closePart(status: ItemStatus): void {
    const open = this.#progress.openPart
    const { list } = this.#events
    if (!open || !list) return
    this.#progress.openPart = null
    const place = this.#placeOf(open.index)
    if (!open.textEnded) this.#writer.write(open.form.done, { ...place, ...endOf(open.form, open.part) })
    const cut = list.tellsCut && status === 'incomplete' ? { status } : {}
    this.#writer.write(list.done, { ...place, part: open.part, ...cut })
  }

  /** Ends what is open of the item, and the item. @param late members that it has from now on. */
  close(status: ItemStatus | 'failed', late: Members = {}): void {
    if (this.#closed) return
    this.closePart(status === 'failed' ? 'incomplete' : status)
    this.endText()
    this.#closed = true
    Object.assign(this.item, { status, ...late })
    this.#writer.write('response.output_item.done', { output_index: this.#outputIndex, item: this.item })
  }

  /** Takes over an event of this item that was told before a restart. Nothing is told again. */
  retold(event: Members & { type: string }): void {
    const { text, list } = this.#events
    if (event.type === 'response.output_item.done') {
      Object.assign(this.item, event.item)
      this.#closed = true
    } else if (event.type === text?.delta) append(this.#members, text.member, event.delta as string)
    else if (event.type === text?.done) this.#progress.textEnded = true
    else if (event.type === list?.added) this.#partRetold(event.part as Members)
    else if (event.type === list?.done) this.#progress.openPart = null
    else this.#partEventRetold(event)
  }

  #partRetold(part: Members): void {
    const form = this.#events.list?.parts[String(part.type)]
    if (!form) return
    const index = this.#parts.push(part) - 1
    this.#progress.openPart = { part, index, form, textEnded: false, deltas: null }
  }

  #partEventRetold(event: Members & { type: string }): void {
    const open = this.#progress.openPart
    if (!open) return
    const notes = this.#events.list?.notes
    if (event.type === open.form.delta) append(open.part, open.form.member, event.delta as string)
    else if (event.type === open.form.done) open.textEnded = true
    else if (event.type === notes?.event) (open.part[notes.member] as unknown[]).push(event[notes.value])
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

const append = (holder: Members, member: string, text: string): void => {
  holder[member] = ((holder[member] as string | undefined) ?? '') + text
}

/** What the event of the end of a text says. */
const endOf = ({ member, doneMembers }: GrowingText, holder: Members): Members => ({
  [member]: holder[member],
  ...doneMembers?.(holder),
})

/** Writes the events of an item whose own are gone: it opens and closes as it did live, without deltas. */
export function writeStoredItem(writer: EventWriter, item: OutputItem, outputIndex: number): void {
  const { text, list, late = [] } = eventsOf(item.type)
  const members = item as unknown as Members
  const begun = Object.fromEntries(Object.entries(members).filter(([name]) => !late.includes(name)))
  const empty = { ...(text && { [text.member]: '' }), ...(list && { [list.member]: [] }) }
  const added = { ...begun, status: 'in_progress', ...empty }
  writer.write('response.output_item.added', { output_index: outputIndex, item: added })
  const parts = list?.replayed ? (members[list.member] as Members[]) : []
  for (const [index, part] of parts.entries()) {
    const form = list?.parts[String(part.type)]
    if (!list || !form) continue
    const place = { item_id: item.id, output_index: outputIndex, [list.index]: index }
    writer.write(list.added, { ...place, part: { ...part, ...form.empty } })
    writer.write(form.done, { ...place, ...endOf(form, part) })
    writer.write(list.done, { ...place, part })
  }
  writer.write('response.output_item.done', { output_index: outputIndex, item })
}
