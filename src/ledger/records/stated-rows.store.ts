import { inArray, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { auditCheckpoints, rejectedCalls } from '../../../schema/governance.ts'
import { writeRejectedCounts } from '../rejected-calls/rejected-calls.store.ts'
import type { ChainLink } from './chain.ts'
import { parseBody } from './record-body.ts'
import {
  CHECKPOINT_STORED,
  checkpointRow,
  REJECTED_CALLS_COUNTED,
  rejectedRow,
  type StatedRow,
  statedCheckpointOf,
  statedCountsOf,
} from './stated-rows.ts'

const STATING = [CHECKPOINT_STORED, REJECTED_CALLS_COUNTED]

/** Texts that Postgres refuses in JSON, as JSON.stringify writes them: NUL and unpaired surrogates. */
const UNSTORABLE = /\\u(?:0000|d[89a-f])/
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** The rows of Postgres under the names of stated ones. @param stated names that no row can have are left out. */
export async function readStatedRows(database: Database, stated: readonly StatedRow[]): Promise<StatedRow[]> {
  const named = (table: StatedRow['table']) =>
    stated.filter((row) => row.table === table).map(({ name }) => name)
  const ids = named('audit_checkpoints').filter((id) => UUID.test(id))
  const keys = named('rejected_calls').filter((name) => !UNSTORABLE.test(name))
  const checkpoints = ids.length === 0 ? [] : await readCheckpoints(database, ids)
  const counts = keys.length === 0 ? [] : await readCounts(database, keys)
  return [...checkpoints, ...counts]
}

/**
 * Writes the rows again that records of the deployment's chain state and that Postgres has lost. Existing rows are not changed,
 * except that a count never falls.
 */
export async function restoreStatedRows(database: Database, links: readonly ChainLink[]): Promise<void> {
  const stating = links.filter(({ body }) => STATING.some((action) => body.includes(action)))
  const bodies = stating.flatMap(({ body }) => parseBody(body) ?? [])
  const checkpoints = bodies.flatMap((body) => statedCheckpointOf(body) ?? [])
  if (checkpoints.length > 0) {
    await database.insert(auditCheckpoints).values(checkpoints).onConflictDoNothing()
  }
  const counts = bodies.flatMap(statedCountsOf)
  if (counts.length > 0) await writeRejectedCounts(database, counts)
}

async function readCheckpoints(database: Database, ids: string[]): Promise<StatedRow[]> {
  const { id, mac } = auditCheckpoints
  const rows = await database.select({ id, mac }).from(auditCheckpoints).where(inArray(id, ids))
  return rows.map((row) => checkpointRow(row.id, row.mac))
}

/** @param keys each a JSON array of address, minute and surface. */
async function readCounts(database: Database, keys: string[]): Promise<StatedRow[]> {
  const wanted = sql`jsonb_array_elements(${`[${keys.join(',')}]`}::jsonb) AS key`
  const { ip, minute, surface, count } = rejectedCalls
  const rows = await database
    .select({ key: sql<string>`key::text`, count })
    .from(rejectedCalls)
    .innerJoin(
      sql`${wanted}`,
      sql`${ip} = key->>0 AND ${minute} = (key->>1)::timestamptz AND ${surface} = key->>2`,
    )
  return rows.map((row) => {
    const [address, at, on] = JSON.parse(row.key) as [string, string, string]
    return rejectedRow([address, at, on, row.count])
  })
}
