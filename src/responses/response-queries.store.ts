import { and, eq, inArray, sql } from 'drizzle-orm'
import type { Database } from '../../schema/database.ts'
import {
  conversationItems,
  conversations,
  responseItems,
  responseItemUses,
  responses,
} from '../../schema/responses.ts'
import type { ResponseStatus } from '../wire/responses.ts'
import {
  beginningQuery,
  contextPlaces,
  type ItemPage,
  type ItemPageRequest,
  idParameter,
  ownedBy,
  readSlice,
  readToEnd,
  type StoredItem,
  sliceQuery,
} from './items/items.store.ts'
import type { Owner } from './types.ts'

// What Postgres has of responses, conversations and their items. What does not exist and what is somebody else's look
// alike.

export type ResponseRow = Omit<typeof responses.$inferSelect, 'organizationId' | 'userId'>

const isConversation = (owner: Owner, id: string) =>
  and(eq(conversations.id, idParameter(id)), ownedBy(conversations, owner))

/** A response with what it made. While it is in progress there are no items: its object has them. */
export async function selectResponse(
  database: Database,
  owner: Owner,
  id: string,
): Promise<(ResponseRow & { output: StoredItem[] }) | null> {
  const places = usesOf(id, 'output')
  const [rows, beginning] = await database.batch([
    database
      .select()
      .from(responses)
      .where(and(eq(responses.id, idParameter(id)), ownedBy(responses, owner))),
    database.execute(beginningQuery(owner, places)),
  ])
  const [found] = rows
  if (found === undefined) return null
  const { organizationId: _, userId: __, ...row } = found
  // The two statements may see different moments; the row, which was read first, decides.
  const items = row.status === 'in_progress' ? [] : await readToEnd(database, owner, places, beginning.rows)
  return { ...row, output: items }
}

const usesOf = (responseId: string, direction: 'input' | 'output') => sql`
  SELECT item_id, position FROM ${responseItemUses}
  WHERE response_id = ${idParameter(responseId)} AND direction = ${direction}`

const placesOf = (conversationId: string) => sql`
  SELECT item_id, position FROM ${conversationItems} WHERE conversation_id = ${idParameter(conversationId)}`

/** What a conversation holds. */
export interface ConversationContext {
  /** The response that is writing in it. */
  writer: string | null
  headResponseId: string | null
  /** To be given to `beginResponse`, so that nothing is answered that was not read. */
  nextPosition: number
  items: StoredItem[]
}

export async function selectConversationContext(
  database: Database,
  owner: Owner,
  conversationId: string,
): Promise<ConversationContext | null> {
  const places = placesOf(conversationId)
  const { writer, headResponseId, nextPosition } = conversations
  const [[row], beginning] = await database.batch([
    database
      .select({ writer, headResponseId, nextPosition })
      .from(conversations)
      .where(isConversation(owner, conversationId)),
    database.execute(beginningQuery(owner, places)),
  ])
  if (row === undefined) return null
  return { ...row, items: await readToEnd(database, owner, places, beginning.rows, row.nextPosition) }
}

/** What a response left behind for the next one. */
export interface PreviousContext {
  conversationId: string | null
  /** It was the last to add to its conversation, so the next one continues there; after others it has to fork. */
  isHead: boolean
  status: ResponseStatus
  /** The conversation up to its end (of a failed one, or one in progress: up to its beginning); see `nextPosition` above. */
  contextPosition: number | null
  items: StoredItem[]
}

export async function selectResponseContext(
  database: Database,
  owner: Owner,
  responseId: string,
): Promise<PreviousContext | null> {
  const { conversationId, status, contextPosition } = responses
  const places = contextPlaces(owner, responseId)
  const isHead = sql<boolean>`coalesce(${conversations.headResponseId} = ${responses.id}, false)`
  const [[row], beginning] = await database.batch([
    database
      .select({ conversationId, status, contextPosition, isHead })
      .from(responses)
      .leftJoin(conversations, and(eq(conversations.id, conversationId), ownedBy(conversations, owner)))
      .where(and(eq(responses.id, idParameter(responseId)), ownedBy(responses, owner))),
    database.execute(beginningQuery(owner, places)),
  ])
  if (row === undefined) return null
  const end = row.contextPosition ?? undefined
  return { ...row, items: await readToEnd(database, owner, places, beginning.rows, end) }
}

/** Items by id, in the order of the ids; those that are not the owner's are left out. */
export async function selectItems(
  database: Database,
  owner: Owner,
  ids: readonly string[],
): Promise<StoredItem[]> {
  if (ids.length === 0) return []
  const places = sql`SELECT given.item_id, given.position::int
    FROM jsonb_array_elements_text(${JSON.stringify(ids.map(idParameter))}::jsonb)
    WITH ORDINALITY AS given(item_id, position)`
  const { rows } = await database.execute(beginningQuery(owner, places))
  return readToEnd(database, owner, places, rows)
}

/** A page of a conversation. Large items shorten it. @returns null for no conversation, `unknown_item` for `after` */
export async function listConversationItems(
  database: Database,
  owner: Owner,
  conversationId: string,
  page: ItemPageRequest,
): Promise<ItemPage | 'unknown_item' | null> {
  const known = database.select({ id: conversations.id }).from(conversations)
  return listItems(
    database,
    owner,
    placesOf(conversationId),
    known.where(isConversation(owner, conversationId)),
    page,
  )
}

/** A page of what a response was given, references included; otherwise as `listConversationItems`. */
export async function listInputItems(
  database: Database,
  owner: Owner,
  responseId: string,
  page: ItemPageRequest,
): Promise<ItemPage | 'unknown_item' | null> {
  const known = database.select({ id: responses.id }).from(responses)
  const given = and(eq(responses.id, idParameter(responseId)), ownedBy(responses, owner))
  return listItems(database, owner, usesOf(responseId, 'input'), known.where(given), page)
}

async function listItems(
  database: Database,
  owner: Owner,
  places: ReturnType<typeof sql>,
  known: { getSQL(): ReturnType<typeof sql> },
  { limit, order, after }: ItemPageRequest,
): Promise<ItemPage | 'unknown_item' | null> {
  const from =
    after == null
      ? undefined
      : sql`(SELECT position FROM (${places}) AS place WHERE item_id = ${idParameter(after)})`
  const [heads, rows] = await database.batch([
    database.execute(sql`SELECT (${known}) IS NOT NULL AS known, ${from ?? 0}::int AS position`),
    database.execute(sliceQuery(owner, { places, order, limit, after: from })),
  ])
  const head = heads.rows[0] as { known: boolean; position: number | null } | undefined
  if (!head?.known) return null
  if (head.position === null) return 'unknown_item'
  const { items, hasMore } = readSlice(rows.rows, limit)
  return { items: items.map(({ item }) => item), hasMore }
}

/** The models of the responses that items were made or given in: policies may hold for some models only. */
export async function selectItemModels(
  database: Database,
  owner: Owner,
  ids: readonly string[],
): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map()
  const rows = await database
    .select({ id: responseItems.id, model: responses.model })
    .from(responseItems)
    .innerJoin(responses, eq(responses.id, responseItems.responseId))
    .where(and(inArray(responseItems.id, ids.map(idParameter)), ownedBy(responseItems, owner)))
  return new Map(rows.map(({ id, model }) => [id, model]))
}

/** One item of a conversation; null when it is not in there. */
export async function selectConversationItem(
  database: Database,
  owner: Owner,
  conversationId: string,
  itemId: string,
): Promise<StoredItem | null> {
  const places = sql`${placesOf(conversationId)} AND item_id = ${idParameter(itemId)}
    AND EXISTS (SELECT FROM ${conversations} WHERE ${isConversation(owner, conversationId)})`
  const { rows } = await database.execute(sliceQuery(owner, { places, order: 'asc', limit: 1 }))
  return readSlice(rows, 1).items[0]?.item ?? null
}
