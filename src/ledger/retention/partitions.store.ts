import { type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { auditRecords, prunings, usageEvents } from '../../../schema/governance.ts'
import type { ChainIdentity } from '../records/chain.ts'
import type { RecordsPruning, SignedPruning } from './pruning.ts'

/** The tables that are partitioned by month. */
type PartitionedTable = 'audit_records' | 'usage_events'

export interface Partition {
  name: string
  /** Its rows are older than this. */
  ends: Date
}

/** Makes the partitions of a month and of those after it, where they are missing. @param months how many. */
export async function addPartitions(database: Database, month: Date, months: number): Promise<void> {
  await database.execute(sql`
    SELECT add_month_partition(parent, ${month.toISOString().slice(0, 10)}::timestamp + ahead * interval '1 month')
    FROM unnest(ARRAY['audit_records', 'usage_events']) AS parent CROSS JOIN generate_series(0, ${months - 1}::int) AS ahead`)
}

/** Partitions whose rows are all older than a time, the oldest first. */
export async function listPartitionsBefore(
  database: Database,
  table: PartitionedTable,
  before: Date,
): Promise<Partition[]> {
  const { rows } = await database.execute<{ name: string; ends: string }>(sql`
    SELECT name, to_char(ends, 'YYYY-MM-DD') AS ends FROM month_partitions(${table})
    WHERE ends <= ${before.toISOString()}::timestamptz AT TIME ZONE 'UTC' ORDER BY month_partitions.ends`)
  return rows.map(({ name, ends }) => ({ name, ends: new Date(`${ends}T00:00:00Z`) }))
}

/** The chains that have rows in a table, or its organizations, in order: walks along the primary key, or the index of organizations. */
const chainsOf = (table: SQL, after: SQL) => sql`
  WITH RECURSIVE chains AS (
    (SELECT organization_id, shard FROM ${table} WHERE ${after} ORDER BY organization_id, shard, sequence LIMIT 1)
    UNION ALL
    SELECT next.organization_id, next.shard FROM chains CROSS JOIN LATERAL (
      SELECT organization_id, shard FROM ${table} AS record
      WHERE (record.organization_id, record.shard) > (chains.organization_id, chains.shard)
      ORDER BY organization_id, shard, sequence LIMIT 1) AS next)`
const ownersOf = (table: SQL, after: SQL) => sql`
  WITH RECURSIVE owners AS (
    (SELECT organization_id FROM ${table} WHERE ${after} ORDER BY organization_id LIMIT 1)
    UNION ALL
    SELECT next.organization_id FROM owners CROSS JOIN LATERAL (
      SELECT organization_id FROM ${table} AS event WHERE event.organization_id > owners.organization_id
      ORDER BY organization_id LIMIT 1) AS next)`

/** What a partition has of a chain, with the statement about it as it is stored; of an organization and its usage, with shard 0. */
export interface PartOfPartition extends ChainIdentity {
  stored: SignedPruning | null
}

interface PartRow extends Record<string, unknown> {
  organization_id: string
  shard: number
  statement: string | null
  pepper_id: string | null
  mac: string | null
}

const partOf = (kind: 'records' | 'usage', row: PartRow): PartOfPartition => {
  const { organization_id: organizationId, shard, statement, pepper_id: pepperId, mac } = row
  const isStated = statement !== null && pepperId !== null && mac !== null
  const stored = isStated ? { organizationId, kind, shard, statement, pepperId, mac } : null
  return { organizationId, shard, stored }
}

/** The chains that have records in a partition, after one. */
export async function listChainsOfPartition(
  database: Database,
  { name }: Partition,
  after: ChainIdentity | null,
  most: number,
): Promise<PartOfPartition[]> {
  const table = sql`${sql.identifier(name)}`
  const first =
    after === null
      ? sql`true`
      : sql`(organization_id, shard) > (${after.organizationId}::uuid, ${after.shard}::int)`
  const { rows } = await database.execute<PartRow>(sql`
    ${chainsOf(table, first)}
    SELECT chain.organization_id, chain.shard, statement, pepper_id, mac
    FROM (SELECT * FROM chains LIMIT ${most}) AS chain LEFT JOIN ${prunings} AS pruning
      ON pruning.organization_id = chain.organization_id AND pruning.kind = 'records' AND pruning.shard = chain.shard
    ORDER BY chain.organization_id, chain.shard`)
  return rows.map((row) => partOf('records', row))
}

/** The organizations that have usage in a partition, after one. */
export async function listOrganizationsOfPartition(
  database: Database,
  { name }: Partition,
  after: string | null,
  most: number,
): Promise<PartOfPartition[]> {
  const table = sql`${sql.identifier(name)}`
  const first = after === null ? sql`true` : sql`organization_id > ${after}::uuid`
  const { rows } = await database.execute<PartRow>(sql`
    ${ownersOf(table, first)}
    SELECT owner.organization_id, 0 AS shard, statement, pepper_id, mac
    FROM (SELECT * FROM owners LIMIT ${most}) AS owner LEFT JOIN ${prunings} AS pruning
      ON pruning.organization_id = owner.organization_id AND pruning.kind = 'usage' AND pruning.shard = 0
    ORDER BY owner.organization_id`)
  return rows.map((row) => partOf('usage', row))
}

/** Statements on the table wait for the drop, so it gives up where it would wait itself. */
const LOCK_TIMEOUT = sql`SELECT set_config('lock_timeout', '3s', true)`

/** Up to which record a chain may be missing, by a statement that was verified. */
export type RemovablePart = Pick<RecordsPruning, 'organizationId' | 'shard' | 'sequence'>

/** The records of a partition that no statement allows to be missing: those of chains without one, and those after the one it names. */
const keptRecords = (table: SQL, removable: readonly RemovablePart[]) => sql`
  ${chainsOf(table, sql`true`)}, removable AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(${JSON.stringify(
      removable.map(({ organizationId, shard, sequence }) => ({
        organization_id: organizationId,
        shard,
        sequence,
      })),
    )}::jsonb)
      AS part (organization_id uuid, shard int, sequence bigint))
  SELECT kept.* FROM chains LEFT JOIN removable USING (organization_id, shard) CROSS JOIN LATERAL (
    SELECT record.* FROM ${table} AS record
    WHERE record.organization_id = chains.organization_id AND record.shard = chains.shard
      AND record.sequence > coalesce(removable.sequence, 0)) AS kept`

/** The usage of a partition of organizations about which nothing was stated. */
const keptUsage = (table: SQL, removable: readonly string[]) => sql`
  ${ownersOf(table, sql`true`)}, removable AS MATERIALIZED (
    SELECT value::uuid AS organization_id FROM jsonb_array_elements_text(${JSON.stringify(removable)}::jsonb))
  SELECT kept.* FROM (SELECT organization_id FROM owners EXCEPT SELECT organization_id FROM removable) AS owner
    CROSS JOIN LATERAL (SELECT event.* FROM ${table} AS event WHERE event.organization_id = owner.organization_id) AS kept`

/** How many rows of a partition its drop would have to keep; at most `most`. */
async function countKept(database: Database, kept: SQL, most: number): Promise<number> {
  const { rows } = await database.execute<{ kept: number }>(
    sql`SELECT count(*)::int AS kept FROM (${kept} LIMIT ${most}) AS each`,
  )
  return rows[0]?.kept ?? 0
}

/**
 * Drops a partition. Rows that no statement allows to be missing stay, in the default partition.
 * @param most of them; with more, the partition stays as it is. @returns how many stay; null when there are more.
 */
async function dropKeeping(
  database: Database,
  parent: typeof auditRecords | typeof usageEvents,
  { name }: Partition,
  keptOf: (table: SQL) => SQL,
  most: number,
): Promise<number | null> {
  const table = sql`${sql.identifier(name)}`
  const kept = await countKept(database, keptOf(table), most + 1)
  if (kept > most) return null
  await database.batch([
    database.execute(LOCK_TIMEOUT),
    database.execute(sql`ALTER TABLE ${parent} DETACH PARTITION ${table}`),
    database.execute(sql`INSERT INTO ${parent} ${keptOf(table)}`),
    database.execute(sql`DROP TABLE ${table}`),
  ])
  return kept
}

/**
 * Drops a partition of records. What stays: the last record of a chain, calls that were open at the end of the month, any that a ledger
 * has written since, and chains that are kept.
 * @param removable by chain; of others, all records stay. @param most records that stay. @returns as `dropKeeping`.
 */
export const dropRecords = (
  database: Database,
  partition: Partition,
  removable: readonly RemovablePart[],
  most: number,
): Promise<number | null> =>
  dropKeeping(database, auditRecords, partition, (table) => keptRecords(table, removable), most)

/** Drops a partition of usage. @param removable organizations; the usage of others stays. @returns as `dropKeeping`. */
export const dropUsage = (
  database: Database,
  partition: Partition,
  removable: readonly string[],
  most: number,
): Promise<number | null> =>
  dropKeeping(database, usageEvents, partition, (table) => keptUsage(table, removable), most)
