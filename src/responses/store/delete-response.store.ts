import { sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { conversationItems, conversations, responseItemUses, responses } from '../../../schema/responses.ts'
import type { Owner } from '../model/types.ts'
import { contentGarbageStatement, idParameter, inOneBatch, isConversation, isResponse } from './rows.store.ts'

/**
 * Deletes a response and the items that it brought in, also where other responses use them. Items that it only referred
 * to stay, but leave the conversation places that it gave them.
 * @returns keys of its items' content, for the caller to erase, and its conversation; null when there is no such response.
 */
export async function deleteResponse(
  database: Database,
  owner: Owner,
  id: string,
): Promise<{ contentKeys: string[]; conversationId: string | null } | null> {
  const given = isResponse(owner, id)
  const { itemId, responseId } = conversationItems
  const results = await inOneBatch(database, [
    sql`SELECT 1 FROM ${responses} WHERE ${given} FOR UPDATE`,
    sql`UPDATE ${conversations} SET writer = nullif(writer, ${responses.id}),
        head_response_id = nullif(head_response_id, ${responses.id})
      FROM ${responses} WHERE ${given} AND ${conversations.id} = ${responses.conversationId}`,
    sql`DELETE FROM ${conversationItems} WHERE ${responseId} = ${idParameter(id)} AND ${itemId} = ANY(ARRAY(
      SELECT ${responseItemUses.itemId} FROM ${responses}
      JOIN ${responseItemUses} ON ${responseItemUses.responseId} = ${responses.id} WHERE ${given}))`,
    contentGarbageStatement(owner, given),
    sql`DELETE FROM ${responses} WHERE ${given} RETURNING conversation_id`,
  ])
  const [keys, deleted] = results.slice(-2)
  const [row] = deleted ?? []
  if (!row) return null
  return {
    contentKeys: (keys ?? []).map((each) => String(each.content_key)),
    conversationId: row.conversation_id as string | null,
  }
}

/** Whether a conversation has no item and no writer, because its responses were deleted. False for one that does not exist. */
export async function isEmptyConversation(database: Database, owner: Owner, id: string): Promise<boolean> {
  const { rows } = await database.execute(sql`SELECT 1 FROM ${conversations}
    WHERE ${isConversation(owner, id)} AND ${conversations.writer} IS NULL AND NOT EXISTS (
      SELECT FROM ${conversationItems} WHERE ${conversationItems.conversationId} = ${conversations.id})`)
  return rows.length > 0
}
