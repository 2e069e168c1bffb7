import { checkLimits } from '../../calls/governed-call.ts'
import { renewRights } from '../../calls/renew-rights.ts'
import { type CatalogueModel, loadModelCatalogue } from '../../gateway/catalogue/model-catalogue.ts'
import type { Principal } from '../../identity/principal.ts'
import { ApiError, invalidRequest, notFound } from '../../lib/api-error.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import { ContentGoneError, type ContentStore } from '../content/content-store.ts'
import type { InputItem } from '../items/input-items.ts'
import { sealOpener } from '../items/sealed-content.ts'
import { contextTooLong } from '../model/context-too-long.ts'
import type { ResponseContext } from '../model/response-context.ts'
import type { StoredRequest } from '../model/response-head.ts'
import { newConversationId } from '../model/response-ids.ts'
import type { StoredItem } from '../model/stored-items.ts'
import type { ContextItem, Owner } from '../model/types.ts'
import type { ResponseDeps } from '../response-deps.ts'
import {
  selectConversationContext,
  selectItems,
  selectResponseContext,
} from '../store/read-responses.store.ts'
import type { ResponseState } from '../store/response-state.ts'
import { fitContext } from './context-limit.ts'
import { type TokenEstimate, tokenEstimate } from './context-tokens.ts'
import { conversationLocked, type OwnStart, releaseWriter } from './conversation-lock.ts'
import { fromLatestCompaction } from './kept-items.ts'
import type { ResponseRequest } from './load-request.ts'

const POSTGRES = { selectConversationContext, selectResponseContext, selectItems }
export type ContextStore = typeof POSTGRES

/** Bytes of all items. The object of a response holds them and the request body made of them in 128 MB. */
export const MOST_CONTEXT_BYTES = 56 * 1024 * 1024
/** Bytes of the items that are read from rows: these are held as text as well for a while. */
const MOST_ROW_BYTES = 24 * 1024 * 1024
const CONCURRENT_READS = 4

type ConversationPlace = Omit<ResponseContext, 'history' | 'input' | 'referenced' | 'historyHeads'>

/**
 * Loads the context of a request. A conversation whose last response has ended, but is not written yet, is written first.
 * A response that is still generated is not waited for.
 * @param start that of the calling object; null if it begins no response.
 * @throws ApiError as `loadContext`, and `conversation_locked`.
 */
export async function loadUnlockedContext(
  deps: ResponseDeps,
  owner: Owner,
  request: ResponseRequest,
  start: OwnStart | null,
): Promise<ResponseContext> {
  const context = await loadContext(deps, owner, request)
  const { writer, conversationId } = context
  if (writer === null) return context
  if (!(await releaseWriter(deps, owner, writer, conversationId, start))) throw conversationLocked()
  const settled = await loadContext(deps, owner, request)
  if (settled.writer !== null) throw conversationLocked()
  return settled
}

/** The previous response of a request is missing, or another owner's. */
export const previousNotFound = (id: string) =>
  new ApiError('not_found', `Response ${id.slice(0, 100)} not found.`, {
    code: 'not_found',
    param: 'previous_response_id',
  })

/**
 * Loads the context of a response again, for a further turn. A response that is not stored has no lock, so items that
 * others have added to its conversation meanwhile are left out.
 * @param modelSettings those that the model gets, with all tools: they bound the items that fit.
 * @throws the error of a store that is not available.
 */
export async function reloadContext(
  deps: ResponseDeps,
  state: ResponseState,
  { settings, historyIds }: StoredRequest,
  modelSettings: ResponseSettings,
  principal: Principal,
): Promise<ContextItem[]> {
  const { owner } = state.known
  const context = await loadContext(deps, owner, { settings, items: [] })
  const known = new Set(historyIds)
  const history = context.history.filter(({ id }) => known.has(id))
  const items = [...history, ...(await state.inputItems())]
  return fittingItems(deps, principal, modelSettings, fromLatestCompaction(items, sealOpener(deps, owner)))
}

/** The items of a context; with `truncation: 'auto'`, those that fit the model beside its settings. */
export async function fittingItems(
  deps: ResponseDeps,
  principal: Principal,
  settings: ResponseSettings,
  items: readonly ContextItem[],
): Promise<ContextItem[]> {
  const model = settings.truncation === 'auto' ? await findModel(deps, principal, settings.model) : null
  if (!model) return [...items]
  return fitContext(items, settings, model, await estimateFor(model, items))
}

/** The estimate of tokens for the route of a model that is tried first. */
export const estimateFor = (
  { id, routes }: CatalogueModel,
  items: readonly ContextItem[],
): Promise<TokenEstimate> => tokenEstimate(routes[0]?.upstreamModel ?? id, items)

/** A model may be newer than the catalogue of this isolate: the ledger has the current epoch. */
export async function findModel(
  deps: ResponseDeps,
  principal: Principal,
  id: string,
): Promise<CatalogueModel | null> {
  const { models, epoch } = await loadModelCatalogue(deps)
  const known = models.get(id)
  if (known) return known
  const rights = { principal, catalogueEpoch: epoch, learned: null }
  const verdict = await checkLimits(deps, rights)
  if (verdict?.kind !== 'stale') return null
  const { catalogueEpoch } = await renewRights(deps, rights, verdict)
  return (await loadModelCatalogue(deps, catalogueEpoch ?? undefined)).models.get(id) ?? null
}

/**
 * Loads the items that a request continues and refers to. Does not wait for another writer of the conversation.
 * @param store replaced by unit tests.
 * @throws ApiError not_found for what does not exist or is another owner's; invalid_request for `conversation` together
 * with `previous_response_id`, and for a context that is too long.
 * @internal Tests load a context from a store of their own.
 */
export async function loadContext(
  deps: Pick<ResponseDeps, 'database'> & { contentStore: Pick<ContentStore, 'get'> },
  owner: Owner,
  { settings, items }: ResponseRequest,
  store: ContextStore = POSTGRES,
): Promise<ResponseContext> {
  const { place, stored } = await loadConversation(store, deps, owner, settings)
  const inputBytes = items.reduce((sum, item) => sum + ('bytes' in item ? item.bytes.length : 0), 0)
  const reader = new ItemReader(deps.contentStore, MOST_CONTEXT_BYTES - inputBytes)
  const history = (await reader.read(stored)).filter((item) => item !== null)
  const known = new Set(stored.map(({ id }) => id))
  const named = items.flatMap((item) => storedIdOf(item) ?? [])
  const wanted = [...new Set(named)].filter((id) => !known.has(id))
  const found = await store.selectItems(deps.database, owner, wanted)
  const read = new Map((await reader.read(found)).flatMap((item) => (item ? [[item.id, item]] : [])))
  return {
    ...place,
    history,
    input: inputOf(items, known, read),
    referenced: new Map(found.filter(({ id }) => read.has(id)).map((item) => [item.id, item])),
    historyHeads: stored.map((item) => ({ ...item, body: null })),
  }
}

/** The stored item that an item of a request refers to or repeats. */
export const storedIdOf = (item: InputItem): string | undefined =>
  'reference' in item ? item.reference : item.repeats

/**
 * The items in the order of the request. An item that is part of the history, or occurred before, is left out.
 * @throws ApiError not_found for a reference to a missing item. A repeated item that is missing is a new item.
 */
function inputOf(
  items: readonly InputItem[],
  known: ReadonlySet<string>,
  stored: ReadonlyMap<string, ContextItem>,
): ContextItem[] {
  const seen = new Set(known)
  return items.flatMap((item) => {
    const id = storedIdOf(item)
    if (id !== undefined && seen.has(id)) return []
    const found = id === undefined ? undefined : stored.get(id)
    if (found) {
      seen.add(found.id)
      return [found]
    }
    if ('reference' in item) throw notFound('Item', item.reference.slice(0, 100))
    return [item]
  })
}

const NO_PLACE: ConversationPlace = {
  conversationId: null,
  creates: false,
  forkOf: null,
  position: undefined,
  previousResponseId: null,
  writer: null,
}

async function loadConversation(
  store: ContextStore,
  { database }: Pick<ResponseDeps, 'database'>,
  owner: Owner,
  { conversation, previous_response_id: previousResponseId, store: stores }: ResponseSettings,
): Promise<{ place: ConversationPlace; stored: StoredItem[] }> {
  if (isGiven(conversation) && isGiven(previousResponseId)) {
    throw invalidRequest('conversation: may not be given together with previous_response_id.')
  }
  const isStored = stores !== false
  if (isGiven(conversation)) {
    const context = await store.selectConversationContext(database, owner, conversation)
    if (!context) throw notFound('Conversation', conversation.slice(0, 100))
    const { writer, nextPosition: position, items } = context
    const place = isStored ? { conversationId: conversation, position } : {}
    return { place: { ...NO_PLACE, ...place, writer }, stored: items }
  }
  const created = isStored ? { conversationId: newConversationId(), creates: true } : {}
  if (!isGiven(previousResponseId)) return { place: { ...NO_PLACE, ...created }, stored: [] }
  const previous = await store.selectResponseContext(database, owner, previousResponseId)
  if (!previous) throw previousNotFound(previousResponseId)
  const { conversationId, isHead, status, contextPosition, items } = previous
  const continued = { conversationId, position: contextPosition ?? undefined }
  const forked = { ...created, forkOf: isStored ? previousResponseId : null }
  const place: ConversationPlace = {
    ...NO_PLACE,
    ...(isStored && isHead && conversationId !== null ? continued : forked),
    previousResponseId,
    writer: status === 'in_progress' ? previousResponseId : null,
  }
  return { place, stored: items }
}

/** An empty id counts as given, and is not found. */
const isGiven = (id: string | null | undefined): id is string => id !== null && id !== undefined

/** Reads stored items up to the limits of a context. */
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
    for (let at = 0; at < items.length; at += CONCURRENT_READS) {
      const some = items.slice(at, at + CONCURRENT_READS)
      all.push(...(await Promise.all(some.map((item) => this.#readOne(item)))))
    }
    return all
  }

  async #readOne({ body, contentKey, ...item }: StoredItem): Promise<ContextItem | null> {
    const bytes = body !== null ? encoder.encode(body) : await this.#readContent(contentKey)
    if (bytes === null) return null
    this.#bytesLeft -= bytes.length
    if (body !== null) this.#rowBytesLeft -= bytes.length
    if (this.#bytesLeft < 0) throw contextTooLong(`${MOST_CONTEXT_BYTES} bytes`)
    if (this.#rowBytesLeft < 0) throw contextTooLong(`${MOST_ROW_BYTES} bytes of text`)
    return { ...item, bytes }
  }

  async #readContent(contentKey: string | null): Promise<Uint8Array | null> {
    if (contentKey === null) return null
    return this.#content.get(contentKey).catch((error) => {
      if (error instanceof ContentGoneError) return null
      throw error
    })
  }
}

const encoder = new TextEncoder()
