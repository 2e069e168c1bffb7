import { and, asc, eq, gt, ne, type SQL, sql } from 'drizzle-orm'
import type { PgColumn } from 'drizzle-orm/pg-core'
import type { Database } from '../../../schema/database.ts'
import { auditRecords, creditEntries, usageEvents } from '../../../schema/governance.ts'
import type { AuditQuery, UsageQuery } from '../../wire/management.ts'
import type { Page, PageRequest } from '../../wire/page-cursor.ts'
import { beyond, microseconds, newestFirst, toPage, within } from './administration.store.ts'

export type AuditRow = typeof auditRecords.$inferSelect
export type CreditEntryRow = typeof creditEntries.$inferSelect
export type UsageEventRow = typeof usageEvents.$inferSelect
export type Period = Pick<AuditQuery, 'from' | 'to'>
export type AuditFilter = Omit<AuditQuery, 'limit' | 'cursor'>
export type UsageDimension = UsageQuery['group_by']

const equal = (column: PgColumn, value: string | number | undefined): SQL | undefined =>
  value === undefined ? undefined : eq(column, value)

/** Audit records of an organization, newest first. */
export async function selectAuditRecords(
  database: Database,
  organizationId: string,
  filter: AuditFilter,
  page: PageRequest,
): Promise<Page<AuditRow>> {
  const { at, id } = auditRecords
  const rows = await database
    .select({ row: auditRecords, position: microseconds(at) })
    .from(auditRecords)
    .where(
      and(
        eq(auditRecords.organizationId, organizationId),
        within(at, filter),
        equal(auditRecords.userId, filter.user_id),
        equal(auditRecords.keyId, filter.key_id),
        equal(auditRecords.modelId, filter.model),
        equal(auditRecords.status, filter.status),
        equal(auditRecords.surface, filter.surface),
        beyond(at, id, page.after),
      ),
    )
    .orderBy(...newestFirst(at, id))
    .limit(page.limit + 1)
  const cut = toPage(rows, page, ({ row, position }) => ({ at: position, id: row.id }))
  return { rows: cut.rows.map(({ row }) => row), next: cut.next }
}

/** Grants and settlements as Postgres has them; the ledger may hold newer ones for a second. */
export async function selectCreditEntries(
  database: Database,
  organizationId: string,
  page: PageRequest,
): Promise<Page<CreditEntryRow>> {
  const { at } = creditEntries
  const name = sql`(${creditEntries.kind} || ':' || ${creditEntries.id})`
  const rows = await database
    .select({ row: creditEntries, position: microseconds(at) })
    .from(creditEntries)
    .where(
      and(
        eq(creditEntries.organizationId, organizationId),
        // Between shards of the ledger: they change nothing of what there is.
        ne(creditEntries.kind, 'transfer'),
        beyond(at, name, page.after),
      ),
    )
    .orderBy(...newestFirst(at, name))
    .limit(page.limit + 1)
  const cut = toPage(rows, page, ({ row, position }) => ({ at: position, id: `${row.kind}:${row.id}` }))
  return { rows: cut.rows.map(({ row }) => row), next: cut.next }
}

/** The grant that was made under an id, if Postgres has it. */
export async function selectCreditGrant(
  database: Database,
  organizationId: string,
  id: string,
): Promise<CreditEntryRow | null> {
  const [row] = await database
    .select()
    .from(creditEntries)
    .where(
      and(
        eq(creditEntries.organizationId, organizationId),
        eq(creditEntries.kind, 'grant'),
        eq(creditEntries.id, id),
      ),
    )
  return row ?? null
}

/** Single model calls, newest first. */
export async function selectUsageEvents(
  database: Database,
  organizationId: string,
  period: Period,
  page: PageRequest,
): Promise<Page<UsageEventRow>> {
  const { at, callId } = usageEvents
  const rows = await database
    .select({ row: usageEvents, position: microseconds(at) })
    .from(usageEvents)
    .where(
      and(eq(usageEvents.organizationId, organizationId), within(at, period), beyond(at, callId, page.after)),
    )
    .orderBy(...newestFirst(at, callId))
    .limit(page.limit + 1)
  const cut = toPage(rows, page, ({ row, position }) => ({ at: position, id: row.callId }))
  return { rows: cut.rows.map(({ row }) => row), next: cut.next }
}

/** Sums over the calls that share a model, key, user or day. */
export interface UsageTotals {
  group: string
  calls: number
  inputTokens: number
  cacheReadTokens: number
  cacheWrite5MinuteTokens: number
  cacheWrite1HourTokens: number
  outputTokens: number
  reasoningTokens: number
  cost: number
}

const dimensions: Record<UsageDimension, SQL<string>> = {
  model: sql`${usageEvents.modelId}`,
  key: sql`coalesce(${usageEvents.keyId}, '')`,
  user: sql`coalesce(${usageEvents.userId}, '')`,
  day: sql`to_char(${usageEvents.at} at time zone 'UTC', 'YYYY-MM-DD')`,
}

const total = (column: PgColumn) => sql<number>`sum(${column})`.mapWith(Number)

/** Totals in order of the group's name, which is where a cursor points: it stays true while calls are added. */
export async function selectUsageTotals(
  database: Database,
  organizationId: string,
  filter: Period & { groupBy: UsageDimension },
  page: PageRequest,
): Promise<Page<UsageTotals>> {
  // Grouped by the alias: an expression with parameters would be another expression each time it is written.
  const events = database
    .select({ group: dimensions[filter.groupBy].as('group_name'), ...usageColumns })
    .from(usageEvents)
    .where(and(eq(usageEvents.organizationId, organizationId), within(usageEvents.at, filter)))
    .as('events')
  const rows = await database
    .select({
      group: events.group,
      calls: sql<number>`count(*)`.mapWith(Number),
      inputTokens: total(events.inputTokens),
      cacheReadTokens: total(events.cacheReadTokens),
      cacheWrite5MinuteTokens: total(events.cacheWrite5MinuteTokens),
      cacheWrite1HourTokens: total(events.cacheWrite1HourTokens),
      outputTokens: total(events.outputTokens),
      reasoningTokens: total(events.reasoningTokens),
      cost: total(events.cost),
    })
    .from(events)
    .where(page.after === null ? undefined : gt(events.group, page.after.id))
    .groupBy(events.group)
    .orderBy(asc(events.group))
    .limit(page.limit + 1)
  return toPage(rows, page, ({ group }) => ({ at: 0, id: group }))
}

const usageColumns = {
  inputTokens: usageEvents.inputTokens,
  cacheReadTokens: usageEvents.cacheReadTokens,
  cacheWrite5MinuteTokens: usageEvents.cacheWrite5MinuteTokens,
  cacheWrite1HourTokens: usageEvents.cacheWrite1HourTokens,
  outputTokens: usageEvents.outputTokens,
  reasoningTokens: usageEvents.reasoningTokens,
  cost: usageEvents.cost,
}
