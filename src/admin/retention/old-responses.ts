import { deleteResponses, selectOldResponses } from '../../responses/store/delete-responses.store.ts'
import type { Budget } from './budget.ts'
import { type ConversationDeletionDeps, removeConversations } from './empty-conversations.ts'

const MOST_DELETED = 200

/**
 * Deletes responses that were made before a time with the items that they brought in, conversations of which nothing is left, and their
 * files. The job of left content erases items of the content store.
 * @returns whether nothing is left to delete.
 */
export function deleteOldResponses(
  deps: ConversationDeletionDeps,
  budget: Budget,
  organizationId: string,
  before: Date,
): Promise<boolean> {
  const { database } = deps
  return budget.drain(async () => {
    const old = await selectOldResponses(database, organizationId, before.getTime(), MOST_DELETED)
    await deleteResponses(
      database,
      organizationId,
      old.map(({ id }) => id),
    )
    const conversationIds = [...new Set(old.flatMap(({ conversationId }) => conversationId ?? []))]
    await removeConversations(deps, organizationId, conversationIds)
    return old.length
  }, MOST_DELETED)
}
