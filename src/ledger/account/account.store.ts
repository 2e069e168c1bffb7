import { sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { auditRecords, creditEntries } from '../../../schema/governance.ts'
import { type EpochColumns, epochColumns, epochsOf } from '../epochs/epochs.store.ts'
import type { LearnedEpochs } from '../epochs/known-epochs.ts'
import { type ChainIdentity, GENESIS } from '../records/chain.ts'
import type { Transfer } from '../shards/transfers.ts'
import type { AccountState, MadeGrant } from './account-tables.ts'

/** The initial state of an account whose object has an empty storage. */
interface AccountBeginning {
  state: AccountState
  grants: MadeGrant[]
  epochs: LearnedEpochs
  /** The last transfers between shards. */
  transfers: Transfer[]
  /** The highest shard of the organization that has records; 0 when only the home shard may have some. */
  lastShard: number
}

/**
 * Reads the initial state of an account in one statement, so that the parts agree: the balance (the sum of the entries of
 * its shard, of which there is none without a record), the head of the chain, the grants already made, the epochs, the shards and the transfers between them.
 */
export async function loadAccount(
  database: Database,
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
    SELECT granted.grants, moved.transfers, head.sequence, head.hash, ${epochColumns(organizationId)},
      coalesce((SELECT max(shard) FROM ${auditRecords} WHERE ${owned}), 0) AS last_shard,
      CASE WHEN head.hash IS NULL THEN '0' ELSE (SELECT coalesce(sum(amount), 0)::text FROM ${creditEntries}
        WHERE ${owned} AND shard = ${shard}) END AS balance
    FROM (
      SELECT coalesce(jsonb_agg(jsonb_build_object('id', id, 'amount', amount)), '[]'::jsonb) AS grants
      FROM ${creditEntries} WHERE ${owned} AND kind = 'grant'
    ) AS granted
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
