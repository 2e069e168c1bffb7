import { errorText, logEvent } from '../../lib/log.ts'
import type { AgentDeps } from '../agent-deps.ts'
import type { RunQueue } from '../queue/run-queue.ts'
import {
  deleteRemovedTrigger,
  markTriggerPublished,
  selectUnpublished,
  type UnpublishedTrigger,
} from './triggers.store.ts'

const MOST_TRIGGERS = 100

type TriggerDeps = Pick<AgentDeps, 'database' | 'runQueue'>

/**
 * Brings the schedules of QStash to the state of the triggers that have changed. A change that QStash does not accept
 * is tried again by the scheduled job.
 * @param agentId null: of every agent of the deployment. @throws what the database throws.
 */
export async function publishTriggers(deps: TriggerDeps, agentId: string | null = null): Promise<void> {
  const { database, runQueue } = deps
  if (!runQueue) return
  for (const trigger of await selectUnpublished(database, agentId, MOST_TRIGGERS)) {
    try {
      await publishTrigger(runQueue, trigger)
    } catch (error) {
      const { agentId: agent, name } = trigger
      logEvent('warn', 'trigger_not_published', { agent_id: agent, trigger: name, error: errorText(error) })
      continue
    }
    if (trigger.removedAt) await deleteRemovedTrigger(database, trigger)
    else await markTriggerPublished(database, trigger)
  }
}

async function publishTrigger(queue: RunQueue, trigger: UnpublishedTrigger): Promise<void> {
  const { organizationId, agentId, name, kind, cron, removedAt } = trigger
  const id = `agent-${agentId}-${name}`
  if (removedAt || kind === 'webhook' || cron === null) return queue.removeSchedule(id)
  await queue.putSchedule(id, cron, { organization_id: organizationId, agent_id: agentId, trigger: name })
}
