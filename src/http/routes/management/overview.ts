import { readOverview } from '../../../admin/overview.ts'
import type { HandlersOf } from './mount-endpoints.ts'
import { presentCall } from './present-call.ts'

export const overviewHandlers: HandlersOf<'overview'> = {
  'overview.show': async ({ scope, own }) => {
    const { times, today, hours, firstEvent, day, others, errors, completeFrom } = await readOverview(
      scope,
      own,
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
      complete_from: completeFrom,
    }
  },
}
