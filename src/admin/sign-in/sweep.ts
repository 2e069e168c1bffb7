import type { Database } from '../../../schema/database.ts'
import type { Clock } from '../../lib/clock.ts'
import { deleteExpiredPlaygroundKeys, deleteExpiredSessions, deleteExpiredSetupLinks } from './sweep.store.ts'

const MOST_DELETED = 1_000

/**
 * Deletes sessions, setup links and keys of playgrounds that have expired. One that was ended, or used, goes with its time: a session at most seven days
 * after its sign-in, a link after a day. Until then its row keeps a ceremony from making a second session. The audit trail has all
 * of them. Ceremonies are not stored.
 */
export async function pruneSignIns({ database, clock }: { database: Database; clock: Clock }): Promise<void> {
  const now = clock()
  while ((await deleteExpiredSessions(database, now, MOST_DELETED)) === MOST_DELETED);
  while ((await deleteExpiredSetupLinks(database, now, MOST_DELETED)) === MOST_DELETED);
  while ((await deleteExpiredPlaygroundKeys(database, now, MOST_DELETED)) === MOST_DELETED);
}
