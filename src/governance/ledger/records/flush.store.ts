import { getTableColumns, getTableName, type SQL, sql } from 'drizzle-orm'
import type { PgTable } from 'drizzle-orm/pg-core'
import type { Database } from '../../../../schema/database.ts'
import { auditRecords, creditEntries, usageEvents } from '../../../../schema/governance.ts'
import { type EpochColumns, epochColumns, epochsOf } from '../epochs/epochs.store.ts'
import type { LearnedEpochs } from '../epochs/known-epochs.ts'
import type { ChainIdentity, ChainLink } from './chain.ts'

/** SQL of one line of `link`, for each column of a table. */
type ColumnTexts<Table extends PgTable> = Record<keyof Table['$inferInsert'], string>

// `record` is the parsed body of a link. What stands beside a body is copied out of it here, and compared with it by
// `verifyLinks`, by way of `copiedColumns`: the two have to agree.
const IS_CALL = `record->>'kind' = 'call'`
const AT = `timestamptz 'epoch' + (record->>'at')::bigint * interval '1 millisecond'`
const COST = `(record->>'cost')::bigint`
const tokens = (name: string) => `coalesce((record->'usage'->>'${name}')::bigint, 0)`

const RECORD: ColumnTexts<typeof auditRecords> = {
  organizationId: `(record->>'organizationId')::uuid`,
  shard: `(record->>'shard')::integer`,
  sequence: 'sequence',
  id: `record->>'id'`,
  kind: `record->>'kind'`,
  at: AT,
  requestId: `record->>'requestId'`,
  userId: `record->'actor'->>'userId'`,
  keyId: `record->'actor'->>'keyId'`,
  surface: `CASE WHEN ${IS_CALL} THEN record->>'surface' ELSE 'management' END`,
  action: `record->>'action'`,
  modelId: `CASE WHEN ${IS_CALL} THEN record->>'modelId' END`,
  status: `CASE WHEN ${IS_CALL} THEN (record->>'status')::integer ELSE 200 END`,
  creditsSettled: `CASE WHEN ${IS_CALL} THEN ${COST} ELSE 0 END`,
  body: 'body',
  previousHash: 'previous_hash',
  hash: 'hash',
}

/** Of model calls, save those that used nothing. */
const USAGE: ColumnTexts<typeof usageEvents> = {
  callId: `record->>'id'`,
  organizationId: `(record->>'organizationId')::uuid`,
  userId: `record->'actor'->>'userId'`,
  keyId: `record->'actor'->>'keyId'`,
  modelId: `record->>'modelId'`,
  provider: `record->>'provider'`,
  surface: `record->>'surface'`,
  at: AT,
  inputTokens: tokens('input'),
  cacheReadTokens: tokens('cacheRead'),
  cacheWrite5MinuteTokens: tokens('cacheWrite5Minutes'),
  cacheWrite1HourTokens: tokens('cacheWrite1Hour'),
  outputTokens: tokens('output'),
  reasoningTokens: tokens('reasoning'),
  provenance: `coalesce(record->>'provenance', 'unknown')`,
  cost: COST,
}
const HAS_USAGE = `${IS_CALL} AND record->>'modelId' IS NOT NULL AND (record->>'usage' IS NOT NULL OR ${COST} <> 0)`

/** The movement of the balance that a record stands for. */
const SETTLEMENT: ColumnTexts<typeof creditEntries> = {
  id: `record->>'id'`,
  organizationId: `(record->>'organizationId')::uuid`,
  kind: `'settlement'`,
  shard: `(record->>'shard')::integer`,
  amount: `-${COST}`,
  reason: `coalesce(record->>'modelId', record->>'action')`,
  at: AT,
}
const GRANT_OR_TRANSFER: ColumnTexts<typeof creditEntries> = {
  ...SETTLEMENT,
  id: `record->'credit'->>'id'`,
  kind: `coalesce(record->'credit'->>'kind', 'grant')`,
  amount: `(record->'credit'->>'amount')::bigint`,
  reason: `record->'credit'->>'reason'`,
}

/** Inserts a row for each link that a condition holds for. Rows that are there already are left as they are. */
function insertText<Table extends PgTable>(table: Table, texts: ColumnTexts<Table>, condition: string) {
  const columns = Object.entries(getTableColumns(table))
  const names = columns.map(([, { name }]) => `"${name}"`).join(', ')
  const values = columns.map(([member]) => texts[member as keyof typeof texts]).join(', ')
  return `INSERT INTO "${getTableName(table)}" (${names}) SELECT ${values} FROM link WHERE ${condition} ON CONFLICT DO NOTHING`
}

/** All that a batch of links becomes, which never changes. */
const INSERTS: SQL = sql.raw(`
  stored AS (${insertText(auditRecords, RECORD, 'true')} RETURNING 1),
  used AS (${insertText(usageEvents, USAGE, HAS_USAGE)}),
  settled AS (${insertText(creditEntries, SETTLEMENT, `${IS_CALL} AND ${COST} <> 0`)}),
  moved AS (${insertText(creditEntries, GRANT_OR_TRANSFER, `record->'credit'->>'id' IS NOT NULL`)})`)

/**
 * Writes records, with the usage and the credit movements they tell of, in one statement. Rows that are there already
 * are left as they are, so repeating it does no harm. Postgres reads the bodies: to take them apart here and send their
 * parts beside them took about a tenth of a whole call's CPU.
 * @param links consecutive ones of one chain, at least one. No body has a line break in it.
 * @returns the epochs, read in the same round trip.
 * @throws if afterwards Postgres does not hold exactly these records, for instance because another chain has grown
 * under the same name; nothing may be deleted then.
 */
export async function writeLinks(
  database: Database,
  { organizationId, shard }: ChainIdentity,
  links: readonly ChainLink[],
): Promise<LearnedEpochs> {
  // What a statement inserts it does not see: a record is held when it was inserted now or was there before.
  const { rows } = await database.execute<{ held: number } & EpochColumns>(sql`
    WITH link AS MATERIALIZED (
      SELECT ${links[0]?.sequence ?? 0}::bigint + place - 1 AS sequence, body, hash,
        lag(hash, 1, ${links[0]?.previousHash ?? ''}::text) OVER (ORDER BY place) AS previous_hash, body::jsonb AS record
      FROM unnest(${linesOf(links, 'body')}, ${linesOf(links, 'hash')}) WITH ORDINALITY AS line(body, hash, place)
    ), ${INSERTS}
    SELECT (
        (SELECT count(*) FROM stored) + (SELECT count(*) FROM link JOIN ${auditRecords} AS record
          ON record.organization_id = ${organizationId}::uuid AND record.shard = ${shard}
          AND record.sequence = link.sequence AND record.hash = link.hash)
      )::int AS held, ${epochColumns(organizationId)}`)
  const [row] = rows
  const held =
    row?.held === links.length ||
    (await countHeld(database, { organizationId, shard }, links)) === links.length
  if (!row || !held)
    throw new Error(`the chain of ${organizationId}:${shard} differs from what Postgres holds`)
  return epochsOf(row)
}

/** A text array of all of them: to send one text costs less than to send many. */
const linesOf = (links: readonly ChainLink[], member: 'body' | 'hash') =>
  sql`string_to_array(${links.map((link) => link[member]).join('\n')}, ${'\n'})`

/** How many of the links Postgres holds: also those of a write that was given up and ended while the next one waited for it. */
async function countHeld(
  database: Database,
  { organizationId, shard }: ChainIdentity,
  links: readonly ChainLink[],
): Promise<number> {
  const [first, last] = [links[0]?.sequence ?? 0, links.at(-1)?.sequence ?? 0]
  const { rows } = await database.execute<{ held: number }>(sql`
    SELECT count(*)::int AS held FROM ${auditRecords} AS record
    WHERE record.organization_id = ${organizationId}::uuid AND record.shard = ${shard}
      AND record.sequence BETWEEN ${first} AND ${last} AND record.hash = ANY(${linesOf(links, 'hash')})`)
  return rows[0]?.held ?? 0
}
