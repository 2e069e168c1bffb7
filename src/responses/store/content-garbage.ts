import type { Database } from '../../../schema/database.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { withinTime } from '../../lib/time-limit.ts'
import type { ContentStore } from '../content/content-store.ts'
import type { Owner } from '../model/types.ts'
import { deleteContentErasures, selectContentErasures } from './content-garbage.store.ts'
import { deleteResponse } from './delete-response.store.ts'

/** Time that a caller waits for the erasure of content. It continues afterwards. */
const ERASING_LIMIT_MS = 2_000
/** Keys of one round: R2 deletes so many in one call. */
const ROUND = 1_000
/** Rounds of one run, so that it ends before the next one begins. */
const MOST_ROUNDS = 100

interface ErasureDeps {
  database: Database
  contentStore: Pick<ContentStore, 'remove'>
}

/**
 * Deletes the rows of a response, which records its content as garbage, and erases that content. If the content store is
 * not available, `eraseLeftContent` does it later.
 * @returns its conversation; null when there was no such response. @throws when it is not known that Postgres has deleted it.
 */
export async function eraseResponse(
  deps: ErasureDeps & { waitUntil: (work: Promise<unknown>) => void },
  owner: Owner,
  id: string,
): Promise<{ conversationId: string | null } | null> {
  const deleted = await deleteResponse(deps.database, owner, id)
  if (!deleted) return null
  const erasing = eraseContent(deps, deleted.contentKeys).catch((error) =>
    logEvent('warn', 'content_not_erased', { error: errorText(error) }),
  )
  deps.waitUntil(erasing)
  await withinTime(erasing, ERASING_LIMIT_MS, 'erasing content').catch(() => {})
  return { conversationId: deleted.conversationId }
}

/**
 * Erases the content that earlier deletions could not erase. Called by a schedule, and at the end of the erasure of a person; concurrent
 * calls are safe.
 * @returns number of erased keys. @throws when Postgres or the content store is not available; the rest stays recorded.
 */
export async function eraseLeftContent(deps: ErasureDeps): Promise<number> {
  let erased = 0
  let since: Date | null = null
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const { keys, last } = await selectContentErasures(deps.database, since, ROUND)
    since = last
    await eraseContent(deps, keys)
    erased += keys.length
    if (keys.length < ROUND) break
  }
  if (erased > 0) logEvent('info', 'content_erased_later', { count: erased })
  return erased
}

/**
 * Erases content that a deletion has recorded as garbage, and its record.
 * @throws when Postgres or the content store is not available; the content stays recorded.
 */
export async function eraseContent(
  { database, contentStore }: ErasureDeps,
  keys: readonly string[],
): Promise<void> {
  if (keys.length === 0) return
  await contentStore.remove(keys)
  await deleteContentErasures(database, keys)
}
