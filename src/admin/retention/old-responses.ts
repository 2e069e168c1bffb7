import type { Database } from '../../../schema/database.ts'
import {
  deleteEmptyConversations,
  deleteResponses,
  selectOldResponses,
} from '../../responses/store/delete-responses.store.ts'
import { removeWorkspace } from '../../responses/tools/workspace/remove-workspace.ts'
import type { WorkspaceOf } from '../../responses/tools/workspace/workspace-client.ts'
import type { Budget } from './budget.ts'

export interface ResponseDeletionDeps {
  database: Database
  workspaceOf: WorkspaceOf
  waitUntil: (work: Promise<unknown>) => void
}

const MOST_DELETED = 200

/**
 * Deletes responses that were made before a time with the items that they brought in, conversations of which nothing is left, and their
 * files. The job of left content erases items of the content store.
 * @returns whether nothing is left to delete.
 */
export function deleteOldResponses(
  deps: ResponseDeletionDeps,
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
    const empty = await deleteEmptyConversations(database, organizationId, conversationIds)
    for (const { id, userId } of empty) await removeWorkspace(deps, { organizationId, userId }, id)
    return old.length
  }, MOST_DELETED)
}
