import { and, eq, gte, isNotNull, lte, type SQL, sql } from 'drizzle-orm'
import type { PgColumn } from 'drizzle-orm/pg-core'
import { auditRecords, calls } from '../../../schema/governance.ts'
import { groupMemberships, groups } from '../../../schema/identity.ts'
import { executeInOrder } from '../../../schema/read-in-order.ts'
import type { CallFilter, OUTCOMES } from '../../wire/calls.ts'
import { isUuid } from '../../wire/management-fields.ts'
import type { Page, PageRequest } from '../../wire/page-cursor.ts'
import { equal, newestFirst, type OrganizationScope, within } from '../changes/scoped-statements.store.ts'
import type { CallRow } from './extracted-rows.ts'
import { inMonthsOf } from './month-bounds.store.ts'
import type { AuditRecordRow } from './read-records.store.ts'
import { searchNewest } from './search-newest.store.ts'

/** Rows that one page of a search reads. */
const MOST_EXAMINED = 20_000
/** Rows that a histogram counts, the newest ones. */
const MOST_COUNTED = 100_000

/** A filter with an index of its own, by which rows are read newest first. */
interface IndexedFilter {
  name: keyof CallFilter
  condition: (filter: CallFilter) => SQL | undefined
}

const byColumn = (name: keyof CallFilter, column: PgColumn): IndexedFilter => ({
  name,
  condition: (filter) => equal(column, filter[name] as string | undefined),
})

/**
 * Filters with an index, those that leave the fewest rows first: of those that are given, the first one decides the index that is read.
 * The planner would have to guess, and has no statistics of new organizations.
 */
const INDEXED: readonly IndexedFilter[] = [
  byColumn('request_id', calls.requestId),
  byColumn('response_id', calls.responseId),
  byColumn('run_id', calls.runId),
  byColumn('key_id', calls.keyId),
  byColumn('user_id', calls.userId),
  byColumn('error', calls.errorCode),
  byColumn('tool', calls.tool),
  { name: 'found', condition: () => isNotNull(calls.detectors) },
  { name: 'flag', condition: () => isNotNull(calls.flags) },
  {
    name: 'outcome',
    condition: ({ outcome }) =>
      // The index is of the others, and Postgres has to see that the outcome is one of them.
      outcome === undefined || outcome === 'ok'
        ? undefined
        : and(eq(calls.outcome, outcome), sql`outcome <> 'ok'`),
  },
  byColumn('provider', calls.provider),
  byColumn('model', calls.modelId),
]

const oneOf = (column: PgColumn, value: string | undefined): SQL | undefined => {
  if (value === undefined) return undefined
  return value === 'any' ? isNotNull(column) : sql`${value}::text = ANY(${column})`
}

/** All conditions of a filter but the period. */
const wantedBy = (organizationId: string, filter: CallFilter): SQL | undefined =>
  and(
    ...INDEXED.flatMap(({ name, condition }) =>
      name === 'found' || name === 'flag' || filter[name] === undefined ? [] : [condition(filter)],
    ),
    equal(calls.outcome, filter.outcome),
    oneOf(calls.detectors, filter.found),
    oneOf(calls.flags, filter.flag),
    equal(calls.surface, filter.surface),
    equal(calls.connectionId, filter.connection_id),
    equal(calls.status, filter.status),
    filter.cost_min === undefined ? undefined : gte(calls.cost, filter.cost_min),
    filter.cost_max === undefined ? undefined : lte(calls.cost, filter.cost_max),
    filter.duration_min === undefined ? undefined : gte(calls.durationMilliseconds, filter.duration_min),
    filter.duration_max === undefined ? undefined : lte(calls.durationMilliseconds, filter.duration_max),
    filter.group_id === undefined ? undefined : isInGroup(organizationId, filter.group_id),
  )

const isInGroup = (organizationId: string, groupId: string) =>
  isUuid(groupId)
    ? sql`${calls.userId} IN (
        SELECT member.user_id::text FROM ${groupMemberships} AS member JOIN ${groups} AS named ON named.id = member.group_id
        WHERE member.group_id = ${groupId}::uuid AND named.organization_id = ${organizationId}::uuid)`
    : sql`false`

/** The rows that are read: those of the period that the first indexed filter leaves. */
function examined({ organizationId }: OrganizationScope, filter: CallFilter): SQL | undefined {
  const first = INDEXED.find(
    ({ name, condition }) => filter[name] !== undefined && condition(filter) !== undefined,
  )
  return and(eq(calls.organizationId, organizationId), within(calls.at, filter), first?.condition(filter))
}

/**
 * Calls of an organization, newest first. A page may have fewer rows than its limit, or none, although another one follows, where the
 * filters leave few of the rows that are read.
 */
export function selectCalls(
  scope: OrganizationScope,
  filter: CallFilter,
  page: PageRequest,
): Promise<Page<CallRow>> {
  return searchNewest<CallRow>(scope.database, {
    table: calls,
    bounds: examined(scope, filter),
    wanted: wantedBy(scope.organizationId, filter),
    most: MOST_EXAMINED,
    page,
  })
}

/** The call with an id, if it is in reach. @param userId of whom; undefined for any user. */
export async function selectCall(
  { database, organizationId }: OrganizationScope,
  callId: string,
  userId: string | undefined,
): Promise<CallRow | null> {
  const isCall = and(eq(calls.organizationId, organizationId), eq(calls.id, callId))
  const [row] = await database
    .select()
    .from(calls)
    .where(and(isCall, isOfUser(userId)))
  return row ?? null
}

/** Beside a condition that names one call, so that Postgres reads by that. */
const isOfUser = (userId: string | undefined) =>
  userId === undefined ? undefined : sql`${calls.userId} IS NOT DISTINCT FROM ${userId}`

/** The record of a call, if Postgres has it in the month of the call. */
export async function selectCallRecord(
  { database, organizationId }: OrganizationScope,
  { id, at }: Pick<CallRow, 'id' | 'at'>,
): Promise<AuditRecordRow | null> {
  const isOfOrganization = sql`${auditRecords.organizationId} IS NOT DISTINCT FROM ${organizationId}::uuid`
  const [row] = await database
    .select()
    .from(auditRecords)
    .where(
      and(
        eq(auditRecords.id, id),
        isOfOrganization,
        eq(auditRecords.kind, 'call'),
        inMonthsOf(auditRecords.at, [at]),
      ),
    )
    .limit(1)
  return row ?? null
}

/** Calls of one part of a period, by how they ended. */
interface CallCount {
  /** From 0. */
  bucket: number
  outcome: (typeof OUTCOMES)[number]
  count: number
  /** Micro-credits. */
  cost: number
}

/** A period that is divided into equal parts. */
export interface DividedPeriod {
  from: Date
  to: Date
  bucketMilliseconds: number
}

export interface CountedCalls {
  counts: CallCount[]
  /** Time to the first event of streams, in milliseconds: median and 95th percentile; null without any. */
  firstEvent: { p50: number; p95: number } | null
  /** The oldest that was counted, where there are older ones; else null. */
  countedFrom: Date | null
}

interface CountRow extends Record<string, unknown> {
  bucket: number | null
  outcome: CallCount['outcome'] | null
  count: string
  cost: string | null
  first_at: string | null
  first_event: number[] | null
}

/** Counts calls of a period by part and outcome: the newest 100,000 that the first indexed filter leaves. */
export async function countCalls(
  scope: OrganizationScope,
  filter: CallFilter,
  period: DividedPeriod,
): Promise<CountedCalls> {
  const { database, organizationId } = scope
  const wanted = wantedBy(organizationId, filter) ?? sql`true`
  const read = sql`SELECT ${calls.at} AS at, ${calls.outcome} AS outcome, ${calls.cost} AS cost,
      ${calls.firstEventMilliseconds} AS first_event, coalesce(${wanted}, false) AS is_wanted
    FROM ${calls} WHERE ${examined(scope, { ...filter, from: period.from, to: period.to })}
    ORDER BY ${sql.join(newestFirst(calls.at, calls.id), sql`, `)} LIMIT ${MOST_COUNTED}`
  const sinceFrom = sql`extract(epoch FROM at - ${period.from.toISOString()}::timestamptz) * 1000`
  const rows = await executeInOrder<CountRow>(
    database,
    sql`
      WITH examined AS MATERIALIZED (${read})
      SELECT floor(${sinceFrom} / ${period.bucketMilliseconds})::int AS bucket, outcome, count(*) AS count,
        sum(cost) AS cost, NULL::bigint AS first_at, NULL::float8[] AS first_event
      FROM examined WHERE is_wanted GROUP BY 1, 2
      UNION ALL
      SELECT NULL, NULL, count(*), NULL, (extract(epoch FROM min(at)) * 1000)::bigint,
        percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY first_event) FILTER (WHERE is_wanted)
      FROM examined`,
  )
  const all = rows.find((row) => row.bucket === null)
  const [p50, p95] = all?.first_event ?? []
  return {
    counts: rows.flatMap(({ bucket, outcome, count, cost }) =>
      bucket === null || outcome === null
        ? []
        : [{ bucket, outcome, count: Number(count), cost: Number(cost) }],
    ),
    firstEvent: p50 == null || p95 == null ? null : { p50: Math.round(p50), p95: Math.round(p95) },
    countedFrom: Number(all?.count) >= MOST_COUNTED ? new Date(Number(all?.first_at)) : null,
  }
}
