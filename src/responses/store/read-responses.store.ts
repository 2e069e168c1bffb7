import { and, eq, inArray, type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { conversations, responseItems, responses } from '../../../schema/responses.ts'
import type { Compatibility } from '../../wire/compatibility.ts'
import type { ResponseStatus } from '../../wire/responses.ts'
import type { ItemPage, ItemPageRequest, StoredItem } from '../model/stored-items.ts'
import type { Owner } from '../model/types.ts'
import {
  contextPlaces,
  conversationPlaces,
  firstSliceQuery,
  readSlice,
  readToEnd,
  sliceQuery,
  usePlaces,
} from './items.store.ts'
import { idParameter, isConversation, isResponse, ownedBy } from './rows.store.ts'

// Reads responses, conversations and their items. Rows of another owner are treated as missing.

type ResponseRow = Omit<typeof responses.$inferSelect, 'organizationId' | 'userId'>

/** A response with its output. While it is in progress, Postgres has no items of it. */
export async function selectResponse(
  database: Database,
  owner: Owner,
  id: string,
): Promise<(ResponseRow & { output: StoredItem[] }) | null> {
  const places = usePlaces(id, 'output')
  const [rows, first] = await database.batch([
    database.select().from(responses).where(isResponse(owner, id)),
    database.execute(firstSliceQuery(owner, places)),
  ])
  const [found] = rows
  if (found === undefined) return null
  const { organizationId: _, userId: __, ...row } = found
  // The two statements may see different moments; the row, which was read first, decides.
  const output = row.status === 'in_progress' ? [] : await readToEnd(database, owner, places, first.rows)
  return { ...row, output }
}

interface ConversationContext {
  /** The response that has locked the conversation. */
  writer: string | null
  headResponseId: string | null
  /** `beginResponse` compares it, so that no response misses items that were added meanwhile. */
  nextPosition: number
  items: StoredItem[]
}

export async function selectConversationContext(
  database: Database,
  owner: Owner,
  conversationId: string,
): Promise<ConversationContext | null> {
  const places = conversationPlaces(conversationId)
  const { writer, headResponseId, nextPosition } = conversations
  const [[row], first] = await database.batch([
    database
      .select({ writer, headResponseId, nextPosition })
      .from(conversations)
      .where(isConversation(owner, conversationId)),
    database.execute(firstSliceQuery(owner, places)),
  ])
  if (row === undefined) return null
  return { ...row, items: await readToEnd(database, owner, places, first.rows, row.nextPosition) }
}

/** The context of a previous response. */
interface PreviousContext {
  conversationId: string | null
  /**
   * Whether the response was the last to write in its conversation. If not, a response that continues it forks the conversation.
   */
  isHead: boolean
  status: ResponseStatus
  /** Position in the conversation after its items; before them while it is in progress, and if it failed. */
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
  const [[row], first] = await database.batch([
    database
      .select({ conversationId, status, contextPosition, isHead })
      .from(responses)
      .leftJoin(conversations, and(eq(conversations.id, conversationId), ownedBy(conversations, owner)))
      .where(isResponse(owner, responseId)),
    database.execute(firstSliceQuery(owner, places)),
  ])
  if (row === undefined) return null
  const end = row.contextPosition ?? undefined
  return { ...row, items: await readToEnd(database, owner, places, first.rows, end) }
}

/** Items by id, in the order of the ids. Ids that the owner has no item for are left out. */
export async function selectItems(
  database: Database,
  owner: Owner,
  ids: readonly string[],
): Promise<StoredItem[]> {
  if (ids.length === 0) return []
  const places = sql`SELECT given.item_id, given.position::int
    FROM jsonb_array_elements_text(${JSON.stringify(ids.map(idParameter))}::jsonb)
    WITH ORDINALITY AS given(item_id, position)`
  const { rows } = await database.execute(firstSliceQuery(owner, places))
  return readToEnd(database, owner, places, rows)
}

/**
 * A page of a conversation. Large items shorten it.
 * @returns null without such a conversation; `unknown_item` when `after` is not in the list.
 */
export const listConversationItems = (
  database: Database,
  owner: Owner,
  conversationId: string,
  page: ItemPageRequest,
) => {
  const known = sql`SELECT FROM ${conversations} WHERE ${isConversation(owner, conversationId)}`
  return listItems(database, owner, conversationPlaces(conversationId), known, page)
}

export async function conversationExists(
  database: Database,
  owner: Owner,
  conversationId: string,
): Promise<boolean> {
  const { id } = conversations
  const rows = await database.select({ id }).from(conversations).where(isConversation(owner, conversationId))
  return rows.length > 0
}

/** A page of a response's input, references included. Otherwise as `listConversationItems`. */
export const listInputItems = (
  database: Database,
  owner: Owner,
  responseId: string,
  page: ItemPageRequest,
) => {
  const known = sql`SELECT FROM ${responses} WHERE ${isResponse(owner, responseId)}`
  return listItems(database, owner, usePlaces(responseId, 'input'), known, page)
}

async function listItems(
  database: Database,
  owner: Owner,
  places: SQL,
  known: SQL,
  { limit, order, after }: ItemPageRequest,
): Promise<ItemPage | 'unknown_item' | null> {
  const from =
    after == null
      ? undefined
      : sql`(SELECT position FROM (${places}) AS place WHERE item_id = ${idParameter(after)})`
  const [heads, rows] = await database.batch([
    database.execute(sql`SELECT EXISTS (${known}) AS known, ${from ?? 0}::int AS position`),
    database.execute(sliceQuery(owner, { places, order, limit, after: from })),
  ])
  const head = heads.rows[0] as { known: boolean; position: number | null } | undefined
  if (!head?.known) return null
  if (head.position === null) return 'unknown_item'
  const { items, hasMore } = readSlice(rows.rows, limit)
  return { items: items.map(({ item }) => item), hasMore }
}

/** The response that brought in an item. */
export interface ItemOrigin {
  /** A policy may apply to some models only. */
  model: string
  /** The form in which the item is shown. */
  compatibility: Compatibility
}

/** Origins by item id. */
export async function selectItemOrigins(
  database: Database,
  owner: Owner,
  ids: readonly string[],
): Promise<Map<string, ItemOrigin>> {
  if (ids.length === 0) return new Map()
  const rows = await database
    .select({ id: responseItems.id, model: responses.model, compatibility: responses.compatibility })
    .from(responseItems)
    .innerJoin(responses, eq(responses.id, responseItems.responseId))
    .where(and(inArray(responseItems.id, ids.map(idParameter)), ownedBy(responseItems, owner)))
  return new Map(rows.map(({ id, ...origin }) => [id, origin]))
}

/** An item of a conversation; null if the conversation does not have it. */
export async function selectConversationItem(
  database: Database,
  owner: Owner,
  conversationId: string,
  itemId: string,
): Promise<StoredItem | null> {
  const places = sql`${conversationPlaces(conversationId)} AND item_id = ${idParameter(itemId)}
    AND EXISTS (SELECT FROM ${conversations} WHERE ${isConversation(owner, conversationId)})`
  const { rows } = await database.execute(sliceQuery(owner, { places, order: 'asc', limit: 1 }))
  return readSlice(rows, 1).items[0]?.item ?? null
}
