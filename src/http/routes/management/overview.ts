import { readOverview } from '../../../admin/overview.ts'
import { reachedUser } from '../../../admin/reach.ts'
import type { RecentRun } from '../../../admin/recent-runs.store.ts'
import type { HandlersOf } from './mount-endpoints.ts'
import { presentCall } from './present-call.ts'
import { sessionOf } from './require-permission.ts'

export const overviewHandlers: HandlersOf<'overview'> = {
  'overview.show': async ({ context, scope, own }) => {
    const principal = sessionOf(context)?.principal ?? null
    const readsRuns = reachedUser(scope.organizationId, principal, 'runs.read') === null
    const { times, today, hours, firstEvent, day, others, errors, runs, completeFrom } = await readOverview(
      scope,
      own,
      readsRuns,
    )
    return {
      at: times.now,
      today: { from: times.today, ...today, first_event_ms: firstEvent },
      week_before: day.weekBefore,
      hours: hours.map(({ firstEvent: median, ...hour }) => ({ ...hour, first_event_ms: median })),
      failed_at: day.failedAt && { provider: day.failedAt.name, count: day.failedAt.count },
      refused_to: day.refusedTo && { user_id: day.refusedTo.name, count: day.refusedTo.count },
      blocked_by: day.blockedBy.map(({ name, count }) => ({ detector: name, count })),
      spend: day.spend.map(({ user, calls, cost }) => ({ user_id: user, calls, cost })),
      others,
      latest_errors: errors.map(presentCall),
      runs: runs?.map(presentRun) ?? null,
      complete_from: completeFrom,
    }
  },
}

const presentRun = ({ id, agentId, agent, status, step, createdAt, endedAt }: RecentRun) => ({
  ...{ id, agent_id: agentId, agent, status, step },
  created_at: createdAt,
  ended_at: endedAt,
})
