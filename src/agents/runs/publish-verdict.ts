import { newId } from '../../lib/ids.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import type { AgentDeps } from '../agent-deps.ts'
import { overdueLimits, publishAgain } from '../queue/overdue-messages.ts'
import { DELIVERY_PATHS } from '../queue/run-queue.ts'
import { type DueVerdictKey, markVerdictPublished, takeOverdueVerdicts } from './verdicts.store.ts'

type PublishDeps = Pick<AgentDeps, 'runQueue' | 'database' | 'clock'>

/** @throws when QStash does not accept it. */
async function publishVerdict(
  { runQueue }: Pick<PublishDeps, 'runQueue'>,
  { organizationId, runId, number }: DueVerdictKey,
  delay: number,
): Promise<void> {
  if (!runQueue) throw new Error('QStash is not configured')
  await runQueue.publish({
    path: DELIVERY_PATHS.verdicts,
    body: { organization_id: organizationId, run_id: runId, step: number },
    // A message too many does nothing, so that none has to be dropped by its id.
    deduplicationId: newId('verdict'),
    delay,
  })
}

/**
 * Publishes the message of a verdict that is stored as due. Never throws: its row stays until the verdict is written, and the
 * sweep publishes it again.
 */
export async function announceVerdict(deps: PublishDeps, key: DueVerdictKey, delay = 0): Promise<void> {
  try {
    await publishVerdict(deps, key, Math.max(0, delay))
    await markVerdictPublished(deps.database, key, deps.clock())
  } catch (error) {
    logNotPublished(key, error)
  }
}

/** Publishes the messages of due verdicts that were lost. @throws what the database throws. */
export async function republishVerdicts(deps: PublishDeps): Promise<void> {
  if (!deps.runQueue) return
  const overdue = await takeOverdueVerdicts(deps.database, overdueLimits(deps.clock()))
  await publishAgain(overdue, (key) =>
    publishVerdict(deps, key, 0).catch(async (error) => {
      logNotPublished(key, error)
      await markVerdictPublished(deps.database, key, null)
    }),
  )
}

const logNotPublished = ({ runId, number }: DueVerdictKey, error: unknown) =>
  logEvent('warn', 'verdict_not_published', { run_id: runId, step: number, error: errorText(error) })
