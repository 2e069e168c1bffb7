import type { CallPolicy } from '../../governance/dlp/policy/call-policy.ts'
import { settle } from '../../governance/governed-call.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { contentKey, LARGE_ITEM_BYTES } from '../content/content-store.ts'
import type { ResponseContext } from '../context/context.ts'
import type { StoredToolCall } from '../engine/hosted-tool.ts'
import { checkTransition, type Phase } from '../engine/phases.ts'
import type { ItemPage, ItemPageRequest, StoredItem } from '../items/items.store.ts'
import { itemBytes, placedItem } from '../items/stored-items.ts'
import { isRefusedData, releaseConversation } from '../responses.store.ts'
import type { ContextItem, Owner } from '../types.ts'
import {
  type FinalResponse,
  isLarge,
  type StoredInput,
  storableItem,
  withLargeElsewhere,
  writeFinal,
} from './final-response.ts'
import { InputStore } from './input-store.ts'
import type { ResponseDeps } from './response-deps.ts'
import type { ResponseHead, StoredRequest } from './response-head.ts'
import { StoredValues } from './stored-values.ts'

const encoder = new TextEncoder()

/** What there is of the input besides its items. */
interface InputIndex {
  /** Ids of items that were stored before. */
  referenced: string[]
  /** Keys of content that this response brought into the content store, or was about to. */
  content: string[]
}

/**
 * What an object stores of its response besides the events, until Postgres has it: its phase and progress, its input, the
 * turns that ended, what it became. All of it survives a restart.
 */
export class ResponseState {
  readonly #deps: ResponseDeps
  readonly #state: StoredValues
  readonly #input: InputStore
  #head: ResponseHead | null
  /** How often it is being written just now. */
  #writing = 0

  constructor(deps: ResponseDeps, sql: SqlStorage) {
    this.#deps = deps
    this.#state = new StoredValues(sql)
    this.#input = new InputStore(sql)
    this.#head = this.#state.get<ResponseHead>('head')
  }

  get head(): ResponseHead | null {
    return this.#head
  }

  /** @throws when there is no response here any more. */
  get known(): ResponseHead {
    if (!this.#head) throw new Error('the response is gone')
    return this.#head
  }

  /** Stores what is known of a new response. */
  begin(head: ResponseHead): void {
    this.#put(head)
  }

  /** Changes what is known but for the phase, if there is still something to know. */
  change(members: Partial<Omit<ResponseHead, 'phase'>>): void {
    if (this.#head) this.#put({ ...this.#head, ...members })
  }

  /** Goes on to another phase, if there is still a response. @throws for a transition that there is not. */
  enter(phase: Phase, members: Partial<Omit<ResponseHead, 'phase'>> = {}): void {
    if (!this.#head) return
    checkTransition(this.#head.phase, phase)
    this.#put({ ...this.#head, ...members, phase })
  }

  #put(head: ResponseHead): void {
    this.#head = head
    this.#state.put('head', head)
  }

  /** What further turns are made of; null before the first of them. */
  get request(): StoredRequest | null {
    return this.#state.get<StoredRequest>('request')
  }

  /** The first time counts: it never changes. */
  storeRequest(request: StoredRequest): void {
    if (this.#head && !this.request) this.#state.put('request', request)
  }

  /** Stores what a turn added to the context. @param turn counts from 1. */
  storeTurn(turn: number, items: readonly ContextItem[]): void {
    if (this.#head) this.#state.put(`turn/${turn}`, items.map(storableItem))
  }

  /** What a turn that ended added to the context. @param turn counts from 1. */
  turn(turn: number): ContextItem[] {
    const stored = this.#state.get<StoredItem[]>(`turn/${turn}`) ?? []
    return stored.map(({ body, contentKey: _, ...item }) => ({ ...item, bytes: encoder.encode(body ?? '') }))
  }

  /** Calls of the turn that ended last which tools on this side answer, in order. */
  get toolCalls(): StoredToolCall[] {
    return this.#state.get<StoredToolCall[]>('tool_calls') ?? []
  }

  storeToolCalls(calls: readonly StoredToolCall[]): void {
    if (this.#head) this.#state.put('tool_calls', calls)
  }

  /**
   * Stores the input, one item after the other. What goes to the content store is noted before it goes there, so that it
   * can be erased whatever happens; what was stored before stays as it is.
   * @throws when the content store is away.
   */
  async storeInput(owner: Owner, { input, referenced }: ResponseContext, policy: CallPolicy): Promise<void> {
    const own = input.filter(({ id }) => !referenced.has(id))
    const large = own.filter(({ bytes }) => bytes.length > LARGE_ITEM_BYTES)
    const index: InputIndex = {
      referenced: [...referenced.keys()],
      content: large.map(({ id }) => contentKey(owner, id)),
    }
    this.#state.put('input', index)
    for (const item of input) {
      const stored = referenced.get(item.id)
      if (stored) this.#input.add(stored, stored.contentKey === null ? item.bytes : null)
      else {
        const { bytes, contentKey } = await placedItem(this.#deps, owner, item, policy)
        this.#input.add({ ...item, contentKey }, bytes)
      }
    }
    this.#input.flush()
  }

  get #index(): InputIndex {
    return this.#state.get<InputIndex>('input') ?? { referenced: [], content: [] }
  }

  /** The input as it is told to a model, one item after the other. @throws when its content is away. */
  inputItems(): AsyncGenerator<ContextItem> {
    return this.#input.contextItems((item) => itemBytes(this.#deps, item))
  }

  /** A page of the input. */
  inputPage(page: ItemPageRequest): ItemPage | 'unknown_item' {
    return this.#input.page(page)
  }

  get final(): FinalResponse | null {
    return this.#state.get<FinalResponse>('final')
  }

  storeFinal(final: FinalResponse): void {
    this.#state.put('final', final)
  }

  /**
   * Writes what the response became to Postgres.
   * @param lastSequence the number of its last event, told or not.
   * @throws when Postgres cannot be known to have it; doing it again does no harm.
   */
  async write(lastSequence: number): Promise<void> {
    const head = this.known
    const { final } = this
    if (!final) return
    this.#writing++
    try {
      if (head.refused) return await this.#writeFailed(head, final, lastSequence)
      const placed = await this.#withLargeElsewhere(head, final)
      await writeFinal(this.#deps, head, this.#storedInput(), placed, lastSequence)
      this.change({ pendingWrite: false })
    } catch (error) {
      if (!isRefusedData(error)) throw error
      // It would be refused for ever, and the conversation would stay locked for it.
      logEvent('error', 'response_not_stored', { error: errorText(error) })
      this.change({ refused: true })
      await this.#writeFailed(head, final, lastSequence)
    } finally {
      this.#writing--
    }
  }

  #storedInput(): StoredInput {
    const referenced = new Set(this.#index.referenced)
    const input = this.#input
    function* own(): Generator<StoredItem> {
      for (const item of input.items()) if (!referenced.has(item.id)) yield item
    }
    return { ids: input.ids(), own }
  }

  /** Noted before it goes there, as of the input: it is erased whatever happens. */
  async #withLargeElsewhere({ owner }: ResponseHead, final: FinalResponse): Promise<FinalResponse> {
    const large = final.outputItems.filter(isLarge)
    if (large.length === 0) return final
    const index = this.#index
    const content = new Set([...index.content, ...large.map(({ id }) => contentKey(owner, id))])
    if (this.#head) this.#state.put('input', { ...index, content: [...content] })
    const placed = await withLargeElsewhere(this.#deps, owner, final)
    if (this.#head) this.storeFinal(placed)
    return placed
  }

  /** Writes that the response failed, without its items: for one whose items Postgres will never take. */
  async #writeFailed(
    head: ResponseHead,
    { response: ended }: FinalResponse,
    lastSequence: number,
  ): Promise<void> {
    const error = { code: 'server_error', message: 'The response could not be stored.' }
    const response = { ...ended, status: 'failed' as const, error, incomplete_details: null }
    const nothing = { ids: [], own: () => [] }
    await writeFinal(this.#deps, head, nothing, { response, outputItems: [] }, lastSequence)
    this.change({ pendingWrite: false })
  }

  /**
   * Removes what Postgres and the content store have of a response that is rolled back. What is just being written is not
   * there yet, so that it has to be done once more then.
   * @returns whether that is done; it may be tried again.
   */
  async rollBack(): Promise<boolean> {
    const { begun, owner, conversationId, responseId } = this.known
    try {
      if (begun) await releaseConversation(this.#deps.database, owner, conversationId, responseId)
      return (await this.eraseContent()) && this.#writing === 0
    } catch (error) {
      logEvent('warn', 'response_not_released', { error: errorText(error) })
      return false
    }
  }

  /**
   * Tells the ledger what calls came to. They stay stored until it has that, so that the response and its audit record say
   * the same whatever dies. Tried again by the next life of the object and by its alarm.
   */
  async settleCalls(): Promise<void> {
    for (const { call, outcome } of this.#head?.unsettled ?? []) {
      if (!(await settle(this.#deps, call, outcome))) continue
      const left = this.#head?.unsettled.filter((each) => each.call.opening.callId !== call.opening.callId)
      this.change({ unsettled: left ?? [] })
    }
  }

  /** Whether no row names its content: the object erases it, when its window closes at the latest. */
  get ownsContent(): boolean {
    return this.#head !== null && (!this.#head.store || this.#head.refused === true)
  }

  /** Erases content that lies elsewhere and that no row names. @returns whether it is gone; it may be tried again. */
  async eraseContent(): Promise<boolean> {
    const keys = this.#index.content
    if (keys.length === 0) return true
    try {
      await this.#deps.contentStore.remove(keys)
      return true
    } catch (error) {
      logEvent('warn', 'content_not_erased', { error: errorText(error) })
      return false
    }
  }

  /** All storage of the object is deleted. */
  forget(): void {
    this.#head = null
    this.#state.forget()
    this.#input.forget()
  }
}
