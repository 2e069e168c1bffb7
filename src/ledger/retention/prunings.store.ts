import { and, eq, inArray, type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { auditRecords, creditEntries, prunings } from '../../../schema/governance.ts'
import { timeParameter, utc } from '../../../schema/sql-values.ts'
import type { ChainIdentity } from '../records/chain.ts'
import type { RecordsPruning, SignedPruning } from './pruning.ts'

/** Statements about organizations. */
export const selectPrunings = (
  database: Database,
  organizationIds: readonly string[],
): Promise<SignedPruning[]> =>
  organizationIds.length === 0
    ? Promise.resolve([])
    : database
        .select()
        .from(prunings)
        .where(inArray(prunings.organizationId, [...organizationIds]))

/** The statement about a chain, or about the usage or rejected calls of an organization. */
export async function selectPruning(
  database: Database,
  { organizationId, kind, shard }: Pick<SignedPruning, 'organizationId' | 'kind' | 'shard'>,
): Promise<SignedPruning | null> {
  const [row] = await database
    .select()
    .from(prunings)
    .where(
      and(eq(prunings.organizationId, organizationId), eq(prunings.kind, kind), eq(prunings.shard, shard)),
    )
  return row ?? null
}

const stated = (column: SQL) => sql`(${column}::jsonb->>'before')::timestamptz`
const statedSequence = (column: SQL) => sql`coalesce((${column}::jsonb->>'sequence')::bigint, 0)`

/**
 * Replaces the statement about a chain, or about the usage or rejected calls of an organization, by one that reaches as far or further:
 * what a statement allows to be missing may be missing already.
 * @returns whether it was stored; false where the one that is stored reaches further.
 */
export async function upsertPruning(database: Database, row: SignedPruning): Promise<boolean> {
  const { statement, pepperId, mac } = row
  const [held, offered] = [sql`${prunings.statement}`, sql`excluded.statement`]
  const rows = await database
    .insert(prunings)
    .values(row)
    .onConflictDoUpdate({
      target: [prunings.organizationId, prunings.kind, prunings.shard],
      set: { statement, pepperId, mac },
      setWhere: sql`${statedSequence(held)} <= ${statedSequence(offered)} AND ${stated(held)} <= ${stated(offered)}`,
    })
    .returning({ kind: prunings.kind })
  return rows.length > 0
}

const ofChain = ({ organizationId, shard }: ChainIdentity) =>
  sql`record.organization_id = ${organizationId}::uuid AND record.shard = ${shard}`

/**
 * The last record of a chain that may go: all up to it are older than a time, and it is not the last one of the chain, which every
 * ledger and verification begins with. By the columns alone: `readPartOfChain` compares them with the bodies.
 * @param after a record before which nothing is searched. @returns null when there is none.
 */
export async function findLastToPrune(
  database: Database,
  chain: ChainIdentity,
  after: number,
  before: Date,
): Promise<number | null> {
  const { rows } = await database.execute<{ last: string | null }>(sql`
    SELECT least(
      (SELECT sequence FROM ${auditRecords} AS record WHERE ${ofChain(chain)} AND record.sequence > ${after}
        AND ${utc(sql`record.at`)} >= ${utc(timeParameter(before))} ORDER BY record.sequence LIMIT 1),
      (SELECT sequence FROM ${auditRecords} AS record WHERE ${ofChain(chain)}
        ORDER BY record.sequence DESC LIMIT 1)) - 1 AS last`)
  const last = rows[0]?.last
  return last == null || Number(last) <= after ? null : Number(last)
}

/** Deletes records of a chain that a statement allows to be missing, the first ones. @returns how many; at most `most`. */
export async function deletePrunedRecords(
  database: Database,
  { organizationId, shard, sequence }: RecordsPruning,
  most: number,
): Promise<number> {
  const isPruned = sql`${ofChain({ organizationId, shard })} AND record.sequence <= ${sequence}`
  const { rows } = await database.execute(sql`
    DELETE FROM ${auditRecords} AS record WHERE ${isPruned} AND record.sequence < ${most} + (
      SELECT sequence FROM ${auditRecords} AS record WHERE ${isPruned} ORDER BY record.sequence LIMIT 1)
    RETURNING 1 AS deleted`)
  return rows.length
}

/** Number and sum, in micro-credits, of movements of a balance. */
interface Movements {
  entries: number
  amount: number
}

/** Movement of credits by a record that stays, in micro-credits; null for one without. Verification compares its columns with its body. */
const MOVEMENT = sql`CASE WHEN record.kind = 'call' THEN nullif(-record.credits_settled, 0)
  WHEN strpos(record.body, '"credit":{') > 0 THEN (record.body::jsonb->'credit'->>'amount')::bigint END`

/**
 * Sum and number of the rows of credits that statements about the records of one organization vouch for, as Postgres has them.
 * @returns by shard; none for a shard without any. The credits of the organization are read once, whatever the number of shards.
 */
export async function sumPrunedCredits(
  database: Database,
  statements: readonly RecordsPruning[],
): Promise<Map<number, Movements>> {
  const [first] = statements
  if (!first) return new Map()
  const organization = sql`organization_id = ${first.organizationId}::uuid`
  const latest = timeParameter(Math.max(...statements.map(({ before }) => Date.parse(before))))
  // Looked up by shard in JSON: a join would let Postgres read the chain of each shard from its statement to its end.
  const ofShard = (member: 'before' | 'sequence') => {
    const values = Object.fromEntries(statements.map((each) => [each.shard, each[member]]))
    return sql`(${JSON.stringify(values)}::jsonb->>shard::text)`
  }
  const isBefore = sql`${organization} AND at < ${latest} AND at < ${ofShard('before')}::timestamptz`
  const { rows } = await database.execute<{ shard: number; entries: number; amount: string }>(sql`
    SELECT shard, sum(entries)::int AS entries, sum(amount)::text AS amount FROM (
      SELECT shard, 1 AS entries, amount FROM ${creditEntries} WHERE ${isBefore}
      UNION ALL
      SELECT shard, -1, -moved FROM (
        SELECT shard, ${MOVEMENT} AS moved FROM ${auditRecords} AS record
        WHERE ${isBefore} AND ${utc(sql`at`)} < ${utc(latest)} AND sequence > ${ofShard('sequence')}::bigint) AS kept
      WHERE moved IS NOT NULL) AS movement
    GROUP BY shard`)
  return new Map(rows.map(({ shard, entries, amount }) => [shard, { entries, amount: Number(amount) }]))
}
