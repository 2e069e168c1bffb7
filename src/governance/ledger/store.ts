import { type AnyColumn, getTableColumns, type SQL, sql } from 'drizzle-orm'
import type { NeonHttpDatabase } from 'drizzle-orm/neon-http'
import type { PgTable } from 'drizzle-orm/pg-core'
import { auditRecords, creditEntries, rejectedCalls, usageEvents } from '../../../schema/governance.ts'
import type { AccountState } from './account-tables.ts'
import { type ChainIdentity, type ChainLink, GENESIS } from './chain.ts'
import { copiedColumns, creditOf, type RecordBody, usageOf } from './record-body.ts'
import type { RejectedCount } from './rejected-calls.ts'

export type LedgerDatabase = NeonHttpDatabase

/**
 * What an account begins with when its object's storage is empty, read in one statement so that the parts agree:
 * the balance (of shard 0; other shards own nothing until they are given some), the head of the chain, and the grants
 * already made.
 */
export async function loadAccount(
  database: LedgerDatabase,
  { organizationId, shard }: ChainIdentity,
): Promise<{ state: AccountState; grantIds: string[] }> {
  const result = await database.execute<{
    balance: string
    grant_ids: string[]
    sequence: string | null
    hash: string | null
  }>(sql`
    SELECT totals.balance, totals.grant_ids, head.sequence, head.hash
    FROM (
      SELECT coalesce(sum(amount), 0)::text AS balance,
        coalesce(jsonb_agg(id) FILTER (WHERE kind = 'grant'), '[]'::jsonb) AS grant_ids
      FROM ${creditEntries} WHERE organization_id = ${organizationId}::uuid
    ) AS totals
    LEFT JOIN (
      SELECT sequence, hash FROM ${auditRecords}
      WHERE organization_id = ${organizationId}::uuid AND shard = ${shard}
      ORDER BY sequence DESC LIMIT 1
    ) AS head ON true`)
  const [row] = result.rows
  if (!row) throw new Error('Postgres answered without a row')
  const head = row.hash === null ? GENESIS : { sequence: Number(row.sequence), hash: row.hash }
  return { state: { ...head, balance: shard === 0 ? Number(row.balance) : 0 }, grantIds: row.grant_ids }
}

/**
 * Writes records, with the usage and the credit movements they tell of, in one transaction. Rows that are there
 * already are left as they are, so repeating it does no harm.
 * @throws if afterwards Postgres does not hold exactly these records, for instance because another chain has grown
 * under the same name; nothing may be deleted then.
 */
export async function writeLinks(
  database: LedgerDatabase,
  { organizationId, shard }: ChainIdentity,
  links: readonly ChainLink[],
): Promise<void> {
  const bodies = links.map((link): RecordBody => JSON.parse(link.body))
  const records = links.map((link, index) => ({ ...copiedColumns(bodies[index] as RecordBody), ...link }))
  const hashes = JSON.stringify(links.map(({ sequence, hash }) => ({ sequence, hash })))
  const held = database.execute<{ held: number }>(sql`
    SELECT count(*)::int AS held
    FROM jsonb_to_recordset(${hashes}::jsonb) AS link(sequence bigint, hash text)
    JOIN ${auditRecords} AS record ON record.organization_id = ${organizationId}::uuid
      AND record.shard = ${shard} AND record.sequence = link.sequence AND record.hash = link.hash`)
  const usage = bodies.map(usageOf).filter((row) => row !== null)
  const credits = bodies.map(creditOf).filter((row) => row !== null)
  const results = await database.batch([
    database.execute(insertRows(auditRecords, records)),
    ...(usage.length > 0 ? [database.execute(insertRows(usageEvents, usage))] : []),
    ...(credits.length > 0 ? [database.execute(insertRows(creditEntries, credits))] : []),
    held,
  ])
  const answer = results.at(-1) as Awaited<typeof held>
  if (answer.rows[0]?.held !== links.length) {
    throw new Error(`the chain of ${organizationId}:${shard} differs from what Postgres holds`)
  }
}

/** Sets the totals of addresses, minutes and surfaces. A total never shrinks, whatever arrives late. */
export async function writeRejectedCounts(database: LedgerDatabase, counts: RejectedCount[]): Promise<void> {
  const rows = counts.map((count) => ({ ...count, minute: new Date(count.minute) }))
  await database.execute(
    sql`${selectRows(rejectedCalls, rows)} ON CONFLICT (ip, minute, surface)
      DO UPDATE SET count = greatest(${rejectedCalls}.count, excluded.count)`,
  )
}

function insertRows(table: PgTable, rows: readonly object[]): SQL {
  return sql`${selectRows(table, rows)} ON CONFLICT DO NOTHING`
}

/** An insert whose rows travel as one JSON parameter: hundreds of rows cost as little as one to prepare. */
function selectRows(table: PgTable, rows: readonly object[]): SQL {
  const columns: [string, AnyColumn][] = Object.entries(getTableColumns(table))
  const list = (parts: SQL[]) => sql.join(parts, sql`, `)
  const names = list(columns.map(([, column]) => sql.identifier(column.name)).map((name) => sql`${name}`))
  const members = list(columns.map(([member]) => sql`${sql.identifier(member)}`))
  const types = list(
    columns.map(([member, column]) => sql`${sql.identifier(member)} ${sql.raw(column.getSQLType())}`),
  )
  return sql`INSERT INTO ${table} (${names})
    SELECT ${members} FROM jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) AS entry(${types})`
}
