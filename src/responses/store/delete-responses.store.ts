import { type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { executeInOrder } from '../../../schema/read-in-order.ts'
import {
  conversationItems,
  conversations,
  responseItems,
  responseItemUses,
  responses,
} from '../../../schema/responses.ts'
import { textArray, timeParameter } from '../../../schema/sql-values.ts'
import type { Owner } from '../model/types.ts'
import { contentGarbageStatement, inOneBatch, isItemOf, ownedBy } from './rows.store.ts'

// Deletion of responses, and of many at once for retention and the erasure of a person. Rows are locked in the order of `rows.store.ts`.

/** An ended response, as far as its deletion needs it. */
interface EndedResponse {
  id: string
  userId: string
  conversationId: string | null
}

/** The oldest responses of an organization that have ended, made before a time. */
export async function selectOldResponses(
  database: Database,
  organizationId: string,
  before: number,
  most: number,
): Promise<EndedResponse[]> {
  const rows = await executeInOrder<{ id: string; user_id: string; conversation_id: string | null }>(
    database,
    sql`
      SELECT id, user_id, conversation_id FROM ${responses}
      WHERE organization_id::text = ${organizationId} AND created_at < ${timeParameter(before)} AND status <> 'in_progress'
      ORDER BY created_at, id LIMIT ${most}`,
  )
  return rows.map(({ id, user_id: userId, conversation_id: conversationId }) => ({
    id,
    userId,
    conversationId,
  }))
}

/** What a deletion has removed. */
interface DeletedResponses {
  responses: number
  items: number
  /** Keys of the items' content, which is recorded as garbage, for the caller to erase. */
  contentKeys: string[]
  /** Conversations that the responses belonged to. */
  conversationIds: string[]
}

/**
 * Deletes responses and the items that they brought in, also where other responses use them, and records their content as garbage. Items
 * that they only referred to stay, but leave the conversation places that the responses gave them.
 * @param of an organization, or one user of it: responses of others count as ones that do not exist.
 */
export async function deleteResponses(
  database: Database,
  of: string | Owner,
  ids: readonly string[],
): Promise<DeletedResponses> {
  if (ids.length === 0) return { responses: 0, items: 0, contentKeys: [], conversationIds: [] }
  const organizationId = typeof of === 'string' ? of : of.organizationId
  const isOf =
    typeof of === 'string' ? sql`${responses.organizationId} = ${of}::uuid` : ownedBy(responses, of)
  const given = sql`(${responses.id} = ANY(${textArray(ids)}) AND ${isOf})`
  const results = await inOneBatch(database, [
    sql`SELECT 1 FROM ${responses} WHERE ${given} ORDER BY id FOR UPDATE`,
    sql`UPDATE ${conversations} SET
        writer = CASE WHEN writer = ANY(${textArray(ids)}) THEN NULL ELSE writer END,
        head_response_id = CASE WHEN head_response_id = ANY(${textArray(ids)}) THEN NULL ELSE head_response_id END
      WHERE id = ANY(ARRAY(SELECT conversation_id FROM ${responses} WHERE ${given} AND conversation_id IS NOT NULL))`,
    sql`DELETE FROM ${conversationItems} WHERE response_id = ANY(${textArray(ids)}) AND item_id = ANY(ARRAY(
      SELECT item_id FROM ${responseItemUses}
      WHERE response_id = ANY(ARRAY(SELECT id FROM ${responses} WHERE ${given}))))`,
    contentGarbageStatement({ organizationId }, given),
    sql`DELETE FROM ${responseItems} WHERE ${isItemOf(given)} RETURNING 1 AS deleted`,
    sql`DELETE FROM ${responses} WHERE ${given} RETURNING conversation_id`,
  ])
  const [keys = [], items = [], deleted = []] = results.slice(-3)
  return {
    responses: deleted.length,
    items: items.length,
    contentKeys: keys.map((row) => String(row.content_key)),
    conversationIds: deleted.flatMap((row) => (row.conversation_id as string | null) ?? []),
  }
}

/**
 * SQL of whether a conversation has no item, no writer and no response. Looked up for each one: without OFFSET, Postgres may read all items
 * into a hash.
 */
const isEmpty = (conversation: SQL): SQL => sql`${conversation}.writer IS NULL
  AND NOT EXISTS (SELECT FROM ${conversationItems} WHERE conversation_id = ${conversation}.id OFFSET 0)
  AND NOT EXISTS (SELECT FROM ${responses} WHERE conversation_id = ${conversation}.id OFFSET 0)`

/** A place in the conversations of an organization, by their age. */
interface ConversationPosition {
  /** As Postgres has it, with microseconds. */
  at: string
  id: string
}

/**
 * Searches the conversations of an organization that were made before a time for empty ones, from the oldest on.
 * @param after the last one that was examined before. @param most that are examined now.
 * @returns the ids of the empty ones; `next` is null where no more are to be examined.
 */
export async function selectEmptyConversations(
  database: Database,
  organizationId: string,
  before: number,
  after: ConversationPosition | null,
  most: number,
): Promise<{ ids: string[]; next: ConversationPosition | null }> {
  const isAfter =
    after === null ? sql`true` : sql`(created_at, id) > (${after.at}::timestamptz, ${after.id}::text)`
  const rows = await executeInOrder<{ examined: number; at: string; id: string; empty: string[] }>(
    database,
    sql`
      WITH page AS MATERIALIZED (
        SELECT id, created_at, writer FROM ${conversations}
        WHERE organization_id::text = ${organizationId} AND created_at < ${timeParameter(before)} AND ${isAfter}
        ORDER BY created_at, id LIMIT ${most})
      SELECT (SELECT count(*) FROM page)::int AS examined, last.created_at::text AS at, last.id,
        to_jsonb(ARRAY(SELECT id FROM page WHERE ${isEmpty(sql`page`)})) AS empty
      FROM (SELECT * FROM page ORDER BY created_at DESC, id DESC LIMIT 1) AS last`,
  )
  const [page] = rows
  if (!page) return { ids: [], next: null }
  return { ids: page.empty, next: page.examined < most ? null : { at: page.at, id: page.id } }
}

/** Deletes conversations that have no item, no writer and no response any more. @returns those, with their owners. */
export async function deleteEmptyConversations(
  database: Database,
  organizationId: string,
  ids: readonly string[],
): Promise<Array<{ id: string; userId: string }>> {
  if (ids.length === 0) return []
  const { rows } = await database.execute<{ id: string; user_id: string }>(sql`
    DELETE FROM ${conversations} AS conversation
    WHERE id = ANY(${textArray(ids)}) AND organization_id = ${organizationId}::uuid AND ${isEmpty(sql`conversation`)}
    RETURNING id, user_id`)
  return rows.map(({ id, user_id: userId }) => ({ id, userId }))
}

/**
 * Deletes conversations of an owner, whose responses are deleted: positions of items that others still have go along.
 * @returns how many.
 */
export async function deleteConversations(
  database: Database,
  { organizationId, userId }: Owner,
  ids: readonly string[],
): Promise<number> {
  if (ids.length === 0) return 0
  const { rows } = await database.execute(sql`
    DELETE FROM ${conversations} AS conversation
    WHERE id = ANY(${textArray(ids)}) AND organization_id = ${organizationId}::uuid AND user_id = ${userId}::uuid
      AND NOT EXISTS (SELECT FROM ${responses} WHERE conversation_id = conversation.id)
    RETURNING 1 AS deleted`)
  return rows.length
}
