import { sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { auditRecords, prunings, usageEvents } from '../../../schema/governance.ts'
import type { ChainIdentity } from '../records/chain.ts'

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

/** The chains that have records in a partition, after one. Walks along the primary key. */
export async function listChainsOfPartition(
  database: Database,
  { name }: Partition,
  after: ChainIdentity | null,
  most: number,
): Promise<ChainIdentity[]> {
  const table = sql.identifier(name)
  const first =
    after === null
      ? sql`true`
      : sql`(organization_id, shard) > (${after.organizationId}::uuid, ${after.shard}::int)`
  const { rows } = await database.execute<{ organization_id: string; shard: number }>(sql`
    WITH RECURSIVE chains AS (
      (SELECT organization_id, shard FROM ${table} WHERE ${first} ORDER BY organization_id, shard, sequence LIMIT 1)
      UNION ALL
      SELECT next.organization_id, next.shard FROM chains CROSS JOIN LATERAL (
        SELECT organization_id, shard FROM ${table} AS record
        WHERE (record.organization_id, record.shard) > (chains.organization_id, chains.shard)
        ORDER BY organization_id, shard, sequence LIMIT 1) AS next
    ) SELECT organization_id, shard FROM chains LIMIT ${most}`)
  return rows.map(({ organization_id: organizationId, shard }) => ({ organizationId, shard }))
}

/** The organizations that have usage in a partition, after one. */
export async function listOrganizationsOfPartition(
  database: Database,
  { name }: Partition,
  after: string | null,
  most: number,
): Promise<string[]> {
  const table = sql.identifier(name)
  const first = after === null ? sql`true` : sql`organization_id > ${after}::uuid`
  const { rows } = await database.execute<{ organization_id: string }>(sql`
    WITH RECURSIVE owners AS (
      (SELECT organization_id FROM ${table} WHERE ${first} ORDER BY organization_id LIMIT 1)
      UNION ALL
      SELECT next.organization_id FROM owners CROSS JOIN LATERAL (
        SELECT organization_id FROM ${table} AS event WHERE event.organization_id > owners.organization_id
        ORDER BY organization_id LIMIT 1) AS next
    ) SELECT organization_id FROM owners LIMIT ${most}`)
  return rows.map(({ organization_id: id }) => id)
}

/** Statements on the table wait for the drop, so it gives up where it would wait itself. */
const LOCK_TIMEOUT = sql`SELECT set_config('lock_timeout', '3s', true)`

/**
 * Drops a partition of records. Those that no statement allows to be missing stay, in the default partition: the last record of a
 * chain, calls that were open at the end of the month, and any that a ledger has written since.
 */
export async function dropRecords(database: Database, { name }: Partition): Promise<void> {
  const table = sql.identifier(name)
  await database.batch([
    database.execute(LOCK_TIMEOUT),
    database.execute(sql`ALTER TABLE ${auditRecords} DETACH PARTITION ${table}`),
    database.execute(sql`
      INSERT INTO ${auditRecords}
      WITH RECURSIVE chains AS (
        (SELECT organization_id, shard FROM ${table} ORDER BY organization_id, shard, sequence LIMIT 1)
        UNION ALL
        SELECT next.organization_id, next.shard FROM chains CROSS JOIN LATERAL (
          SELECT organization_id, shard FROM ${table} AS record
          WHERE (record.organization_id, record.shard) > (chains.organization_id, chains.shard)
          ORDER BY organization_id, shard, sequence LIMIT 1) AS next)
      SELECT kept.* FROM chains CROSS JOIN LATERAL (
        SELECT record.* FROM ${table} AS record
        WHERE record.organization_id = chains.organization_id AND record.shard = chains.shard
          AND record.sequence > coalesce((SELECT (statement::jsonb->>'sequence')::bigint FROM ${prunings} AS pruning
            WHERE pruning.organization_id = chains.organization_id AND pruning.kind = 'records'
              AND pruning.shard = chains.shard), 0)) AS kept`),
    database.execute(sql`DROP TABLE ${table}`),
  ])
}

/** Drops a partition of usage. */
export async function dropUsage(database: Database, { name }: Partition): Promise<void> {
  const table = sql.identifier(name)
  await database.batch([
    database.execute(LOCK_TIMEOUT),
    database.execute(sql`ALTER TABLE ${usageEvents} DETACH PARTITION ${table}`),
    database.execute(sql`DROP TABLE ${table}`),
  ])
}
