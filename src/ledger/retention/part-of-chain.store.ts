import { getTableColumns, type SQL, sql } from 'drizzle-orm'
import type { PgTable } from 'drizzle-orm/pg-core'
import type { Database } from '../../../schema/database.ts'
import { auditRecords, creditEntries } from '../../../schema/governance.ts'
import { isDataException } from '../../lib/database-error.ts'
import type { ChainHead, ChainIdentity } from '../records/chain.ts'
import {
  type ColumnTexts,
  GRANT_OR_TRANSFER,
  IS_CALL,
  RECORD,
  SETTLEMENT,
} from '../records/extracted-columns.store.ts'

// What is verified of records before retention signs that they may be missing: nothing tells afterwards what they were.

/** A row of `credit_entries` as the body of its record has it. */
const CREDIT = Object.fromEntries(
  Object.keys(getTableColumns(creditEntries)).map((member) => {
    const name = member as keyof typeof SETTLEMENT
    return [name, `CASE WHEN ${IS_CALL} THEN ${SETTLEMENT[name]} ELSE ${GRANT_OR_TRANSFER[name]} END`]
  }),
) as ColumnTexts<typeof creditEntries>

/** SQL of whether the columns of a row have other values than these texts. */
function differs<Table extends PgTable>(
  table: Table,
  alias: string,
  texts: Partial<ColumnTexts<Table>>,
): string {
  const columns = Object.entries(getTableColumns(table)).filter(([member]) => member in texts)
  const stored = columns.map(([, { name }]) => `${alias}.${name}`).join(', ')
  const expected = columns.map(([member]) => texts[member as keyof typeof texts]).join(', ')
  return `(${stored}) IS DISTINCT FROM (${expected})`
}

const { body: _, previousHash: __, hash: ___, ...COPIED } = RECORD

/** Whether a record does not follow the one before it, or is not what its body says. */
const IS_BROKEN = `sequence <> sequence_before + 1 OR previous_hash <> hash_before
  OR hash <> encode(sha256(convert_to(previous_hash || body, 'UTF8')), 'hex') OR ${differs(auditRecords, 'link', COPIED)}`

/** Whether the row of credits under the name that the record has for it, or would have, is not the record's. */
const HAS_OTHER_CREDIT = `CASE WHEN moved IS NULL THEN entry.id IS NOT NULL ELSE ${differs(creditEntries, 'entry', CREDIT)} END`

/** Records of a chain that are one, with what a statement about them has to say. */
export interface PartOfChain {
  /** Of the last one. */
  hash: string
  /** Movements of credits, with their sum in micro-credits. */
  entries: number
  amount: number
}

/**
 * Reads and verifies the records of a chain after one up to another, and the one after that, which stays: their places, links and hashes,
 * the columns that repeat their bodies, and their rows of credits. What decides over their removal, and their movements of credits, are
 * so what the bodies say. The order of their times is no matter: a call that was open for long is older than the records before it.
 * @returns null where anything of it is missing or altered.
 */
export async function readPartOfChain(
  database: Database,
  chain: ChainIdentity,
  after: ChainHead,
  to: number,
): Promise<PartOfChain | null> {
  try {
    const [part] = (await database.execute<CountedPart>(partOfChain(chain, after, to))).rows
    if (!part || part.records !== to + 1 - after.sequence || part.broken > 0 || part.hash === null)
      return null
    return { hash: part.hash, entries: part.entries, amount: Number(part.amount) }
  } catch (error) {
    // A body that is no JSON, or has a text in place of a number.
    if (isDataException(error)) return null
    throw error
  }
}

interface CountedPart extends Record<string, unknown> {
  /** The one after the last included, as in `broken`. */
  records: number
  broken: number
  entries: number
  amount: string
  hash: string | null
}

/**
 * The rows of credits are looked up one by one: `OFFSET` keeps Postgres from reading those of all organizations into a hash. A body is parsed
 * once, because a subquery with a window is not merged.
 */
const partOfChain = (
  { organizationId, shard }: ChainIdentity,
  { sequence: after, hash }: ChainHead,
  to: number,
): SQL => sql`
  SELECT count(*)::int AS records, (count(*) FILTER (WHERE is_broken))::int AS broken,
    (count(moved) FILTER (WHERE sequence <= ${to}))::int AS entries,
    coalesce(sum(moved) FILTER (WHERE sequence <= ${to}), 0)::text AS amount,
    max(hash) FILTER (WHERE sequence = ${to}) AS hash
  FROM (
    SELECT sequence, hash, moved, ${sql.raw(IS_BROKEN)} OR ${sql.raw(HAS_OTHER_CREDIT)} AS is_broken
    FROM (
      SELECT stored.*, nullif(${sql.raw(CREDIT.amount)}, 0) AS moved FROM (
        SELECT each.*, each.body::jsonb AS record, lag(each.hash, 1, ${hash}::text) OVER chain AS hash_before,
          lag(each.sequence, 1, ${after}::bigint) OVER chain AS sequence_before
        FROM ${auditRecords} AS each
        WHERE each.organization_id = ${organizationId}::uuid AND each.shard = ${shard}
          AND each.sequence > ${after} AND each.sequence <= ${to + 1}
        WINDOW chain AS (ORDER BY each.sequence)) AS stored OFFSET 0) AS link
    LEFT JOIN LATERAL (
      SELECT credit.* FROM ${creditEntries} AS credit WHERE credit.organization_id = ${organizationId}::uuid
        AND credit.kind = ${sql.raw(CREDIT.kind)} AND credit.id = ${sql.raw(CREDIT.id)} OFFSET 0) AS entry ON true) AS verified`
