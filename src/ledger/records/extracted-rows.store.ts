import { and, asc, eq, getTableColumns, inArray, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { auditRecords, calls, creditEntries, usageEvents } from '../../../schema/governance.ts'
import { utc } from '../../../schema/sql-values.ts'
import { exactInstant } from './exact-instant.store.ts'
import { type CreditRow, creditRowOf, type RecordWithRows, type UsageRow } from './extracted-rows.ts'
import { inMonthOf, inMonthsOf } from './month-bounds.store.ts'
import { parseBody, type StoredRecord } from './record-body.ts'
import { readStatedRows } from './stated-rows.store.ts'
import { statedRowsOf } from './stated-rows.ts'

const CALLS = { ...getTableColumns(calls), at: exactInstant(calls.at) }
const USAGE = { ...getTableColumns(usageEvents), at: exactInstant(usageEvents.at) }
const CREDITS = { ...getTableColumns(creditEntries), at: exactInstant(creditEntries.at) }

/**
 * Adds the rows of usage and credits to records of one organization: those that were taken from them, and those under
 * their call ids that should not exist. Records of the deployment also get the rows that they state.
 */
export async function withExtractedRows(
  database: Database,
  records: readonly StoredRecord[],
): Promise<RecordWithRows[]> {
  const [first] = records
  if (!first) return []
  const moved = records.map(({ body }) => creditNameOf(body))
  const ids = records.map(({ id }) => id)
  const creditIds = new Set([...ids, ...moved.flatMap((name) => name?.id ?? [])])
  const { organizationId, kind, id } = creditEntries
  const [called, usage, credits] = await database.batch([
    database
      .select(CALLS)
      .from(calls)
      .where(and(eq(calls.organizationId, first.organizationId), inArray(calls.id, ids))),
    database
      .select(USAGE)
      .from(usageEvents)
      .where(
        and(
          inArray(usageEvents.callId, ids),
          inMonthsOf(
            usageEvents.at,
            records.map(({ at }) => at),
          ),
        ),
      ),
    database
      .select(CREDITS)
      .from(creditEntries)
      .where(
        and(
          eq(organizationId, first.organizationId),
          inArray(kind, ['settlement', 'grant', 'transfer']),
          inArray(id, [...creditIds]),
        ),
      ),
  ])
  const named = records.map(({ body }) => {
    const parsed = parseBody(body)
    return parsed ? statedRowsOf(parsed) : []
  })
  const found = await readStatedRows(database, named.flat())
  const statedByName = new Map(found.map((row) => [`${row.table} ${row.name}`, row]))
  const callsById = new Map(called.map((row) => [row.id, row]))
  const usageById = new Map(usage.map((row) => [row.callId, row]))
  const creditsByName = new Map(credits.map((row) => [textOf(row), row]))
  return records.map((record, index) => {
    const name = moved[index]
    const creditNames = new Set([`settlement:${record.id}`, ...(name ? [textOf(name)] : [])])
    return {
      record,
      call: callsById.get(record.id) ?? null,
      usage: usageById.get(record.id) ?? null,
      credits: [...creditNames].flatMap((each) => creditsByName.get(each) ?? []),
      stated: (named[index] ?? []).flatMap(({ table, name }) => statedByName.get(`${table} ${name}`) ?? []),
    }
  })
}

type CreditName = Pick<CreditRow, 'kind' | 'id'>

const textOf = ({ kind, id }: CreditName) => `${kind}:${id}`

/** The name of the row of credits that a body has; null for none, or for one that no query of Postgres can name. */
function creditNameOf(text: string): CreditName | null {
  const body = parseBody(text)
  const row = body && creditRowOf(body)
  return row && typeof row.id === 'string' && !row.id.includes('\0') ? row : null
}

/** A row of usage or credits of which no record is stored. */
export type UnrecordedRow =
  | { table: 'usage_events'; organizationId: string; name: string; row: UsageRow }
  | { table: 'credit_entries'; organizationId: string; name: string; row: CreditRow }

/** A page of them: `rows` of those that were read, and the last one that was read; null at the end of the table. */
interface UnrecordedPage<Position> {
  rows: UnrecordedRow[]
  next: Position | null
}

const RECORD_AT = sql`record.at`

// The record of each row of a page is looked up by its id alone, in the partition of its month. Without OFFSET, Postgres may read all records into a
// hash. With a plain comparison of the organization, it may read that column's index beside the one of ids.

/** Place of a row of usage in the order of its index. The row itself may be gone: retention removes the oldest ones. */
interface UsagePosition {
  organizationId: string
  /** In UTC as Postgres has it, with microseconds. */
  at: string
  callId: string
}

/** Reads a page of usage, and returns the rows without a record. */
export async function findUnrecordedUsage(
  database: Database,
  organizationId: string | null,
  after: UsagePosition | null,
  most: number,
): Promise<UnrecordedPage<UsagePosition>> {
  const { organizationId: owner, at, callId } = usageEvents
  const read = await database
    .select({
      row: USAGE,
      at: sql<string>`(${utc(at)})::text`,
      isRecorded: sql<boolean>`EXISTS (SELECT 1 FROM ${auditRecords} AS record WHERE record.id = usage_events.call_id
        AND record.organization_id IS NOT DISTINCT FROM usage_events.organization_id AND record.kind = 'call'
        AND ${inMonthOf(RECORD_AT, sql`usage_events.at`)} OFFSET 0)`,
    })
    .from(usageEvents)
    .where(
      and(
        owned(owner, organizationId),
        after === null
          ? undefined
          : sql`(${owner}, ${at}, ${callId}) >
              (${after.organizationId}::uuid, ${utc(sql`${after.at}::timestamp`)}, ${after.callId}::text)`,
      ),
    )
    .orderBy(asc(owner), asc(at), asc(callId))
    .limit(most)
  const rows = read.flatMap(({ row, isRecorded }) =>
    isRecorded
      ? []
      : [{ table: 'usage_events' as const, organizationId: row.organizationId, name: row.callId, row }],
  )
  const last = read.length < most ? undefined : read.at(-1)
  if (last === undefined) return { rows, next: null }
  return { rows, next: { organizationId: last.row.organizationId, at: last.at, callId: last.row.callId } }
}

/** Place of a row of credits in the order of the primary key. */
type CreditPosition = Record<'organizationId' | 'kind' | 'id', string>

/** Records that may have moved credits at the same instant, of which the one that did is searched. */
const MOST_CANDIDATES = 20

/** Reads a page of credits, and returns the rows without a record. */
export async function findUnrecordedCredits(
  database: Database,
  organizationId: string | null,
  after: CreditPosition | null,
  most: number,
): Promise<UnrecordedPage<CreditPosition>> {
  const { organizationId: owner, kind, id } = creditEntries
  // Bodies that were tampered with need not be JSON, which Postgres would refuse to read.
  const candidates = sql`ARRAY(SELECT record.body FROM ${auditRecords} AS record
    WHERE record.organization_id = credit_entries.organization_id AND record.at = credit_entries.at
    AND ${inMonthOf(RECORD_AT, sql`credit_entries.at`)}
    AND record.shard = credit_entries.shard AND record.kind = 'change'
    AND strpos(record.body, '"credit":{') > 0 AND strpos(record.body, credit_entries.id) > 0
    LIMIT ${MOST_CANDIDATES})`
  const read = await database
    .select({
      row: CREDITS,
      isSettled: sql<boolean>`credit_entries.kind = 'settlement' AND EXISTS (SELECT 1 FROM ${auditRecords} AS record
        WHERE record.id = credit_entries.id AND record.organization_id IS NOT DISTINCT FROM credit_entries.organization_id
        AND record.kind = 'call' AND ${inMonthOf(RECORD_AT, sql`credit_entries.at`)} OFFSET 0)`,
      candidates: sql<string[]>`CASE WHEN credit_entries.kind = 'settlement' THEN '[]'::jsonb
        ELSE to_jsonb(${candidates}) END`,
    })
    .from(creditEntries)
    .where(
      and(
        owned(owner, organizationId),
        after === null
          ? undefined
          : sql`(${owner}, ${kind}, ${id}) > (${after.organizationId}::uuid, ${after.kind}::text, ${after.id}::text)`,
      ),
    )
    .orderBy(asc(owner), asc(kind), asc(id))
    .limit(most)
  const rows = read.flatMap(({ row, isSettled, candidates: bodies }) => {
    const isRecorded = isSettled || bodies.some((body) => isNameOf(row, creditNameOf(body)))
    if (isRecorded) return []
    const name = `${row.kind} ${row.id}`
    return [{ table: 'credit_entries' as const, organizationId: row.organizationId, name, row }]
  })
  const last = read.length < most ? undefined : read.at(-1)?.row
  return { rows, next: last ? { organizationId: last.organizationId, kind: last.kind, id: last.id } : null }
}

const isNameOf = (row: CreditRow, name: CreditName | null) => name !== null && textOf(row) === textOf(name)

const owned = (
  column: typeof usageEvents.organizationId | typeof creditEntries.organizationId,
  owner: string | null,
) => (owner === null ? undefined : eq(column, owner))
