import { checkItem, isRecord, type Report, type Rule, sameJson } from './conformance-rules.ts'

type Data = Record<string, unknown>
type PartList = 'content' | 'summary'

interface Part {
  type: unknown
  /** Joined from deltas; null when its beginning was not seen. */
  text: string | null
  annotations: unknown[]
  textDone: boolean
  done: Data | null
}

interface Item {
  id: unknown
  type: unknown
  callId: unknown
  name: unknown
  /** Its beginning was not seen. */
  adopted: boolean
  parts: Map<number, Part>
  /** Arguments or input, joined from deltas; null when there are none or their beginning was not seen. */
  argued: string | null
  arguedDone: boolean
  done: Data | null
}

interface ItemOptions {
  /** Items may have begun before the first event. */
  partial: boolean
  /** Items come whole, without deltas of what is in them. */
  condensed: boolean
}

/** The member of an item or a part that deltas make up. */
const TEXTS: Record<string, string> = { output_text: 'text', refusal: 'refusal', summary_text: 'text' }
const ARGUED: Record<string, string> = {
  function_call: 'arguments',
  mcp_call: 'arguments',
  service_call: 'arguments',
  custom_tool_call: 'input',
}
const END_STATUSES = ['completed', 'incomplete']
/** Calls that run at the gateway, which can fail there. */
const HOSTED: ReadonlySet<unknown> = new Set(['mcp_call', 'service_call'])

/** Follows the items of a stream: their order, places and texts. Takes payloads whose members have been checked. */
export class ItemChecks {
  readonly #report: Report
  readonly #options: ItemOptions
  readonly #items = new Map<number, Item>()
  readonly #ids = new Set<unknown>()

  constructor(report: Report, options: ItemOptions) {
    this.#report = report
    this.#options = options
  }

  added(data: Data): void {
    const index = Number(data.output_index)
    const item = data.item as Data
    const next = Math.max(-1, ...this.#items.keys()) + 1
    // Before a tail, others may have begun.
    const placed = this.#options.partial ? index >= next : index === next
    this.#expect(placed, 'output-index', `item at ${index}, expected ${next}`)
    checkItem(item, this.#report)
    this.#checkNew(item)
    const argued = ARGUED[String(item.type)]
    this.#checkEmpty(item, argued)
    const joined = argued && !this.#options.condensed ? '' : null
    this.#items.set(index, { ...newItem(item, false), argued: joined })
  }

  done(data: Data): void {
    const item = this.#known(data)
    const told = data.item as Data
    if (!item || !this.#expect(item.done === null, 'item-order', 'an item is done twice')) return
    checkItem(told, this.#report)
    this.#expect(
      END_STATUSES.includes(String(told.status)) || (told.status === 'failed' && HOSTED.has(told.type)),
      'item-members',
      `done with status ${told.status}`,
    )
    if (item.adopted) {
      item.type ??= told.type
      item.callId ??= told.call_id
    }
    const same = item.type === told.type && item.callId === told.call_id
    this.#expect(same && this.#named(item, told.id), 'item-identity', `${item.id} changed`)
    item.done = told
    this.#checkContent(item, told)
  }

  partAdded(data: Data, list: PartList): void {
    const item = this.#open(data)
    if (!item) return
    const index = partIndex(data, list)
    const part = data.part as Data
    const next = Math.max(-1, ...item.parts.keys()) + 1
    const unknownStart = item.adopted && item.parts.size === 0
    this.#expect(unknownStart || index === next, 'part-index', `part at ${index}, expected ${next}`)
    this.#expect([...item.parts.values()].every(isDone), 'part-order', 'a part begins in another part')
    const empty = part[TEXTS[String(part.type)] ?? ''] === '' && lengthOf(part.annotations) === 0
    this.#expect(empty, 'added-empty', 'a part begins with content')
    const text = this.#options.condensed ? null : ''
    item.parts.set(index, { type: part.type, text, annotations: [], textDone: false, done: null })
  }

  delta(data: Data, list: PartList, type: string): void {
    const part = this.#openPart(data, list, type)
    if (part && part.text !== null) part.text += String(data.delta)
  }

  textDone(data: Data, list: PartList, type: string): void {
    const part = this.#openPart(data, list, type)
    if (!part) return
    part.textDone = true
    this.#checkText(part.text, data[TEXTS[type] ?? ''], `${type}.done`)
    part.text = String(data[TEXTS[type] ?? ''])
  }

  partDone(data: Data, list: PartList): void {
    const item = this.#open(data)
    const part = item && this.#part(item, partIndex(data, list), undefined)
    if (!part) return
    const told = data.part as Data
    const ordered = part.done === null && (part.textDone || item.adopted)
    if (!this.#expect(ordered, 'part-order', 'a part is done twice or before its text')) return
    this.#checkText(part.text, told[TEXTS[String(told.type)] ?? ''], 'the part that is done')
    if (!item.adopted && !this.#options.condensed) {
      const annotated = sameJson(told.annotations ?? [], part.annotations)
      this.#expect(annotated, 'annotations', 'a part has other annotations than were told')
    }
    part.done = told
  }

  annotation(data: Data): void {
    const part = this.#openPart(data, 'content', 'output_text')
    if (!part) return
    const next = part.annotations.length
    const placed = part.text === null || data.annotation_index === next
    this.#expect(placed, 'annotations', `annotation at ${data.annotation_index}, expected ${next}`)
    part.annotations.push(data.annotation)
  }

  argument(data: Data, type: string): void {
    const item = this.#openArguments(data, type)
    if (item && item.argued !== null) item.argued += String(data.delta)
  }

  argumentsDone(data: Data, type: string): void {
    const item = this.#openArguments(data, type)
    if (!item) return
    item.arguedDone = true
    const told = data[ARGUED[type] ?? '']
    this.#checkText(item.argued, told, 'done arguments')
    item.argued = String(told)
    if (type !== 'function_call' || item.adopted) return
    const named = data.name === undefined || data.name === item.name
    this.#expect(named, 'item-identity', `${item.name} is done as ${data.name}`)
  }

  /** At the end: everything is done, and the response has it all. @param output of the last response object. */
  end(output: unknown[]): void {
    const streamed = [...this.#items].sort(([left], [right]) => left - right)
    for (const [position, [index, item]] of streamed.entries()) {
      if (!this.#expect(item.done !== null, 'item-order', `item ${index} is never done`)) continue
      const place = this.#options.partial ? index : position
      this.#expect(
        sameJson(item.done, output[place]),
        'snapshot',
        `output[${place}] is not what was streamed`,
      )
    }
    if (this.#options.partial) return
    const { length } = streamed
    this.#expect(output.length === length, 'snapshot', `${output.length} items, ${length} streamed`)
  }

  #expect(condition: boolean, rule: Rule, detail: string): boolean {
    if (!condition) this.#report(rule, detail)
    return condition
  }

  #checkNew(item: Data): void {
    const call = item.call_id === undefined ? [] : [`call ${item.type} ${item.call_id}`]
    for (const key of [`id ${item.id}`, ...call]) {
      this.#expect(!this.#ids.has(key), 'item-identity', `${key} is there twice`)
      this.#ids.add(key)
    }
  }

  #checkEmpty(item: Data, argued: string | undefined): void {
    const empty =
      item.status === 'in_progress' &&
      lengthOf(item.content) === 0 &&
      lengthOf(item.summary) === 0 &&
      (argued === undefined || item[argued] === '')
    this.#expect(empty, 'added-empty', `${item.id} begins with content or as ${item.status}`)
  }

  #checkContent(item: Item, told: Data): void {
    const parts = [...item.parts.values()]
    this.#expect(parts.every(isDone), 'part-order', 'an item is done before its parts')
    const argued = ARGUED[String(item.type)]
    if (argued && item.argued !== null) {
      this.#expect(item.arguedDone, 'part-order', 'a call is done before its arguments')
      this.#checkText(item.argued, told[argued], 'the call that is done')
    }
    if (item.adopted || (this.#options.condensed && parts.length === 0)) return
    const list = (told.type === 'reasoning' ? told.summary : told.content) ?? []
    const done = parts.map((part) => part.done)
    if (done.every((part) => part !== null)) {
      this.#expect(sameJson(list, done), 'text', `${item.id} has other parts than were told`)
    }
  }

  #checkText(joined: string | null, told: unknown, what: string): void {
    if (joined === null) return
    const detail = `${what} is ${JSON.stringify(told)}, the deltas ${JSON.stringify(joined)}`
    this.#expect(joined === told, 'text', detail)
  }

  /** The item of an event, by its place. */
  #known(data: Data): Item | null {
    const index = Number(data.output_index)
    const item = this.#items.get(index)
    if (item) return item
    if (!this.#expect(this.#options.partial, 'item-order', `no item at ${index}`)) return null
    const told = isRecord(data.item) ? data.item : { id: data.item_id }
    const adopted = newItem(told, true)
    this.#items.set(index, adopted)
    return adopted
  }

  #open(data: Data): Item | null {
    const item = this.#known(data)
    if (!item || !this.#expect(item.done === null, 'item-order', `${item?.id} was done before`)) return null
    const placed = this.#named(item, data.item_id)
    return this.#expect(placed, 'output-index', `${data.item_id} at the place of ${item.id}`) ? item : null
  }

  #named(item: Item, id: unknown): boolean {
    item.id ??= id
    return item.id === id
  }

  #part(item: Item, index: number, type: string | undefined): Part | null {
    const part = item.parts.get(index)
    if (part) return part
    if (!this.#expect(item.adopted, 'part-order', `no part ${index} in ${item.id}`)) return null
    const adopted = { type, text: null, annotations: [], textDone: false, done: null }
    item.parts.set(index, adopted)
    return adopted
  }

  #openPart(data: Data, list: PartList, type: string): Part | null {
    const item = this.#open(data)
    const part = item && this.#part(item, partIndex(data, list), type)
    if (!part) return null
    const open = !part.textDone && part.done === null && (part.type ?? type) === type
    return this.#expect(open, 'part-order', `${data.type} for a part that takes none`) ? part : null
  }

  #openArguments(data: Data, type: string): Item | null {
    const item = this.#open(data)
    if (!item) return null
    item.type ??= type
    const typed = this.#expect(item.type === type, 'item-identity', `${data.type} for a ${item.type}`)
    return typed && this.#expect(!item.arguedDone, 'part-order', 'arguments after their end') ? item : null
  }
}

const newItem = (item: Data, adopted: boolean): Item => ({
  id: item.id,
  type: item.type,
  callId: item.call_id,
  name: item.name,
  adopted,
  parts: new Map(),
  argued: null,
  arguedDone: false,
  done: null,
})

const isDone = (part: Part) => part.done !== null
const lengthOf = (list: unknown) => (Array.isArray(list) ? list.length : 0)
const partIndex = (data: Data, list: PartList) =>
  Number(list === 'summary' ? data.summary_index : data.content_index)
