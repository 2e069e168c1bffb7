import { and, type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { conversationItems, conversations, responses } from '../../../schema/responses.ts'
import { timeParameter } from '../../../schema/sql-values.ts'
import type { Compatibility } from '../../wire/compatibility.ts'
import type { Owner } from '../model/types.ts'
import { contextPlaces } from './items.store.ts'
import {
  contentGarbageStatement,
  idParameter,
  inOneBatch,
  isConversation,
  isInProgress,
  isResponse,
  lockConversation,
  ownedBy,
  ownItem,
} from './rows.store.ts'

// The first write of a response: its row, and the lock on its conversation. Rolling it back releases both.

/** The row of a new response. */
interface NewResponse {
  id: string
  keyId: string
  model: string
  compatibility: Compatibility
  /** Milliseconds since the epoch. */
  createdAt: number
  /**
   * `creates`: the id is a fresh one. `position`: `nextPosition` of the context that was read; the response is refused
   * when the conversation has grown since then.
   */
  conversation: { id: string; creates: boolean; position?: number | undefined } | null
  /** The response whose context is copied into a conversation that is created. */
  forkOf?: string | null | undefined
  previousResponseId: string | null
  policyVersion: string
}

/**
 * Writes the row of a response and makes it the writer of its conversation, or does neither. Of several concurrent calls
 * for one conversation, one succeeds. A repeated call for the same id changes nothing.
 * @returns `lockedBy`: the response that is the writer, or this one if an earlier start of it has left its row; `moved`: the
 *   conversation has grown since its context was read (only with a position); `not_found`: no such conversation, or no such
 *   response to fork.
 */
export async function beginResponse(
  database: Database,
  owner: Owner,
  response: NewResponse,
): Promise<'begun' | 'moved' | 'not_found' | { lockedBy: string }> {
  const { id, conversation } = response
  const results = await inOneBatch(database, [
    ...conversationStatements(owner, response),
    insertStatement(owner, response),
    resultStatement(owner, response),
  ])
  const result = results.at(-1)?.[0] as BeginResult | undefined
  if (result?.begun) return 'begun'
  if (result?.exists) return { lockedBy: id }
  if (result === undefined || result.next_position === null) return 'not_found'
  if (result.writer !== null && result.writer !== id) return { lockedBy: result.writer }
  const expected = conversation?.position
  return expected !== undefined && expected !== result.next_position ? 'moved' : 'not_found'
}

/** Rows that an earlier start of a response may have left in Postgres. */
interface LeftResponse {
  id: string
  /** The conversation that it may have locked, besides the one of its row; null if none is known. */
  conversationId: string | null
  /** Milliseconds since the epoch. The row of a start after it is not changed: this call may reach Postgres late. */
  begunUntil: number
}

/**
 * Rolls back `beginResponse`: deletes the row while it is in progress, and releases the conversation. A response that has
 * ended is not changed.
 */
export async function releaseConversation(
  database: Database,
  owner: Owner,
  { id, conversationId, begunUntil }: LeftResponse,
): Promise<void> {
  const left = sql`(${isInProgress(owner, id)} AND ${responses.createdAt} <= ${timeParameter(begunUntil)})`
  const later = sql`(${isInProgress(owner, id)} AND ${responses.createdAt} > ${timeParameter(begunUntil)})`
  const known = conversationId === null ? null : idParameter(conversationId)
  const locked = (rows: SQL) =>
    sql`(${ownedBy(conversations, owner)} AND ${conversations.writer} = ${idParameter(id)}
      AND ${conversations.id} IN (SELECT ${known}::text UNION ALL ${rows}))`
  await inOneBatch(database, [
    // The conversation first, as in `beginResponse`: the two run one after the other.
    ...(conversationId === null ? [] : [lockConversation(owner, conversationId)]),
    sql`SELECT 1 FROM ${conversations}
      WHERE ${locked(sql`SELECT conversation_id FROM ${responses} WHERE ${left}`)} FOR NO KEY UPDATE`,
    sql`SELECT 1 FROM ${responses} WHERE ${left} FOR UPDATE`,
    contentGarbageStatement(owner, left),
    sql`WITH deleted AS (DELETE FROM ${responses} WHERE ${left} RETURNING conversation_id)
      UPDATE ${conversations} SET writer = NULL
      WHERE ${locked(sql`SELECT conversation_id FROM deleted`)}
        AND NOT EXISTS (SELECT FROM ${responses} WHERE ${later})`,
  ])
}

/** The query covers all owners: a repeated begin must not lock the conversation again, even after the response has ended. */
const isNew = (id: string): SQL =>
  sql`NOT EXISTS (SELECT FROM ${responses} WHERE ${responses.id} = ${idParameter(id)})`

/** Creates the conversation as locked, or locks the existing one if it has no writer. */
function conversationStatements(owner: Owner, response: NewResponse): SQL[] {
  const { conversation, id } = response
  if (conversation === null) return []
  if (conversation.creates) return creatingStatements(owner, response, conversation.id)
  const unchanged =
    conversation.position === undefined ? sql`true` : sql`next_position = ${conversation.position}`
  return [
    lockConversation(owner, conversation.id),
    sql`UPDATE ${conversations} SET writer = ${id}
      WHERE ${and(isConversation(owner, conversation.id), isNew(id), unchanged)} AND ${conversations.writer} IS NULL`,
  ]
}

function creatingStatements(
  owner: Owner,
  { id, forkOf, createdAt }: NewResponse,
  conversationId: string,
): SQL[] {
  const row = sql`${conversationId}::text, ${owner.organizationId}::uuid, ${owner.userId}::uuid, ${id}::text, ${timeParameter(createdAt)}`
  const columns = sql`id, organization_id, user_id, writer, created_at, next_position`
  if (!forkOf) {
    return [
      sql`INSERT INTO ${conversations} (${columns}) SELECT ${row}, 0 WHERE ${isNew(id)} ON CONFLICT DO NOTHING`,
    ]
  }
  const places = contextPlaces(owner, forkOf)
  return [
    // Waits for a concurrent deletion of an item, so that no reference to a deleted item is copied.
    sql`SELECT count(*) FROM (SELECT item.id FROM (${places}) AS place
      CROSS JOIN LATERAL (${ownItem(owner, sql`place.item_id`)} FOR KEY SHARE) AS item) AS kept`,
    sql`INSERT INTO ${conversations} (${columns})
      SELECT ${row}, (SELECT count(*) FROM (${places}) AS place)
      FROM ${responses} WHERE ${and(isResponse(owner, forkOf), isNew(id))} ON CONFLICT DO NOTHING`,
    sql`INSERT INTO ${conversationItems} (conversation_id, position, item_id, response_id)
      SELECT ${conversations.id}, row_number() OVER (ORDER BY place.position) - 1, place.item_id, place.response_id
      FROM ${conversations} CROSS JOIN (${places}) AS place
      WHERE ${and(isConversation(owner, conversationId), isNew(id))} AND ${conversations.writer} = ${id}
      ON CONFLICT DO NOTHING`,
  ]
}

/** Inserts the row only if the response is the writer of its conversation. */
function insertStatement(owner: Owner, response: NewResponse): SQL {
  const { id, keyId, model, compatibility, conversation, previousResponseId, policyVersion } = response
  const row = sql`${id}::text, ${owner.organizationId}::uuid, ${owner.userId}::uuid, ${keyId}::text,
    ${previousResponseId}::text, ${model}::text, ${compatibility}::text, 'in_progress', ${policyVersion}::text,
    ${timeParameter(response.createdAt)}`
  return sql`INSERT INTO ${responses} (id, organization_id, user_id, key_id, previous_response_id, model, compatibility,
      status, policy_version, created_at, conversation_id, context_position)
    SELECT ${row}, ${
      conversation === null
        ? sql`NULL, NULL`
        : sql`${conversations.id}, ${conversations.nextPosition} FROM ${conversations}
            WHERE ${isConversation(owner, conversation.id)} AND ${conversations.writer} = ${id}`
    } ON CONFLICT DO NOTHING`
}

interface BeginResult extends Record<string, unknown> {
  begun: boolean
  exists: boolean
  writer: string | null
  next_position: number | null
}

/** The time of its row tells a start from an earlier one of the same id, whose statement may reach Postgres later. */
function resultStatement(owner: Owner, { id, conversation, createdAt }: NewResponse): SQL {
  const known = conversation === null ? sql`false` : isConversation(owner, conversation.id)
  const place = conversation === null ? null : idParameter(conversation.id)
  const isOwn = sql`${responses.createdAt} = ${timeParameter(createdAt)}
    AND ${responses.conversationId} IS NOT DISTINCT FROM ${place}::text`
  return sql`SELECT EXISTS (SELECT FROM ${responses} WHERE ${isResponse(owner, id)} AND ${isOwn}) AS begun,
    EXISTS (SELECT FROM ${responses} WHERE ${isResponse(owner, id)}) AS exists,
    (SELECT writer FROM ${conversations} WHERE ${known}) AS writer,
    (SELECT next_position FROM ${conversations} WHERE ${known}) AS next_position`
}
