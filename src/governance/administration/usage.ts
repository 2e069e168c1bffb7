import type { Page, PageRequest } from '../../wire/page-cursor.ts'
import type { Administration } from './administration.ts'
import {
  type Period,
  selectUsageEvents,
  selectUsageTotals,
  type UsageDimension,
  type UsageEventRow,
  type UsageTotals,
} from './records.store.ts'

export type { UsageEventRow, UsageTotals } from './records.store.ts'

/** What was used and what it cost, summed by model, key, user or day. */
export function readUsageTotals(
  administration: Administration,
  organizationId: string,
  filter: Period & { groupBy: UsageDimension },
  page: PageRequest,
): Promise<Page<UsageTotals>> {
  return selectUsageTotals(administration.database, organizationId, filter, page)
}

/** The single model calls behind the totals, newest first. */
export function listUsageEvents(
  administration: Administration,
  organizationId: string,
  period: Period,
  page: PageRequest,
): Promise<Page<UsageEventRow>> {
  return selectUsageEvents(administration.database, organizationId, period, page)
}
