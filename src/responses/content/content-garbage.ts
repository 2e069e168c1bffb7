import type { Database } from '../../../schema/database.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { withinTime } from '../../lib/time-limit.ts'
import { deleteResponse } from '../responses.store.ts'
import type { Owner } from '../types.ts'
import { deleteContentErasures, selectContentErasures } from './content-garbage.store.ts'
import type { ContentStore } from './content-store.ts'

/** How long a caller waits for its content to be gone; its rows are, and the rest follows. */
const ERASING_LIMIT_MS = 2_000
/** Keys of one round of what is left: what R2 deletes in one call. */
const ROUND = 1_000
/** Rounds of one run: it has to end before the next one begins. */
const MOST_ROUNDS = 100

export interface ErasureDeps {
  database: Database
  contentStore: Pick<ContentStore, 'remove'>
}

/**
 * Erases a response for good. What lies in the content store is noted together with the deletion of the rows, and
 * erased at once; if the content store is away, `eraseLeftContent` does it later.
 * @returns whether there was such a response. @throws when Postgres cannot be known to have deleted it.
 */
export async function eraseResponse(
  deps: ErasureDeps & { waitUntil: (work: Promise<unknown>) => void },
  owner: Owner,
  id: string,
): Promise<boolean> {
  const deleted = await deleteResponse(deps.database, owner, id)
  if (!deleted) return false
  const erasing = erase(deps, deleted.contentKeys).catch((error) =>
    logEvent('warn', 'content_not_erased', { error: errorText(error) }),
  )
  deps.waitUntil(erasing)
  await withinTime(erasing, ERASING_LIMIT_MS, 'erasing content').catch(() => {})
  return true
}

/**
 * Erases what earlier deletions could not: to be called now and then, by one at a time or by several.
 * @returns how much was erased. @throws when Postgres or the content store is away; what is left stays noted.
 */
export async function eraseLeftContent(deps: ErasureDeps): Promise<number> {
  let erased = 0
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const keys = await selectContentErasures(deps.database, ROUND)
    await erase(deps, keys)
    erased += keys.length
    if (keys.length < ROUND) break
  }
  if (erased > 0) logEvent('info', 'content_erased_later', { count: erased })
  return erased
}

async function erase({ database, contentStore }: ErasureDeps, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return
  await contentStore.remove(keys)
  await deleteContentErasures(database, keys)
}
