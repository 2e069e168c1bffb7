import { sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { auditRecords, creditEntries } from '../../../schema/governance.ts'
import { type EpochColumns, epochColumns, epochsOf } from '../epochs/epochs.store.ts'
import type { LearnedEpochs } from '../epochs/known-epochs.ts'
import { type ChainIdentity, GENESIS } from '../records/chain.ts'
import { HOME_SHARD } from '../shards/shards.ts'
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
 * Reads the initial state of an account in one statement, so that the parts agree: the balance, the head of the chain,
 * the epochs, and the last transfers between the shards. The balance is the sum of the shard's entries, each of which
 * has a record. The home shard, which alone makes grants, also gets those already made, and the transfers of all
 * shards.
 */
export async function loadAccount(
  database: Database,
  { organizationId, shard }: ChainIdentity,
): Promise<AccountBeginning> {
  const owned = sql`organization_id = ${organizationId}::uuid`
  const isHome = shard === HOME_SHARD
  const transfers = sql`FROM ${creditEntries} WHERE ${owned} AND kind = 'transfer'`
  const shards = isHome
    ? sql`generate_series(1, (SELECT max(split_part(id, ':', 1)::int) ${transfers}))`
    : sql`(VALUES (${shard}::int))`
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
      FROM ${creditEntries} WHERE ${owned} AND kind = 'grant' AND ${sql.raw(String(isHome))}
    ) AS granted
    CROSS JOIN (
      SELECT coalesce(jsonb_agg(last), '[]'::jsonb) AS transfers FROM ${shards} AS place(shard)
      CROSS JOIN (VALUES ('sent'), ('received'), ('returned'), ('taken')) AS way(direction)
      CROSS JOIN LATERAL (
        SELECT place.shard, way.direction, split_part(id, ':', 2)::int AS number, abs(amount) AS amount
        ${transfers} AND split_part(id, ':', 1)::int = place.shard AND split_part(id, ':', 3) = way.direction
        ORDER BY split_part(id, ':', 2)::int DESC LIMIT 1
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
  return {
    state,
    grants: row.grants,
    epochs: epochsOf(row),
    transfers: row.transfers,
    lastShard: Number(row.last_shard),
  }
}
