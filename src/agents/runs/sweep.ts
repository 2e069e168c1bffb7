import { newId } from '../../lib/ids.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import type { AgentDeps } from '../agent-deps.ts'
import { overdueLimits, publishAgain } from '../queue/overdue-messages.ts'
import { publishRun } from './publish-run.ts'
import { deleteExpiredRequests, markUnpublished, takeOverdue } from './sweep.store.ts'

type SweepDeps = Pick<AgentDeps, 'runQueue' | 'database' | 'clock'>

const MOST_DELETED = 1_000

/**
 * Publishes the messages of runs that were lost: never published, without an effect, or of a delivery that died with its
 * watchdog. A message too many does nothing.
 * @throws what the database throws.
 */
export async function republishOverdue(deps: SweepDeps): Promise<void> {
  if (!deps.runQueue) return
  const overdue = await takeOverdue(deps.database, overdueLimits(deps.clock()))
  await publishAgain(overdue, (revision) =>
    // A fresh id: QStash would drop the one of the lost message.
    publishRun(deps, revision, { again: newId('sweep') }).catch(async (error) => {
      logEvent('warn', 'run_not_published', { run_id: revision.runId, error: errorText(error) })
      await markUnpublished(deps.database, revision)
    }),
  )
}

/** Deletes requests for runs that are not recognized any more. Runs are deleted by their retention (`admin/retention`). */
export async function pruneRunRequests({ database, clock }: SweepDeps): Promise<void> {
  await deleteExpiredRequests(database, clock(), MOST_DELETED)
}
