import { isUnended } from '../model/phases.ts'
import type { ResponseHead } from '../model/response-head.ts'
import type { HeadSource } from '../storage/live-parts.ts'
import type { Slice } from '../storage/slice.ts'
import type { StoredValues } from './stored-values.ts'

/** Characters of the longest head in the row of its response, of which the platform allows 2 MB. A longer one is a value. */
const MOST_ROW_CHARACTERS = 200_000

/** Small parts of a response that have no row of their own, as JSON: a row is most of what a response costs. */
interface EnclosedParts {
  final?: string
  input?: string
}

/**
 * The head of a response in memory and in its object. Changes of one synchronous run are stored together; `save` stores them at
 * once. In an object of many responses, the head of a live one is stored in commits, with the events and heads of all others,
 * and otherwise in the row of the response.
 */
export class StoredHead implements HeadSource {
  readonly #slice: Slice
  readonly #values: StoredValues
  #head: ResponseHead | null = null
  #enclosed: EnclosedParts = {}
  #isStored: boolean
  /** Whether the head has changes that are not stored. */
  #isChanged = false
  #isScheduled = false
  #hasFailed = false

  constructor(slice: Slice, values: StoredValues) {
    this.#slice = slice
    this.#values = values
    this.#load()
    this.#isStored = this.#head !== null
    const { live } = slice
    if (live) live.head = this
    if (this.#isLive) live?.join()
  }

  /** Null when the object has no response. */
  get value(): ResponseHead | null {
    return this.#head
  }

  get enclosed(): Readonly<EnclosedParts> {
    return this.#enclosed
  }

  /** Begins a response in memory. */
  begin(head: ResponseHead): void {
    this.#head = head
  }

  /** From now on changes are stored: this one with the next. */
  store(head: ResponseHead): void {
    this.#isStored = true
    this.note(head)
  }

  /** Changes the head. The change is stored at the end of this synchronous run. */
  replace(head: ResponseHead): void {
    this.note(head)
    if (!this.#isStored) return
    if (this.#hasFailed) this.save()
    else if (!this.#isScheduled) {
      this.#isScheduled = true
      queueMicrotask(() => this.#trySave())
    }
  }

  /** Changes the head. The change is stored with the next one, or by `save`. */
  note(head: ResponseHead): void {
    this.#head = head
    this.#isChanged = this.#isStored
  }

  /** Stores a part with the head, from the next change on; undefined removes it. */
  enclose(name: keyof EnclosedParts, json: string | undefined): void {
    const { [name]: _, ...others } = this.#enclosed
    this.#enclosed = json === undefined ? others : { ...others, [name]: json }
    this.#isChanged = this.#isStored
  }

  /** Stores the changes that are not stored yet. @throws the error of SQLite; a later call tries again. */
  save(): void {
    if (!this.#isChanged) return
    const { live } = this.#slice
    this.#slice.open()
    if (this.#isLive) live?.join()
    // With the row that was opened.
    if (!this.#isChanged) return
    if (live && this.#isLive) live.commit()
    else this.#storeApart()
  }

  take(): string | null {
    return this.#isLive ? this.takeForRow() : null
  }

  /** The changed head; null for one that is too long to be stored with others, and is stored by itself. */
  takeForRow(): string | null {
    if (!this.#isChanged) return null
    const text = this.#text()
    if (text.length <= MOST_ROW_CHARACTERS) return text
    this.#storeApart()
    return null
  }

  stored(): void {
    this.#isChanged = false
    this.#hasFailed = false
    if (!this.#isLive) this.#slice.live?.leave()
  }

  failed(): void {
    this.#hasFailed = true
  }

  current(): string | null {
    return this.#head && this.#text()
  }

  /** To be called when everything that is stored of the response is deleted. */
  reset(): void {
    this.#head = null
    this.#enclosed = {}
    this.#isStored = false
    this.stored()
  }

  /** Without a caller that could handle the error: the next change throws it. */
  #trySave(): void {
    this.#isScheduled = false
    try {
      this.save()
    } catch {
      this.#hasFailed = true
    }
  }

  /** Stores the head outside of commits. */
  #storeApart(): void {
    const { live } = this.#slice
    const text = this.#text()
    const fitsRow = live !== null && text.length <= MOST_ROW_CHARACTERS
    if (!fitsRow) this.#values.put('head', JSON.parse(text))
    live?.writeHead(fitsRow ? text : null)
    this.stored()
  }

  #text(): string {
    const head = JSON.stringify(this.#head)
    const parts = Object.entries(this.#enclosed).map(([name, json]) => `"${name}":${json}`)
    return parts.length === 0 ? head : `${head.slice(0, -1)},"enclosed":{${parts.join()}}}`
  }

  /** In an object of one response or of an earlier release, and if it is long, the head is a value. */
  #load(): void {
    const text = this.#slice.live?.readHead() ?? null
    const stored = text === null ? this.#values.get<ResponseHead>('head') : (JSON.parse(text) as ResponseHead)
    if (stored === null) return
    const { enclosed = {}, ...head } = stored as ResponseHead & { enclosed?: object }
    this.#head = head
    const parts = Object.entries(enclosed).map(([name, value]) => [name, JSON.stringify(value)])
    this.#enclosed = Object.fromEntries(parts) as EnclosedParts
  }

  /** Whether commits include the head. It goes into the row of its response when the ledger has confirmed the calls. */
  get #isLive(): boolean {
    if (this.#head === null) return false
    const { phase, unsettled } = this.#head
    return isUnended(phase) || (phase === 'ended' && unsettled.length > 0)
  }
}
