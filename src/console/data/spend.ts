import { useQuery } from '@tanstack/react-query'
import { call } from './client.ts'
import { type Me, reachesOthers } from './me.ts'

const DAY = 24 * 60 * 60_000

/** Micro-credits that the organization has spent a day in this month (UTC); null where it is unknown. */
export function useSpendADay(me: Me, isWanted = true): number | null {
  const organizationId = me.organization.id
  const now = new Date()
  const from = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth()))
  const usage = useQuery({
    queryKey: ['spend-of-month', organizationId, from.getTime()],
    queryFn: () =>
      call('usage.totals', {
        path: { organizationId },
        query: { group_by: 'day', from: from.toISOString(), limit: 100 },
      }),
    enabled: isWanted && reachesOthers(me, 'usage.read'),
    staleTime: 300_000,
  })
  if (!usage.data) return null
  const spent = usage.data.data.reduce((sum, { cost }) => sum + cost, 0)
  return spent / Math.max(1, (now.getTime() - from.getTime()) / DAY)
}
