import { useQuery } from '@tanstack/react-query'
import { call } from './client.ts'
import { type Me, may, reachesOthers } from './me.ts'

const DAY = 24 * 60 * 60_000

/** The beginning of this month (UTC), in milliseconds since the epoch. */
function monthStart(): number {
  const now = new Date()
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth())
}

/** What was used in this month, by day or by key. */
function useMonth(me: Me, groupBy: 'day' | 'key', isWanted: boolean) {
  const organizationId = me.organization.id
  const from = new Date(monthStart()).toISOString()
  return useQuery({
    queryKey: ['usage-of-month', organizationId, groupBy, from],
    queryFn: () =>
      call('usage.totals', { path: { organizationId }, query: { group_by: groupBy, from, limit: 200 } }),
    enabled: isWanted,
    staleTime: 300_000,
  })
}

/** Micro-credits that the organization has spent a day in this month; null where it is unknown. */
export function useSpendADay(me: Me, isWanted = true): number | null {
  const usage = useMonth(me, 'day', isWanted && reachesOthers(me, 'usage.read'))
  if (!usage.data) return null
  const spent = usage.data.data.reduce((sum, { cost }) => sum + cost, 0)
  return spent / Math.max(1, (Date.now() - monthStart()) / DAY)
}

/** Micro-credits of this month by key. */
export function useSpendByKey(me: Me): ReadonlyMap<string, number> {
  const usage = useMonth(me, 'key', may(me, 'usage.read'))
  return new Map((usage.data?.data ?? []).map(({ key, cost }) => [key ?? '', cost]))
}
