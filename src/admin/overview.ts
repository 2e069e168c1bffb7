import type { ChangeScope } from '../ledger/changes/audited-change.ts'
import type { CallRow } from '../ledger/records/extracted-rows.ts'
import {
  type CountedDay,
  type OverviewTimes,
  selectDay,
  selectLatestErrors,
} from '../ledger/records/read-overview.store.ts'
import { OUTCOMES, type Outcome } from '../wire/calls.ts'
import { type RecentRun, selectRecentRuns } from './recent-runs.store.ts'

const HOUR_MS = 60 * 60_000
const DAY_MS = 24 * HOUR_MS
const HOURS = 24

type Counts = Record<Outcome | 'cost', number>

interface Overview {
  times: OverviewTimes
  today: Counts
  /** Each of the last 24 hours, with the median time to the first event in milliseconds. */
  hours: Array<Counts & { at: Date; firstEvent: number | null }>
  firstEvent: { p50: number; p95: number } | null
  day: Pick<CountedDay, 'failedAt' | 'refusedTo' | 'blockedBy' | 'spend' | 'weekBefore'>
  /** Users that have spent something today, but are not in `day.spend`. */
  others: Pick<CountedDay, 'users'> & { calls: number; cost: number }
  errors: CallRow[]
  /** Null where the caller may not read runs. */
  runs: RecentRun[] | null
  /** When the counts begin to be whole. */
  completeFrom: Date
}

/**
 * How the calls of an organization are going: of today (UTC) and of the last 24 hours; and its runs of the last hour.
 * @param own as for `viewCall`. @param readsRuns whether the caller may read the runs of the organization.
 */
export async function readOverview(
  scope: ChangeScope,
  own: string | null,
  readsRuns: boolean,
): Promise<Overview> {
  const times = timesAt(scope.clock())
  const userId = own ?? undefined
  const [day, errors, runs] = await Promise.all([
    selectDay(scope, userId, times),
    selectLatestErrors(scope, userId, new Date(times.now.getTime() - DAY_MS)),
    readsRuns ? selectRecentRuns(scope, new Date(times.now.getTime() - HOUR_MS)) : null,
  ])
  const today = countsOf(day.today)
  const [p50, p95] = day.firstEvent ?? []
  const calls = OUTCOMES.reduce((sum, outcome) => sum + today[outcome], 0)
  const listed = day.spend.reduce(
    (sum, each) => ({ calls: sum.calls + each.calls, cost: sum.cost + each.cost }),
    {
      calls: 0,
      cost: 0,
    },
  )
  return {
    times,
    today,
    hours: Array.from({ length: HOURS }, (_, hour) => ({
      at: new Date(times.firstHour.getTime() + hour * HOUR_MS),
      ...countsOf(day.hours.filter((each) => each.hour === hour)),
      firstEvent: day.firstEvents.find((each) => each.hour === hour)?.p50 ?? null,
    })),
    firstEvent: p50 == null || p95 == null ? null : { p50: Math.round(p50), p95: Math.round(p95) },
    day,
    others: {
      users: day.users - day.spend.length,
      calls: calls - listed.calls,
      cost: today.cost - listed.cost,
    },
    errors,
    runs,
    completeFrom: new Date(
      Math.max(day.countedFrom ?? 0, Math.min(times.today.getTime(), times.firstHour.getTime())),
    ),
  }
}

function timesAt(clock: number): OverviewTimes {
  const now = new Date(clock)
  const today = new Date(clock - (clock % DAY_MS))
  const from = new Date(today.getTime() - 7 * DAY_MS)
  return {
    now,
    today,
    firstHour: new Date(clock - (clock % HOUR_MS) - (HOURS - 1) * HOUR_MS),
    weekBefore: { from, to: new Date(now.getTime() - 7 * DAY_MS) },
  }
}

function countsOf(counted: ReadonlyArray<{ outcome: Outcome; count: number; cost: number }>): Counts {
  const counts = Object.fromEntries([...OUTCOMES, 'cost'].map((name) => [name, 0])) as Counts
  for (const { outcome, count, cost } of counted) {
    counts[outcome] += count
    counts.cost += cost
  }
  return counts
}
