import { and, asc, between, desc, eq, getTableColumns, gt, lt, lte, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { auditCheckpoints, auditRecords } from '../../../schema/governance.ts'
import { type ChainHead, type ChainIdentity, GENESIS } from './chain.ts'
import { exactInstant } from './exact-instant.store.ts'
import type { StoredRecord } from './record-body.ts'

/**
 * Rows of one chain after a sequence, in order, for `verifyLinks`.
 * @internal Campaigns and tests read a chain whole.
 */
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

/** Maximum size of the bodies of one page together, in bytes. A larger record is a page of its own. */
const PAGE_BYTES = 8_000_000

/** First and last place of a page of a chain. */
export interface ChainPlace extends ChainIdentity {
  /** 0 for the beginning. */
  afterSequence: number
  /** The last sequence; null for the end of the chain. */
  toSequence: number | null
}

/** Rows of one chain in order, as many as one answer can hold. @returns also whether there are more. */
export async function readChainPage(
  database: Database,
  { organizationId, shard, afterSequence, toSequence }: ChainPlace,
  most: number,
): Promise<{ records: StoredRecord[]; hasMore: boolean }> {
  const { organizationId: owner, shard: part, sequence, body } = auditRecords
  const rows = database
    .select({ sequence, length: sql<number>`octet_length(${body})`.as('body_length') })
    .from(auditRecords)
    .where(
      and(
        eq(owner, organizationId),
        eq(part, shard),
        gt(sequence, afterSequence),
        toSequence === null ? undefined : lte(sequence, toSequence),
      ),
    )
    .orderBy(asc(sequence))
    .limit(most + 1)
    .as('page')
  const lengths = await database
    .select({
      sequence: rows.sequence,
      total: sql`sum(${rows.length}) OVER (ORDER BY ${rows.sequence})`.mapWith(Number),
    })
    .from(rows)
    .orderBy(asc(rows.sequence))
  const fitting = lengths.filter(({ total }, index) => index < most && (index === 0 || total <= PAGE_BYTES))
  const [first, last] = [fitting[0], fitting.at(-1)]
  if (!first || !last) return { records: [], hasMore: false }
  const records = await database
    .select({ ...getTableColumns(auditRecords), at: exactInstant(auditRecords.at) })
    .from(auditRecords)
    .where(and(eq(owner, organizationId), eq(part, shard), between(sequence, first.sequence, last.sequence)))
    .orderBy(asc(sequence))
  return { records, hasMore: lengths.length > fitting.length }
}

/** A chain as Postgres has it. */
export interface StoredChain extends ChainIdentity, ChainHead {
  /** Sequence of the first record: 1, unless the chain was tampered with. */
  first: number
}

/** Every chain of an organization, or of the deployment where it is null. Walks along the primary key, since `DISTINCT ON` would read every record. */
export async function readStoredChains(
  database: Database,
  organizationId: string | null,
): Promise<StoredChain[]> {
  const owned = organizationId === null ? sql`true` : sql`record.organization_id = ${organizationId}::uuid`
  // Within one organization, comparing both columns would read all entries of the index up to the next shard.
  const isNext =
    organizationId === null
      ? sql`(record.organization_id, record.shard) > (chains.organization_id, chains.shard)`
      : sql`${owned} AND record.shard > chains.shard`
  const result = await database.execute<{
    organization_id: string
    shard: number
    first: string
    sequence: string
    hash: string
  }>(sql`
    WITH RECURSIVE chains AS (
      (SELECT organization_id, shard, sequence AS first FROM ${auditRecords} AS record WHERE ${owned}
        ORDER BY organization_id, shard, sequence LIMIT 1)
      UNION ALL
      SELECT next.organization_id, next.shard, next.first FROM chains CROSS JOIN LATERAL (
        SELECT organization_id, shard, sequence AS first FROM ${auditRecords} AS record
        WHERE ${isNext}
        ORDER BY organization_id, shard, sequence LIMIT 1
      ) AS next
    )
    SELECT chains.organization_id, chains.shard, chains.first, head.sequence, head.hash
    FROM chains CROSS JOIN LATERAL (
      SELECT sequence, hash FROM ${auditRecords} AS record
      WHERE record.organization_id = chains.organization_id AND record.shard = chains.shard
      ORDER BY sequence DESC LIMIT 1
    ) AS head
    ORDER BY chains.organization_id, chains.shard`)
  return result.rows.map((row) => ({
    organizationId: row.organization_id,
    shard: row.shard,
    first: Number(row.first),
    sequence: Number(row.sequence),
    hash: row.hash,
  }))
}

/** The head of every chain of an organization, or of the deployment where it is null. */
export async function readChainHeads(
  database: Database,
  organizationId: string | null,
): Promise<Array<ChainIdentity & ChainHead>> {
  return (await readStoredChains(database, organizationId)).map(({ first: _, ...head }) => head)
}

/**
 * The last record of one chain, or `GENESIS` without any.
 * @param before only records of lower sequences; null for all.
 */
export async function readChainHead(
  database: Database,
  { organizationId, shard }: ChainIdentity,
  before: number | null = null,
): Promise<ChainHead> {
  const { organizationId: owner, shard: part, sequence, hash } = auditRecords
  const isBefore = before === null ? undefined : lt(sequence, before)
  const [head] = await database
    .select({ sequence, hash })
    .from(auditRecords)
    .where(and(eq(owner, organizationId), eq(part, shard), isBefore))
    .orderBy(desc(sequence))
    .limit(1)
  return head ?? GENESIS
}

/** Hash of the record in each place; null where there is no record. */
export async function readHashes(
  database: Database,
  places: ReadonlyArray<ChainIdentity & { sequence: number }>,
): Promise<Array<string | null>> {
  if (places.length === 0) return []
  const result = await database.execute<{ hash: string | null }>(sql`
    SELECT record.hash
    FROM ROWS FROM (jsonb_to_recordset(${JSON.stringify(places)}::jsonb)
      AS ("organizationId" uuid, shard int, sequence bigint))
      WITH ORDINALITY AS place(organization_id, shard, sequence, position)
    LEFT JOIN ${auditRecords} AS record ON record.organization_id = place.organization_id
      AND record.shard = place.shard AND record.sequence = place.sequence
    ORDER BY place.position`)
  return result.rows.map(({ hash }) => hash)
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

/** Lists checkpoints in order of id, after one. */
export async function listCheckpoints(
  database: Database,
  after: string | null,
  most: number,
): Promise<Checkpoint[]> {
  const { id } = auditCheckpoints
  return database
    .select({ ...getTableColumns(auditCheckpoints), at: exactInstant(auditCheckpoints.at) })
    .from(auditCheckpoints)
    .where(after === null ? undefined : gt(id, after))
    .orderBy(asc(id))
    .limit(most)
}
