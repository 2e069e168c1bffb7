import { errorText, logEvent } from '../../lib/log.ts'
import type { AgentDeps } from '../agent-deps.ts'
import { DELIVERY_PATHS } from '../queue/run-queue.ts'
import { markPublished, type RunRevision } from './progress.store.ts'

type PublishDeps = Pick<AgentDeps, 'runQueue' | 'database' | 'clock'>

/** Options of one publication. */
interface Publication {
  /** Milliseconds until it is delivered. */
  delay?: number
  /** Distinguishes it from earlier ones of the same revision, which QStash drops for ten minutes. */
  again?: string
}

/** Publishes the message of a revision. @throws when QStash does not accept it. */
export async function publishRun(
  { runQueue }: Pick<PublishDeps, 'runQueue'>,
  revision: RunRevision,
  { delay = 0, again }: Publication = {},
): Promise<void> {
  if (!runQueue) throw new Error('QStash is not configured')
  const { organizationId, runId, rev } = revision
  const deduplicationId = [runId, rev, ...(again === undefined ? [] : [again])].join('-')
  const body = { organization_id: organizationId, run_id: runId, rev }
  await runQueue.publish({ path: DELIVERY_PATHS.runs, body, deduplicationId, delay })
}

/**
 * Publishes the message of a change that is stored. Never throws: its row stays in the outbox until it is done, and the sweep
 * publishes it again.
 */
export async function announceRun(deps: PublishDeps, revision: RunRevision, delay = 0): Promise<void> {
  try {
    await publishRun(deps, revision, { delay: Math.max(0, delay) })
    await markPublished(deps.database, revision, deps.clock())
  } catch (error) {
    logEvent('warn', 'run_not_published', { run_id: revision.runId, error: errorText(error) })
  }
}
