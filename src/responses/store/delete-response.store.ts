import { sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { conversationItems, conversations } from '../../../schema/responses.ts'
import type { Owner } from '../model/types.ts'
import { deleteResponses } from './delete-responses.store.ts'
import { idParameter, isConversation } from './rows.store.ts'

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
  const deleted = await deleteResponses(database, owner, [idParameter(id)])
  if (deleted.responses === 0) return null
  return { contentKeys: deleted.contentKeys, conversationId: deleted.conversationIds[0] ?? null }
}

/** Whether a conversation has no item and no writer, because its responses were deleted. False for one that does not exist. */
export async function isEmptyConversation(database: Database, owner: Owner, id: string): Promise<boolean> {
  const { rows } = await database.execute(sql`SELECT 1 FROM ${conversations}
    WHERE ${isConversation(owner, id)} AND ${conversations.writer} IS NULL AND NOT EXISTS (
      SELECT FROM ${conversationItems} WHERE ${conversationItems.conversationId} = ${conversations.id})`)
  return rows.length > 0
}
