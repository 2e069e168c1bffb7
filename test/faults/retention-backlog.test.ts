import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../schema/database.ts'
import {
  deleteOldCalls,
  deleteOldConnectSessions,
  deleteOldRejectedCalls,
  deleteOldUsage,
} from '../../src/admin/retention/old-rows.store.ts'
import { deleteEndedRuns } from '../../src/agents/runs/sweep.store.ts'
import { selectOldResponses } from '../../src/responses/store/delete-responses.store.ts'
import { findRealPostgres, type RealServer, startRealPostgres, tellSkipped } from '../local/real-servers.ts'
import { databaseAt, migrateDatabase } from '../unit/calls/fixtures.ts'
import { type MeasuredPostgres, startMeasuredPostgres } from './statement-costs/measured-postgres.ts'

const hasRealPostgres = findRealPostgres() !== undefined
if (!hasRealPostgres) tellSkipped('plans of the removal of old rows', 'PostgreSQL')

const NOW = new Date()
const MOST = 100
const SMALL = 2_000
const LARGE = 40_000
const OLD = sql`now() - interval '200 days' + n * interval '1 second'`

/** What a batch of each removal is, and how a row of its backlog is made, whose number is `n`. */
const REMOVALS = {
  calls: {
    columns: sql`organization_id, id, at, request_id, surface, action, status, outcome, duration_milliseconds, input_tokens,
      output_tokens, cost, count`,
    row: (id: string) =>
      sql`${id}::uuid, 'call_' || n, ${OLD}, 'r', 'management', 'a', 200, 'ok', 1, 0, 0, 0, 1`,
    remove: (database: Database, id: string) => deleteOldCalls(database, id, NOW, MOST),
  },
  usage_events: {
    columns: sql`organization_id, call_id, at, model_id, surface, provenance, cost, input_tokens, cache_read_tokens,
      cache_write_5_minute_tokens, cache_write_1_hour_tokens, output_tokens, reasoning_tokens`,
    row: (id: string) =>
      sql`${id}::uuid, ${id} || n, ${OLD}, 'm', 'chat.completions', 'provider', 0, 0, 0, 0, 0, 0, 0`,
    remove: (database: Database, id: string) => deleteOldUsage(database, id, NOW, MOST),
  },
  connect_sessions: {
    columns: sql`organization_id, id, connection_id, user_id, status, expires_at, created_at`,
    row: (id: string) => sql`${id}::uuid, ${id} || n, 'c', ${id}::uuid, 'pending', now(), ${OLD}`,
    remove: (database: Database, id: string) => deleteOldConnectSessions(database, id, NOW, MOST),
  },
  runs: {
    columns: sql`organization_id, id, user_id, agent_id, agent_version, conversation_id, origin, sealed_inputs, status, rev, step,
      attempt, created_at, ended_at, deadline_at`,
    row: (
      id: string,
    ) => sql`${id}::uuid, gen_random_uuid(), ${id}::uuid, ${id}::uuid, 1, 'c', 'api', '', 'success', 1, 1, 1,
      ${OLD}, ${OLD}, now()`,
    remove: (database: Database, id: string) => deleteEndedRuns(database, id, NOW.getTime(), MOST),
  },
  responses: {
    columns: sql`organization_id, id, user_id, key_id, model, status, policy_version, created_at`,
    row: (id: string) => sql`${id}::uuid, ${id} || n, ${id}::uuid, 'key', 'm', 'completed', 'v', ${OLD}`,
    remove: (database: Database, id: string) => selectOldResponses(database, id, NOW.getTime(), MOST),
  },
}

// Before autovacuum comes by, Postgres has no statistics: it takes an organization for a two-hundredth of the table.
describe.skipIf(!hasRealPostgres)('a batch of old rows', { timeout: 120_000 }, () => {
  let real: RealServer
  let front: MeasuredPostgres
  let database: Database

  beforeAll(async () => {
    real = await startRealPostgres()
    front = await startMeasuredPostgres(real.url)
    database = databaseAt(front.endpoint.replace(/\/sql$/, ''))
    await migrateDatabase(database)
    await database.execute(sql`ALTER SYSTEM SET autovacuum = off`)
    await database.execute(sql`SELECT pg_reload_conf()`)
  }, 120_000)
  afterAll(async () => {
    await front?.close()
    await real?.stop()
  })

  it.each(Object.entries(REMOVALS))('of %s costs the same, however many wait', async (table, removal) => {
    const costs: number[] = []
    for (const rows of [SMALL, LARGE]) {
      const id = randomUUID()
      // Without the rows that these refer to.
      await database.batch([
        database.execute(sql`SET LOCAL session_replication_role = replica`),
        database.execute(sql`INSERT INTO ${sql.identifier(table)} (${removal.columns})
          SELECT ${removal.row(id)} FROM generate_series(1, ${rows}::int) AS n`),
      ])
      front.take()
      await removal.remove(database, id)
      costs.push(front.take().reduce((sum, { blocks }) => sum + blocks, 0))
    }
    expect(costs[1]).toBeLessThan((costs[0] ?? 0) * 1.5 + 50)
  })

  it('of counts of rejected calls costs the same, however many wait', async () => {
    const costs: number[] = []
    for (const rows of [SMALL, LARGE]) {
      await database.execute(sql`TRUNCATE rejected_calls`)
      await database.execute(sql`INSERT INTO rejected_calls (minute, ip, surface, count)
        SELECT ${OLD}, 'a' || n, 'models', 1 FROM generate_series(1, ${rows}::int) AS n`)
      front.take()
      await deleteOldRejectedCalls(database, NOW, MOST)
      costs.push(front.take().reduce((sum, { blocks }) => sum + blocks, 0))
    }
    expect(costs[1]).toBeLessThan((costs[0] ?? 0) * 1.5 + 50)
  })
})
