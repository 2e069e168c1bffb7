import { and, asc, desc, eq, gt, sql } from 'drizzle-orm'
import type { NeonHttpDatabase } from 'drizzle-orm/neon-http'
import {
  auditCheckpoints,
  auditRecords,
  creditEntries,
  rejectedCalls,
} from '../../../../schema/governance.ts'
import { organizations } from '../../../../schema/identity.ts'
import { deploymentEpochs } from '../../../../schema/models.ts'
import type { AccountState, MadeGrant } from '../account/account-tables.ts'
import type { LearnedEpochs } from '../commits/commit.ts'
import type { RejectedCount } from '../rejected-calls/rejected-calls.ts'
import type { Transfer } from '../shards/transfers.ts'
import { type ChainHead, type ChainIdentity, GENESIS } from './chain.ts'
import type { StoredRecord } from './record-body.ts'

export type LedgerDatabase = NeonHttpDatabase

/** What an account begins with when its object's storage is empty. */
export interface AccountBeginning {
  state: AccountState
  grants: MadeGrant[]
  epochs: LearnedEpochs
  /** How far transfers between shards have come. */
  transfers: Transfer[]
  /** The highest shard of the organization that has records; 0 when there is none but the home shard. */
  lastShard: number
}

/**
 * Reads what an account begins with, in one statement so that the parts agree: the balance (what the entries of its
 * shard come to), the head of the chain, the grants already made, the epochs, the shards and the transfers between them.
 */
export async function loadAccount(
  database: LedgerDatabase,
  { organizationId, shard }: ChainIdentity,
): Promise<AccountBeginning> {
  const owned = sql`organization_id = ${organizationId}::uuid`
  const result = await database.execute<
    {
      balance: string
      grants: MadeGrant[]
      transfers: Transfer[]
      last_shard: number
      sequence: string | null
      hash: string | null
    } & EpochColumns
  >(sql`
    SELECT totals.balance, totals.grants, moved.transfers, head.sequence, head.hash, ${epochColumns(organizationId)},
      coalesce((SELECT max(shard) FROM ${auditRecords} WHERE ${owned}), 0) AS last_shard
    FROM (
      SELECT coalesce(sum(amount) FILTER (WHERE shard = ${shard}), 0)::text AS balance,
        coalesce(jsonb_agg(jsonb_build_object('id', id, 'amount', amount))
          FILTER (WHERE kind = 'grant'), '[]'::jsonb) AS grants
      FROM ${creditEntries} WHERE ${owned}
    ) AS totals
    CROSS JOIN (
      SELECT coalesce(jsonb_agg(last), '[]'::jsonb) AS transfers FROM (
        SELECT DISTINCT ON (1, 2) split_part(id, ':', 1)::int AS shard, split_part(id, ':', 3) AS direction,
          split_part(id, ':', 2)::int AS number, abs(amount) AS amount
        FROM ${creditEntries} WHERE ${owned} AND kind = 'transfer' ORDER BY 1, 2, 3 DESC
      ) AS last
    ) AS moved
    LEFT JOIN (
      SELECT sequence, hash FROM ${auditRecords}
      WHERE ${owned} AND shard = ${shard}
      ORDER BY sequence DESC LIMIT 1
    ) AS head ON true`)
  const [row] = result.rows
  if (!row) throw new Error('Postgres answered without a row')
  const head = row.hash === null ? GENESIS : { sequence: Number(row.sequence), hash: row.hash }
  const state = { ...head, balance: Number(row.balance) }
  const { grants, transfers } = row
  return { state, grants, epochs: epochsOf(row), transfers, lastShard: Number(row.last_shard) }
}

export type EpochColumns = {
  organization_epoch: string | null
  catalogue_epoch: string
}

/** As they are now; the organization's is null for the deployment's own ledger. A catalogue without a row is at 1. */
export const epochColumns = (organizationId: string) => sql`
  (SELECT epoch FROM ${organizations} WHERE id = ${organizationId}::uuid)::text AS organization_epoch,
  coalesce((SELECT epoch FROM ${deploymentEpochs} WHERE name = 'catalogue'), 1)::text AS catalogue_epoch`

export const epochsOf = ({
  organization_epoch: organization,
  catalogue_epoch: catalogue,
}: EpochColumns): LearnedEpochs => ({
  organization: organization === null ? null : Number(organization),
  catalogue: Number(catalogue),
})

/** Sets the totals of addresses, minutes and surfaces. A total never shrinks, whatever arrives late. */
export async function writeRejectedCounts(database: LedgerDatabase, counts: RejectedCount[]): Promise<void> {
  const rows = counts.map((count) => ({ ...count, minute: new Date(count.minute) }))
  const { ip, minute, surface, count } = rejectedCalls
  await database
    .insert(rejectedCalls)
    .values(rows)
    .onConflictDoUpdate({
      target: [ip, minute, surface],
      set: { count: sql`greatest(${count}, excluded.count)` },
    })
}

/** Rows of one chain after a sequence, in order, for `verifyLinks`. */
export async function readChain(
  database: LedgerDatabase,
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

/**
 * The head of every chain of the deployment. Walks from chain to chain along the primary key, since a plain
 * `DISTINCT ON` would read every record there ever was.
 */
export async function readChainHeads(database: LedgerDatabase): Promise<Array<ChainIdentity & ChainHead>> {
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

/** Heads that are not, or no longer, the record of their sequence. */
export async function findReplacedHeads(
  database: LedgerDatabase,
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
  database: LedgerDatabase,
  checkpoint: Omit<Checkpoint, 'id'>,
): Promise<Checkpoint> {
  const [inserted] = await database.insert(auditCheckpoints).values(checkpoint).returning()
  if (!inserted) throw new Error('Postgres answered without the checkpoint')
  return inserted
}

/** Newest first. */
export async function listCheckpoints(database: LedgerDatabase, most: number): Promise<Checkpoint[]> {
  return database.select().from(auditCheckpoints).orderBy(desc(auditCheckpoints.at)).limit(most)
}
