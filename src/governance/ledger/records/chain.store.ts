import { and, asc, desc, eq, gt, sql } from 'drizzle-orm'
import type { Database } from '../../../../schema/database.ts'
import { auditCheckpoints, auditRecords } from '../../../../schema/governance.ts'
import type { ChainHead, ChainIdentity } from './chain.ts'
import type { StoredRecord } from './record-body.ts'

/** Rows of one chain after a sequence, in order, for `verifyLinks`. */
export async function readChain(
  database: Database,
  { organizationId, shard }: ChainIdentity,
  afterSequence: number,
  most: number,
): Promise<StoredRecord[]> {
  const { organizationId: owner, shard: part, sequence } = auditRecords
  return database
    .select()
    .from(auditRecords)
    .where(and(eq(owner, organizationId), eq(part, shard), gt(sequence, afterSequence)))
    .orderBy(asc(sequence))
    .limit(most)
}

/** The head of every chain of the deployment. Walks along the primary key, since `DISTINCT ON` would read every record. */
export async function readChainHeads(database: Database): Promise<Array<ChainIdentity & ChainHead>> {
  const result = await database.execute<{
    organization_id: string
    shard: number
    sequence: string
    hash: string
  }>(sql`
    WITH RECURSIVE chains AS (
      (SELECT organization_id, shard FROM ${auditRecords} ORDER BY organization_id, shard LIMIT 1)
      UNION ALL
      SELECT next.organization_id, next.shard FROM chains CROSS JOIN LATERAL (
        SELECT organization_id, shard FROM ${auditRecords} AS record
        WHERE (record.organization_id, record.shard) > (chains.organization_id, chains.shard)
        ORDER BY organization_id, shard LIMIT 1
      ) AS next
    )
    SELECT chains.organization_id, chains.shard, head.sequence, head.hash
    FROM chains CROSS JOIN LATERAL (
      SELECT sequence, hash FROM ${auditRecords} AS record
      WHERE record.organization_id = chains.organization_id AND record.shard = chains.shard
      ORDER BY sequence DESC LIMIT 1
    ) AS head
    ORDER BY chains.organization_id, chains.shard`)
  return result.rows.map((row) => ({
    organizationId: row.organization_id,
    shard: row.shard,
    sequence: Number(row.sequence),
    hash: row.hash,
  }))
}

/** Heads that are not the record of their sequence (any more). */
export async function findReplacedHeads(
  database: Database,
  heads: Array<ChainIdentity & ChainHead>,
): Promise<Array<ChainIdentity & ChainHead>> {
  const result = await database.execute<{ index: number }>(sql`
    SELECT (head.position - 1)::int AS index
    FROM ROWS FROM (jsonb_to_recordset(${JSON.stringify(heads)}::jsonb)
      AS ("organizationId" uuid, shard int, sequence bigint, hash text))
      WITH ORDINALITY AS head(organization_id, shard, sequence, hash, position)
    LEFT JOIN ${auditRecords} AS record ON record.organization_id = head.organization_id
      AND record.shard = head.shard AND record.sequence = head.sequence AND record.hash = head.hash
    WHERE record.sequence IS NULL
    ORDER BY head.position`)
  return result.rows.flatMap(({ index }) => heads[index] ?? [])
}

export type Checkpoint = typeof auditCheckpoints.$inferSelect

export async function insertCheckpoint(
  database: Database,
  checkpoint: Omit<Checkpoint, 'id'>,
): Promise<Checkpoint> {
  const [inserted] = await database.insert(auditCheckpoints).values(checkpoint).returning()
  if (!inserted) throw new Error('Postgres answered without the checkpoint')
  return inserted
}

/** Newest first. */
export async function listCheckpoints(database: Database, most: number): Promise<Checkpoint[]> {
  return database.select().from(auditCheckpoints).orderBy(desc(auditCheckpoints.at)).limit(most)
}
