import { invalidRequest, notFound } from '../../lib/api-error.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import { ContentGoneError, type ContentStore } from '../content/content-store.ts'
import { newConversationId } from '../ids.ts'
import type { NewItem } from '../items/input-items.ts'
import type { StoredItem } from '../items/items.store.ts'
import { selectConversationContext, selectItems, selectResponseContext } from '../response-queries.store.ts'
import type { ContextItem, Owner } from '../types.ts'
import { contextTooLong } from './context-errors.ts'
import type { ResponseRequest } from './request.ts'

/** What a response is made in: what was said before, and what the request adds. */
export interface ResponseContext {
  /** The conversation that the response is added to; null when it is not stored. */
  conversationId: string | null
  /** Whether that one is yet to be made. */
  creates: boolean
  /** The response whose context it begins with when it is made. */
  forkOf: string | null
  /** The conversation's next position as it was read; undefined for one that is yet to be made. */
  position: number | undefined
  previousResponseId: string | null
  /** A response that has not written yet what belongs into this context: in the conversation, or the previous one itself. */
  writer: string | null
  history: ContextItem[]
  /** New items, and those that the request refers to, in the order of the request. */
  input: ContextItem[]
  /** The items of `input` that were stored before, by their ids. */
  referenced: ReadonlyMap<string, StoredItem>
}

export interface ContextDeps<Database> {
  database: Database
  contentStore: Pick<ContentStore, 'get'>
}

/** What of `store.ts` is used here. */
export interface ContextStore<Database> {
  selectConversationContext: Select<Database, typeof selectConversationContext>
  selectResponseContext: Select<Database, typeof selectResponseContext>
  selectItems: Select<Database, typeof selectItems>
}

type Select<Database, Function> = Function extends (database: never, ...rest: infer Rest) => infer Result
  ? (database: Database, ...rest: Rest) => Result
  : never

const POSTGRES: ContextStore<Parameters<typeof selectItems>[0]> = {
  selectConversationContext,
  selectResponseContext,
  selectItems,
}

/** Of all items together. The object of a response holds them and the body that is made of them, in 128 MB. */
const MOST_CONTEXT_BYTES = 56 * 1024 * 1024
/** Of those that come out of rows: for a while they are there as text as well. */
const MOST_ROW_BYTES = 24 * 1024 * 1024
const FETCHED_AT_ONCE = 4

type Place = Omit<ResponseContext, 'history' | 'input' | 'referenced'>

/**
 * Loads what a request continues and what it refers to. Whoever else writes in the conversation is told and not waited
 * for.
 * @throws ApiError not_found for what is not there or not the owner's; invalid_request for `conversation` together with
 * `previous_response_id`, and for a context that is too long to be held.
 */
export function loadContext(
  deps: ContextDeps<Parameters<typeof selectItems>[0]>,
  owner: Owner,
  request: ResponseRequest,
): Promise<ResponseContext> {
  return loadContextFrom(POSTGRES, deps, owner, request)
}

/** The same from any store. */
export async function loadContextFrom<Database>(
  store: ContextStore<Database>,
  deps: ContextDeps<Database>,
  owner: Owner,
  { settings, items }: ResponseRequest,
): Promise<ResponseContext> {
  const { place, stored } = await loadPlace(store, deps, owner, settings)
  const given = items.reduce((sum, item) => sum + ('bytes' in item ? item.bytes.length : 0), 0)
  const reader = new ItemReader(deps.contentStore, MOST_CONTEXT_BYTES - given)
  const history = (await reader.read(stored)).filter((item) => item !== null)
  const known = new Set(stored.map(({ id }) => id))
  const named = items.flatMap((item) => storedIdOf(item) ?? [])
  const wanted = [...new Set(named)].filter((id) => !known.has(id))
  const found = await store.selectItems(deps.database, owner, wanted)
  const referred = new Map((await reader.read(found)).flatMap((item) => (item ? [[item.id, item]] : [])))
  const input = inOrder(items, known, referred)
  return {
    ...place,
    history,
    input,
    referenced: new Map(found.filter(({ id }) => referred.has(id)).map((item) => [item.id, item])),
  }
}

const storedIdOf = (item: NewItem): string | undefined =>
  'reference' in item ? item.reference : item.repeats

/**
 * What is part of the history already, or stood before, is not said twice.
 * @throws ApiError not_found for a reference to what is not there; an item that is given is its own then.
 */
function inOrder(
  items: readonly NewItem[],
  known: ReadonlySet<string>,
  referred: ReadonlyMap<string, ContextItem>,
): ContextItem[] {
  const said = new Set(known)
  return items.flatMap((item) => {
    const id = storedIdOf(item)
    if (id !== undefined && said.has(id)) return []
    const found = id === undefined ? undefined : referred.get(id)
    if (found) {
      said.add(found.id)
      return [found]
    }
    if ('reference' in item) throw notFound('Item', item.reference.slice(0, 100))
    return [item]
  })
}

const NOWHERE: Place = {
  conversationId: null,
  creates: false,
  forkOf: null,
  position: undefined,
  previousResponseId: null,
  writer: null,
}

async function loadPlace<Database>(
  store: ContextStore<Database>,
  { database }: ContextDeps<Database>,
  owner: Owner,
  { conversation, previous_response_id: previousResponseId, store: stores }: ResponseSettings,
): Promise<{ place: Place; stored: StoredItem[] }> {
  if (isGiven(conversation) && isGiven(previousResponseId)) {
    throw invalidRequest('conversation: may not be given together with previous_response_id.')
  }
  const isStored = stores !== false
  if (isGiven(conversation)) {
    const context = await store.selectConversationContext(database, owner, conversation)
    if (!context) throw notFound('Conversation', conversation.slice(0, 100))
    const { writer, nextPosition: position, items } = context
    const place = isStored ? { conversationId: conversation, position } : {}
    return { place: { ...NOWHERE, ...place, writer }, stored: items }
  }
  const fresh = isStored ? { conversationId: newConversationId(), creates: true } : {}
  if (!isGiven(previousResponseId)) return { place: { ...NOWHERE, ...fresh }, stored: [] }
  const previous = await store.selectResponseContext(database, owner, previousResponseId)
  if (!previous) throw notFound('Response', previousResponseId.slice(0, 100))
  const { conversationId, isHead, status, contextPosition, items } = previous
  const continued = { conversationId, position: contextPosition ?? undefined }
  const forked = { ...fresh, forkOf: isStored ? previousResponseId : null }
  const place: Place = {
    ...NOWHERE,
    ...(isStored && isHead && conversationId !== null ? continued : forked),
    previousResponseId,
    writer: status === 'in_progress' ? previousResponseId : null,
  }
  return { place, stored: items }
}

/** An empty id names nothing, and is not the same as none. */
const isGiven = (id: string | null | undefined): id is string => id !== null && id !== undefined

/** Reads items as far as they fit. */
class ItemReader {
  readonly #content: Pick<ContentStore, 'get'>
  #bytesLeft: number
  #rowBytesLeft = MOST_ROW_BYTES

  constructor(content: Pick<ContentStore, 'get'>, bytesLeft: number) {
    this.#content = content
    this.#bytesLeft = bytesLeft
  }

  /** @returns null for items whose content was erased. */
  async read(items: readonly StoredItem[]): Promise<Array<ContextItem | null>> {
    const all: Array<ContextItem | null> = []
    for (let at = 0; at < items.length; at += FETCHED_AT_ONCE) {
      const some = items.slice(at, at + FETCHED_AT_ONCE)
      all.push(...(await Promise.all(some.map((item) => this.#one(item)))))
    }
    return all
  }

  async #one({ id, type, role, callId, body, contentKey }: StoredItem): Promise<ContextItem | null> {
    const bytes = body !== null ? encoder.encode(body) : await this.#fetched(contentKey)
    if (bytes === null) return null
    this.#bytesLeft -= bytes.length
    if (body !== null) this.#rowBytesLeft -= bytes.length
    if (this.#bytesLeft < 0) throw contextTooLong(`${MOST_CONTEXT_BYTES} bytes`)
    if (this.#rowBytesLeft < 0) throw contextTooLong(`${MOST_ROW_BYTES} bytes of text`)
    return { id, type, role, callId, bytes }
  }

  async #fetched(contentKey: string | null): Promise<Uint8Array | null> {
    if (contentKey === null) return null
    try {
      return await this.#content.get(contentKey)
    } catch (error) {
      if (error instanceof ContentGoneError) return null
      throw error
    }
  }
}

const encoder = new TextEncoder()
