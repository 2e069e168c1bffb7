import type { Database } from '../../../../schema/database.ts'
import { errorText, logEvent } from '../../../lib/log.ts'
import { withinTime } from '../../../lib/time-limit.ts'
import type { Owner } from '../../model/types.ts'
import { isEmptyConversation } from '../../store/delete-response.store.ts'
import type { WorkspaceOf } from './workspace-client.ts'

interface RemovalDeps {
  workspaceOf: WorkspaceOf
  waitUntil: (work: Promise<unknown>) => void
}

/** Time that a caller waits for the removal. It continues afterwards. */
const REMOVAL_LIMIT_MS = 2_000
const TIME_LIMIT_MS = 10_000

/**
 * Deletes the files of a response without a conversation, or of a conversation. Never rejects: if the script of tools is not
 * available, the workspace deletes itself when it has not been used for its lifetime.
 * @returns whether it is known that they are gone; if not, it may be repeated.
 */
export async function removeWorkspace(
  deps: RemovalDeps,
  owner: Owner,
  workspaceId: string,
): Promise<boolean> {
  const removal = deps
    .workspaceOf(owner, workspaceId)
    .run('remove', {}, { timeLimit: TIME_LIMIT_MS })
    .then(() => true)
    .catch((error) => {
      logEvent('warn', 'workspace_not_removed', { error: errorText(error) })
      return false
    })
  deps.waitUntil(removal)
  return withinTime(removal, REMOVAL_LIMIT_MS, 'removing files').catch(() => false)
}

/**
 * Deletes the files of a conversation whose last response was deleted. @returns as `removeWorkspace`; true for a conversation
 * that is not empty. @throws when Postgres is not available.
 */
export async function removeFilesOfEmpty(
  deps: RemovalDeps & { database: Database },
  owner: Owner,
  conversationId: string,
): Promise<boolean> {
  if (!(await isEmptyConversation(deps.database, owner, conversationId))) return true
  return removeWorkspace(deps, owner, conversationId)
}
