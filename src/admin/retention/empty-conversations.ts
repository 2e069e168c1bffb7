import * as z from 'zod'
import type { Database } from '../../../schema/database.ts'
import {
  deleteEmptyConversations,
  selectEmptyConversations,
} from '../../responses/store/delete-responses.store.ts'
import { removeWorkspace } from '../../responses/tools/workspace/remove-workspace.ts'
import type { WorkspaceOf } from '../../responses/tools/workspace/workspace-client.ts'
import type { Budget } from './budget.ts'
import { selectConversationSearch, updateConversationSearch } from './retention-settings.store.ts'

export interface ConversationDeletionDeps {
  database: Database
  workspaceOf: WorkspaceOf
  waitUntil: (work: Promise<unknown>) => void
}

/** Conversations that one statement examines, and those of one turn of an organization. */
const PAGE = 1_000
const MOST_PAGES = 20
/** Conversations that are in use are examined again by the next search only. */
const SEARCHED_FOR_MS = 86_400_000
/** Each may wait for seconds, where the script of tools does not answer. */
const WORKSPACES_AT_ONCE = 20

/** A search through the conversations of an organization, which takes as many turns as it needs. */
const conversationSearch = z.object({
  /** Milliseconds since the epoch. */
  begunAt: z.number(),
  /** The last conversation that was examined; null after the last of all. */
  after: z.object({ at: z.string(), id: z.string() }).nullable(),
})

/**
 * Deletes conversations that were made before a time and are empty, where none of their responses is deleted now: their last response was
 * deleted by its user, or there was never one, or a run of this job was killed. A search for them begins once a day.
 */
export async function deleteLeftConversations(
  deps: ConversationDeletionDeps,
  budget: Budget,
  organizationId: string,
  { before, now }: { before: Date; now: number },
): Promise<void> {
  const { database } = deps
  const stored = conversationSearch.safeParse(await selectConversationSearch(database, organizationId)).data
  if (stored?.after === null && Math.abs(now - stored.begunAt) < SEARCHED_FOR_MS) return
  const begunAt = stored?.after ? stored.begunAt : now
  let after = stored?.after ?? null
  for (let pages = 0; pages < MOST_PAGES && budget.take(); pages += 1) {
    const { ids, next } = await selectEmptyConversations(
      database,
      organizationId,
      before.getTime(),
      after,
      PAGE,
    )
    await removeConversations(deps, organizationId, ids)
    await updateConversationSearch(database, organizationId, { begunAt, after: next })
    if (next === null) return
    after = next
  }
}

/** Deletes those of some conversations that are empty, with their files. */
export async function removeConversations(
  deps: ConversationDeletionDeps,
  organizationId: string,
  ids: readonly string[],
): Promise<void> {
  const empty = await deleteEmptyConversations(deps.database, organizationId, ids)
  for (let start = 0; start < empty.length; start += WORKSPACES_AT_ONCE) {
    const some = empty.slice(start, start + WORKSPACES_AT_ONCE)
    await Promise.all(some.map(({ id, userId }) => removeWorkspace(deps, { organizationId, userId }, id)))
  }
}
