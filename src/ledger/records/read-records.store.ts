import { and, asc, eq, getTableColumns, gt, ne, type SQL, sql } from 'drizzle-orm'
import type { PgColumn } from 'drizzle-orm/pg-core'
import { auditRecords, creditEntries, usageEvents } from '../../../schema/governance.ts'
import type { Page, PageRequest } from '../../wire/page-cursor.ts'
import type { AuditQuery, UsageQuery } from '../../wire/records.ts'
import {
  equal,
  type OrganizationScope,
  selectPage,
  toPage,
  within,
} from '../changes/scoped-statements.store.ts'
import { inPartitionsOf, upTo } from './month-bounds.store.ts'
import { searchNewest } from './search-newest.store.ts'

export type AuditRecordRow = typeof auditRecords.$inferSelect
export type CreditEntryRow = typeof creditEntries.$inferSelect
export type UsageEventRow = typeof usageEvents.$inferSelect
type Period = Pick<AuditQuery, 'from' | 'to'>
export type AuditFilter = Omit<AuditQuery, 'limit' | 'cursor'>
type UsageDimension = UsageQuery['group_by']

/** Records that one page of a search examines. An index for each filter would be written with every call. */
const MOST_EXAMINED = 1_000
/**
 * Audit records of an organization, newest first. With filters other than the period, a page may have fewer rows than its limit,
 * or none, although another page follows.
 */
export function selectAuditRecords(
  { database, organizationId }: OrganizationScope,
  filter: AuditFilter,
  page: PageRequest,
): Promise<Page<AuditRecordRow>> {
  const wanted = and(
    equal(auditRecords.userId, filter.user_id),
    equal(auditRecords.keyId, filter.key_id),
    equal(auditRecords.modelId, filter.model),
    equal(auditRecords.status, filter.status),
    equal(auditRecords.surface, filter.surface),
  )
  const bounds = and(
    eq(auditRecords.organizationId, organizationId),
    within(auditRecords.at, filter),
    inPartitionsOf(auditRecords.at, { from: filter.from, to: upTo(filter.to, page.after) }),
  )
  return searchNewest<AuditRecordRow>(database, {
    table: auditRecords,
    bounds,
    wanted,
    most: MOST_EXAMINED,
    page,
  })
}

/** Grants and settlements as Postgres has them; the ledger may hold newer ones for a second. */
export function selectCreditEntries(
  { database, organizationId }: OrganizationScope,
  page: PageRequest,
): Promise<Page<CreditEntryRow>> {
  const name = sql`(${creditEntries.kind} || ':' || ${creditEntries.id})`
  // Transfers between the ledger's shards leave the sum as it is.
  const isEntry = and(eq(creditEntries.organizationId, organizationId), ne(creditEntries.kind, 'transfer'))
  return selectPage(page, { at: creditEntries.at, id: name }, (position, isAfter) =>
    database
      .select({ ...getTableColumns(creditEntries), position })
      .from(creditEntries)
      .where(and(isEntry, isAfter)),
  )
}

/** The grant that was made under an id, if Postgres has it. */
export async function selectCreditGrant(
  { database, organizationId }: OrganizationScope,
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

/** Single model calls, newest first. @param filter `userId` for the calls of one user. */
export function selectUsageEvents(
  { database, organizationId }: OrganizationScope,
  filter: Period & { userId?: string },
  page: PageRequest,
): Promise<Page<UsageEventRow>> {
  const { at, callId } = usageEvents
  const isOfUser = equal(usageEvents.userId, filter.userId)
  const isWanted = and(
    eq(usageEvents.organizationId, organizationId),
    isOfUser,
    within(at, filter),
    inPartitionsOf(at, { from: filter.from, to: upTo(filter.to, page.after) }),
  )
  return selectPage(page, { at, id: callId }, (position, isAfter) =>
    database
      .select({ ...getTableColumns(usageEvents), position })
      .from(usageEvents)
      .where(and(isWanted, isAfter)),
  )
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

/**
 * Totals in order of the group's name, which is where a cursor points: it stays true while calls are added.
 * @param filter `userId` for the calls of one user.
 */
export async function selectUsageTotals(
  { database, organizationId }: OrganizationScope,
  filter: Period & { groupBy: UsageDimension; userId?: string },
  page: PageRequest,
): Promise<Page<UsageTotals>> {
  // Grouped by the alias: Postgres takes an expression with parameters for another one each time it is repeated.
  const events = database
    .select({ ...getTableColumns(usageEvents), group: dimensions[filter.groupBy].as('group_name') })
    .from(usageEvents)
    .where(
      and(
        eq(usageEvents.organizationId, organizationId),
        equal(usageEvents.userId, filter.userId),
        within(usageEvents.at, filter),
        inPartitionsOf(usageEvents.at, filter),
      ),
    )
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
