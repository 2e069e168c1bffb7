import { sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { conversationItems, conversations, responseItemUses, responses } from '../../../schema/responses.ts'
import type { Owner } from '../types.ts'
import { contentGarbageStatement, inOneBatch, isResponse } from './rows.store.ts'

/**
 * Deletes a response and the items that it brought in, also where other responses use them. Items that it only referred
 * to stay, but leave the conversation places that it gave them.
 * @returns keys of its items' content, for the caller to erase; null when there is no such response.
 */
export async function deleteResponse(
  database: Database,
  owner: Owner,
  id: string,
): Promise<{ contentKeys: string[] } | null> {
  const given = isResponse(owner, id)
  const { itemId, responseId } = conversationItems
  const results = await inOneBatch(database, [
    sql`SELECT 1 FROM ${responses} WHERE ${given} FOR UPDATE`,
    sql`UPDATE ${conversations} SET writer = nullif(writer, ${responses.id}),
        head_response_id = nullif(head_response_id, ${responses.id})
      FROM ${responses} WHERE ${given} AND ${conversations.id} = ${responses.conversationId}`,
    sql`DELETE FROM ${conversationItems} USING ${responseItemUses}, ${responses}
      WHERE ${given} AND ${responseItemUses.responseId} = ${responses.id}
        AND ${itemId} = ${responseItemUses.itemId} AND ${responseId} = ${responses.id}`,
    contentGarbageStatement(owner, given),
    sql`DELETE FROM ${responses} WHERE ${given} RETURNING id`,
  ])
  const [keys, deleted] = results.slice(-2)
  if (!deleted?.length) return null
  return { contentKeys: (keys ?? []).map((row) => String(row.content_key)) }
}
