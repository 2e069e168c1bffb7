import type { StreamEvent } from '../../harness/conformance-rules.ts'

type Data = Record<string, unknown>

/** A stream that is broken in one way, which is written down as edits of one that holds. */
export class BrokenStream {
  events: StreamEvent[]

  constructor(events: readonly StreamEvent[]) {
    this.events = structuredClone([...events])
  }

  /** The payload of the n-th event of a type, to be changed. */
  data(type: string, nth = 0): Data {
    return this.#event(type, nth).data
  }

  /** The last event's response. */
  get last(): Data {
    return this.events.at(-1)?.data.response as Data
  }

  /** Changes an item in all its events: added, done, and in the final response. */
  item(index: number, change: (item: Data) => void): this {
    for (const { data } of this.events)
      if (data.output_index === index && data.item) change(data.item as Data)
    return this.final(index, change, false)
  }

  /** Changes an item as it is done, and in the end. */
  final(index: number, change: (item: Data) => void, done = true): this {
    for (const { event, data } of this.events) {
      if (done && event.endsWith('output_item.done') && data.output_index === index) change(data.item as Data)
    }
    change((this.last.output as Data[])[index] as Data)
    return this
  }

  /** Changes each payload that is of an item. */
  ofItem(index: number, change: (data: Data) => void): this {
    for (const { data } of this.events) if (data.output_index === index) change(data)
    return this
  }

  drop(type: string, nth = 0): this {
    const dropped = this.#event(type, nth)
    this.events = this.events.filter((event) => event !== dropped)
    return this.#renumber()
  }

  /** Puts a copy of an event, with some members changed, after another one or itself. */
  repeat(type: string, nth: number, after: [type: string, nth: number], change: Data = {}): this {
    const copy = structuredClone(this.#event(type, nth))
    Object.assign(copy.data, change)
    copy.event = String(copy.data.type)
    this.events.splice(this.events.indexOf(this.#event(...after)) + 1, 0, copy)
    return this.#renumber()
  }

  /** Moves an event behind another one. */
  move(type: string, nth: number, after: [type: string, nth: number]): this {
    const moved = this.#event(type, nth)
    const target = this.#event(...after)
    this.events = this.events.filter((event) => event !== moved)
    this.events.splice(this.events.indexOf(target) + 1, 0, moved)
    return this.#renumber()
  }

  #event(type: string, nth: number): StreamEvent {
    const found = this.events.filter(({ event }) => event === type || event === `response.${type}`)[nth]
    if (!found) throw new Error(`no ${type} ${nth}`)
    return found
  }

  #renumber(): this {
    for (const [index, event] of this.events.entries()) {
      event.id = String(index + 1)
      event.data.sequence_number = index + 1
    }
    return this
  }
}
