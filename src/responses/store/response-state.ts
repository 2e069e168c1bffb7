import { settle } from '../../calls/governed-call.ts'
import type { CallPolicy } from '../../dlp/policy/call-policy.ts'
import { runSlices } from '../../lib/slices.ts'
import { ContentGoneError, contentKey, LARGE_ITEM_BYTES } from '../content/content-store.ts'
import { itemBytes, storedItemOf } from '../items/item-bytes.ts'
import { callIdIn, redactedItem } from '../items/redaction.ts'
import { checkPhaseTransition, type Phase } from '../model/phases.ts'
import type { ResponseContext } from '../model/response-context.ts'
import type { ResponseHead, StoredRequest } from '../model/response-head.ts'
import type { FinalResponse, ItemPage, ItemPageRequest, StoredItem } from '../model/stored-items.ts'
import type { StoredToolCall } from '../model/tool-result.ts'
import type { ContextItem, Owner } from '../model/types.ts'
import type { ResponseDeps } from '../response-deps.ts'
import type { Slice } from '../storage/slice.ts'
import { InputStore } from './input-store.ts'
import { StoredHead } from './stored-head.ts'
import { StoredValues } from './stored-values.ts'

/** The stored part of the input besides its items. */
interface InputIndex {
  /** Ids of items that were stored before. */
  referenced: string[]
  /** Keys of the content that this response has put into the content store, or is about to put there. */
  content: string[]
}

/** Characters of the longest final response that is stored with the head of its response. */
const MOST_ENCLOSED_CHARACTERS = 50_000

type HeadChange = Partial<Omit<ResponseHead, 'phase'>>

/**
 * The state of a response that its object stores besides the events: head, input, ended turns, tool calls and the final
 * response. It survives a restart. After `reset`, changes are ignored.
 *
 * Changes of one synchronous run are stored together, in one row. `save` stores them at once, before something leaves the object
 * that relies on them.
 */
export class ResponseState {
  readonly #deps: ResponseDeps
  readonly #slice: Slice
  readonly #values: StoredValues
  readonly #stored: StoredHead
  readonly #input: InputStore
  #settling: Promise<void> | null = null

  constructor(deps: ResponseDeps, slice: Slice) {
    this.#deps = deps
    this.#slice = slice
    this.#values = new StoredValues(slice)
    this.#stored = new StoredHead(slice, this.#values)
    const { input } = this.#stored.enclosed
    this.#input = new InputStore(slice, input === undefined ? null : JSON.parse(input))
    if (!this.#stored.value) this.#values.reset()
  }

  /** Null when the object has no response. */
  get head(): ResponseHead | null {
    return this.#stored.value
  }

  /** The head. @throws when the object has no response any more. */
  get known(): ResponseHead {
    if (!this.head) throw new Error('the response is gone')
    return this.head
  }

  /** Begins a response in memory: an object that restarts before `store` has none. */
  begin(head: ResponseHead): void {
    this.#stored.begin(head)
  }

  /**
   * Stores the response. From now on every change is stored.
   * @param isLater in an object of many responses, it is stored with the next change only, or with a part of it.
   */
  store(members: HeadChange, isLater: boolean): void {
    this.#stored.store({ ...this.known, ...members })
    if (!isLater || !this.#slice.live) this.save()
  }

  change(members: HeadChange): void {
    if (this.head) this.#stored.replace({ ...this.head, ...members })
  }

  /** Changes the head in memory. It is stored with the next change, or by `save` or `settleCalls`, one of which has to follow. */
  note(members: HeadChange): void {
    if (this.head) this.#stored.note({ ...this.head, ...members })
  }

  /** Enters another phase. @throws for a transition that `PHASES` does not allow. */
  enter(phase: Phase, members: HeadChange = {}): void {
    if (!this.head) return
    checkPhaseTransition(this.head.phase, phase)
    this.#stored.replace({ ...this.head, ...members, phase })
  }

  /** Stores the changes of the head that are not stored yet. @throws the error of SQLite; a later call tries again. */
  save(): void {
    this.#stored.save()
  }

  /** The inputs of further turns; null before the second turn. */
  get request(): StoredRequest | null {
    return this.#values.get<StoredRequest>('request')
  }

  /** Stores the request unless it is stored already. */
  storeRequest(request: StoredRequest): void {
    if (!this.request) this.replaceRequest(request)
  }

  /** Stores a request that has changed: a search has found tools. */
  replaceRequest(request: StoredRequest): void {
    this.#put('request', request)
  }

  /** The items that each ended turn added to the context. */
  get turns(): ContextItem[][] {
    return Array.from({ length: this.known.progress.turns }, (_, index) => {
      const stored = this.#values.get<StoredItem[]>(`turn/${index + 1}`) ?? []
      return stored.map(({ body, contentKey: _, ...item }) => ({
        ...item,
        bytes: encoder.encode(body ?? ''),
      }))
    })
  }

  /** Stores the items that a turn added to the context. @param turn counts from 1. */
  storeTurn(turn: number, items: readonly ContextItem[]): void {
    this.#put(`turn/${turn}`, items.map(storedItemOf))
  }

  /** The server-side calls of the last turn, in order. */
  get toolCalls(): StoredToolCall[] {
    const count = this.#values.get<number>('tool_calls') ?? 0
    return Array.from({ length: count }, (_, index) => {
      const call = this.#values.get<StoredToolCall>(`tool_call/${index}`)
      if (!call) throw new Error('a tool call is not stored')
      return call
    })
  }

  storeToolCalls(calls: readonly StoredToolCall[]): void {
    for (const [index, call] of calls.entries()) this.storeToolCall(index, call)
    this.#put('tool_calls', calls.length)
  }

  /** Each is a value of its own, so that a result does not write the others again. */
  storeToolCall(index: number, call: StoredToolCall): void {
    this.#put(`tool_call/${index}`, call)
  }

  /**
   * Stores the input. New items are redacted under the policy first, and large ones put into the content store. Their keys
   * are stored before, so that the content is erased even if the object restarts in between.
   * @throws when the content store is not available.
   */
  async storeInput(owner: Owner, { input, referenced }: ResponseContext, policy: CallPolicy): Promise<void> {
    const large = input.filter(({ id, bytes }) => !referenced.has(id) && bytes.length > LARGE_ITEM_BYTES)
    const content = large.map(({ id }) => contentKey(owner, id))
    // What is erased with the response has to be known before it exists.
    if (content.length > 0) this.save()
    // A missing index is an empty one.
    if (referenced.size + content.length > 0) {
      this.#put('input', { referenced: [...referenced.keys()], content })
    }
    for (const item of input) {
      const stored = referenced.get(item.id)
      if (stored) this.#input.add(stored, stored.contentKey === null ? item.bytes : null)
      else {
        const bytes = await redactedItem(policy, item.bytes)
        const isLarge = bytes.length > LARGE_ITEM_BYTES
        const key = isLarge ? await this.#deps.contentStore.put(owner, item.id, bytes) : null
        const isSame = bytes === item.bytes || item.callId === null
        const callId = isSame ? item.callId : await runSlices(callIdIn(bytes))
        this.#input.add({ ...item, callId, contentKey: key }, isLarge ? null : bytes)
      }
    }
    const small = this.#input.flush(true)
    if (small) this.#stored.enclose('input', JSON.stringify(small))
  }

  /** The input for a model. @throws when the content store is not available. */
  async inputItems(): Promise<ContextItem[]> {
    const items: ContextItem[] = []
    for await (const item of this.#input.contextItems((stored) => itemBytes(this.#deps, stored)))
      items.push(item)
    return items
  }

  /** The input and the output, for a response that continues this one. Items whose content is gone are left out. */
  async *contextItems(): AsyncGenerator<ContextItem, undefined> {
    const read = (item: StoredItem) =>
      itemBytes(this.#deps, item).catch((error) => {
        if (error instanceof ContentGoneError) return NO_BYTES
        throw error
      })
    for await (const item of this.#input.contextItems(read)) if (item.bytes.length > 0) yield item
    for (const item of this.final?.outputItems ?? []) {
      const { body: _, contentKey: __, ...head } = item
      yield { ...head, bytes: await read(item) }
    }
    return undefined
  }

  inputPage(page: ItemPageRequest): ItemPage | 'unknown_item' {
    return this.#input.page(page)
  }

  /** The input for Postgres: all ids, and the items that were not stored before. */
  writtenInput(): { usedItemIds: string[]; inputItems: Iterable<StoredItem> } {
    const referenced = new Set(this.#index.referenced)
    const input = this.#input
    function* newItems(): Generator<StoredItem> {
      for (const item of input.items()) if (!referenced.has(item.id)) yield item
    }
    return { usedItemIds: input.ids(), inputItems: newItems() }
  }

  /** Keys of the content that this response may have in the content store. */
  get contentKeys(): string[] {
    return this.#index.content
  }

  addContentKeys(keys: readonly string[]): void {
    const index = this.#index
    this.#put('input', { ...index, content: [...new Set([...index.content, ...keys])] })
  }

  get final(): FinalResponse | null {
    const { final } = this.#stored.enclosed
    return final === undefined ? this.#values.get<FinalResponse>('final') : JSON.parse(final)
  }

  /** Stores the final response. A small one is stored with the head, for which a change or `save` has to follow. */
  storeFinal(final: FinalResponse): void {
    const text = JSON.stringify(final)
    const isEnclosed = this.#slice.live !== null && text.length <= MOST_ENCLOSED_CHARACTERS
    if (!isEnclosed) this.#put('final', final)
    if (this.head) this.#stored.enclose('final', isEnclosed ? text : undefined)
  }

  /**
   * Sends the outcomes of ended calls to the ledger. They stay stored until it has them, so that response and audit record
   * agree. The next start of the object and its alarm try again.
   */
  settleCalls(): Promise<void> {
    this.#settling ??= this.#settleAll().finally(() => {
      this.#settling = null
    })
    return this.#settling
  }

  async #settleAll(): Promise<void> {
    const tried = new Set<string>()
    for (;;) {
      const next = this.head?.unsettled.find(({ call }) => !tried.has(call.opening.callId))
      if (!next) return
      const { callId } = next.call.opening
      tried.add(callId)
      this.save()
      if (!(await settle(this.#deps, next.call, next.outcome))) continue
      const left = this.head?.unsettled.filter((each) => each.call.opening.callId !== callId)
      // If that is lost, the ledger gets the outcome again.
      this.note({ unsettled: left ?? [] })
    }
  }

  /** To be called when everything that is stored of the response is deleted. */
  reset(): void {
    this.#stored.reset()
    this.#values.reset()
    this.#input.reset()
  }

  get #index(): InputIndex {
    return this.#values.get<InputIndex>('input') ?? { referenced: [], content: [] }
  }

  #put(name: string, value: unknown): void {
    if (this.head) this.#values.put(name, value)
  }
}

const encoder = new TextEncoder()
const NO_BYTES = new Uint8Array(0)
