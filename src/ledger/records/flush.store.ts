import { getTableColumns, getTableName, type SQL, sql } from 'drizzle-orm'
import type { PgTable } from 'drizzle-orm/pg-core'
import type { Database } from '../../../schema/database.ts'
import { auditRecords, calls, creditEntries, usageEvents } from '../../../schema/governance.ts'
import { timeParameter, utc } from '../../../schema/sql-values.ts'
import { type EpochColumns, epochColumns, epochsOf } from '../epochs/epochs.store.ts'
import type { LearnedEpochs } from '../epochs/known-epochs.ts'
import type { ChainIdentity, ChainLink } from './chain.ts'
import {
  CALL,
  COST,
  type ColumnTexts,
  GRANT_OR_TRANSFER,
  HAS_USAGE,
  IS_CALL,
  RECORD,
  SETTLEMENT,
  USAGE,
} from './extracted-columns.store.ts'
import { timeOfBody } from './record-body.ts'

/** The time of the latest of several records. */
const AT_MOST = `timestamptz 'epoch' + max((record->>'at')::bigint) * interval '1 millisecond'`

/** SQL that inserts a row for each link which meets a condition. Existing rows are not changed. */
function insertText<Table extends PgTable>(table: Table, texts: ColumnTexts<Table>, condition: string) {
  const columns = Object.entries(getTableColumns(table))
  const names = columns.map(([, { name }]) => `"${name}"`).join(', ')
  const values = columns.map(([member]) => texts[member as keyof typeof texts]).join(', ')
  return `INSERT INTO "${getTableName(table)}" (${names}) SELECT ${values} FROM link WHERE ${condition} ON CONFLICT DO NOTHING`
}

/**
 * Sets when keys were last used, which a refusal of a revoked or expired key is not, at most once a minute for each: a key that is in use would else be written with every batch. The
 * array has Postgres look the keys up one by one: a plain comparison of the organization could be read by the index of that column.
 */
const KEY_USE = `
  call_of_key AS MATERIALIZED (
    SELECT record->'actor'->>'keyId' AS key_id, ${AT_MOST} AS used_at FROM link
    WHERE ${IS_CALL} AND record->'actor'->>'keyId' IS NOT NULL AND record->>'status' <> '401' GROUP BY 1),
  used_keys AS (
    UPDATE api_keys SET last_used_at = (SELECT used_at FROM call_of_key WHERE key_id = api_keys.id)
    WHERE id = ANY(ARRAY(SELECT key_id FROM call_of_key))
      AND organization_id IS NOT DISTINCT FROM (SELECT (record->>'organizationId')::uuid FROM link LIMIT 1)
      AND (last_used_at IS NULL
        OR last_used_at < (SELECT used_at FROM call_of_key WHERE key_id = api_keys.id) - interval '1 minute'))`

/** The constant part of the statement. */
const INSERTS: SQL = sql.raw(`
  stored AS (${insertText(auditRecords, { ...RECORD, sequence: 'sequence' }, 'true')} RETURNING 1),
  called AS (${insertText(calls, CALL, IS_CALL)}),
  used AS (${insertText(usageEvents, USAGE, HAS_USAGE)}),
  settled AS (${insertText(creditEntries, SETTLEMENT, `${IS_CALL} AND ${COST} <> 0`)}),
  moved AS (${insertText(creditEntries, GRANT_OR_TRANSFER, `record->'credit'->>'id' IS NOT NULL`)}),
  ${KEY_USE}`)

/**
 * Writes records, with their usage and credit movements, in one statement, or nothing if Postgres has another record in the place of
 * one. Existing rows are not changed, so it can be repeated. Postgres parses the bodies: parsing them here and sending the columns
 * took a tenth of a call's CPU.
 * @param links consecutive ones of one chain, at least one. No body contains a line break.
 * @param mayFollowGap whether they are written without the record before them, which the ledger has no more.
 * @returns the epochs, read in the same round trip; null when Postgres has lost the record before them, or has another one.
 * Nothing was written then.
 * @throws unless Postgres then holds exactly these records, for instance because another chain has grown under the same
 * name. Nothing may be deleted then.
 */
export async function writeLinks(
  database: Database,
  identity: ChainIdentity,
  links: readonly ChainLink[],
  mayFollowGap = false,
): Promise<LearnedEpochs | null> {
  const { organizationId, shard } = identity
  const isFirst = mayFollowGap || (links[0]?.sequence ?? 1) === 1
  const period = searchedPeriod(links)
  const within = isFirst ? sql`true` : hasRecordBefore(identity, links, isWithin(period))
  let row = await insertLinks(database, identity, links, period, within)
  // The record before them may be older than the period, as that of an organization that was not used for months.
  if (row?.follows === null)
    row = await insertLinks(database, identity, links, period, hasRecordBefore(identity, links, sql`true`))
  if (row && row.follows !== true) return null
  const held = row?.held === links.length || (await countHeld(database, identity, links)) === links.length
  if (!row || !held)
    throw new Error(`the chain of ${organizationId}:${shard} differs from what Postgres holds`)
  return epochsOf(row)
}

type InsertedLinks = { held: number; follows: boolean | null } & EpochColumns

/** @param follows SQL of whether Postgres has the record before the links; nothing is written unless it is true. */
async function insertLinks(
  database: Database,
  identity: ChainIdentity,
  links: readonly ChainLink[],
  period: SearchedPeriod,
  follows: SQL,
): Promise<InsertedLinks | undefined> {
  // A statement does not see its own inserts: a record is held if it was inserted now or existed before.
  const { rows } = await database.execute<InsertedLinks>(sql`
    WITH ${existing(identity, links, period)}, before AS MATERIALIZED (SELECT ${follows} AS follows),
    link AS MATERIALIZED (
      SELECT * FROM linked WHERE (SELECT held = found FROM existing) AND (SELECT follows FROM before)
    ), ${INSERTS}
    SELECT (SELECT count(*) FROM stored)::int + (SELECT held FROM existing) AS held, (SELECT follows FROM before) AS follows,
      ${epochColumns(identity.organizationId)}`)
  return rows[0]
}

/**
 * SQL of whether Postgres has the record that they follow; null where it has none in that place that meets the condition. An aggregate,
 * not the newest of them: without statistics, an order by time would have Postgres walk the chain.
 */
const hasRecordBefore = (
  { organizationId, shard }: ChainIdentity,
  [first]: readonly ChainLink[],
  condition: SQL,
): SQL => sql`(
  SELECT bool_or(record.hash = ${first?.previousHash ?? ''}) FROM ${auditRecords} AS record
  WHERE record.organization_id = ${organizationId}::uuid AND record.shard = ${shard}
    AND record.sequence = ${(first?.sequence ?? 0) - 1} AND ${condition})`

/** One member of all links as a text array. Sending one text costs less than sending many. */
const linesOf = (links: readonly ChainLink[], member: 'body' | 'hash') =>
  sql`string_to_array(${links.map((link) => link[member]).join('\n')}, ${'\n'})`

/** Milliseconds since the epoch. */
interface SearchedPeriod {
  from: number
  to: number
}

/** A Durable Object that was restored is at most 30 days behind. */
const SEARCHED_MS = 32 * 86_400_000

/**
 * The time in which a record in one of their places is searched: places are unique within the partition of a month only, and another
 * chain under the same name may have grown in the month before. Computed here, because Postgres plans a statement for the partitions
 * that it can tell from its parameters, and for all of them when a part of the statement computes the bounds.
 */
function searchedPeriod(links: readonly ChainLink[]): SearchedPeriod {
  let [from, to] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const { body } of links) {
    const at = timeOfBody(body)
    from = Math.min(from, at)
    to = Math.max(to, at)
  }
  return { from: from - SEARCHED_MS, to: to + SEARCHED_MS }
}

const isWithin = ({ from, to }: SearchedPeriod): SQL => {
  const at = utc(sql`record.at`)
  return sql`${at} >= ${utc(timeParameter(from))} AND ${at} <= ${utc(timeParameter(to))}`
}

/**
 * SQL of WITH: the links as rows, with their parsed bodies (`linked`), and how many records Postgres has in their places, and of them
 * (`existing`). The range of sequences bounds what it reads by any plan: a join with the links reads the whole chain where the table
 * has no statistics. The period bounds the partitions that are read.
 */
const existing = (
  { organizationId, shard }: ChainIdentity,
  links: readonly ChainLink[],
  period: SearchedPeriod,
) => sql`
  linked AS MATERIALIZED (
    SELECT ${links[0]?.sequence ?? 0}::bigint + place - 1 AS sequence, body, hash,
      lag(hash, 1, ${links[0]?.previousHash ?? ''}::text) OVER (ORDER BY place) AS previous_hash, body::jsonb AS record
    FROM unnest(${linesOf(links, 'body')}, ${linesOf(links, 'hash')}) WITH ORDINALITY AS line(body, hash, place)
  ),
  existing AS MATERIALIZED (
    SELECT count(*)::int AS found,
      (count(*) FILTER (WHERE record.hash = ANY(ARRAY(SELECT hash FROM linked))))::int AS held
    FROM ${auditRecords} AS record
    WHERE record.organization_id = ${organizationId}::uuid AND record.shard = ${shard}
      AND record.sequence BETWEEN ${links[0]?.sequence ?? 0} AND ${links.at(-1)?.sequence ?? 0}
      AND ${isWithin(period)})`

/** Number of the links that Postgres holds, including those of an earlier write that timed out here and committed later. */
async function countHeld(
  database: Database,
  identity: ChainIdentity,
  links: readonly ChainLink[],
): Promise<number> {
  const { rows } = await database.execute<{ held: number }>(
    sql`WITH ${existing(identity, links, searchedPeriod(links))} SELECT held FROM existing WHERE held = found`,
  )
  return rows[0]?.held ?? 0
}
