import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../schema/database.ts'
import { advanceErasure } from '../../src/admin/erasure/erase-person.ts'
import { findRealPostgres, type RealServer, startRealPostgres, tellSkipped } from '../local/real-servers.ts'
import { configuration, databaseAt, migrateDatabase } from '../unit/calls/fixtures.ts'
import { createMemoryLedgers } from '../unit/management/memory-ledger.ts'
import { type MeasuredPostgres, startMeasuredPostgres } from './statement-costs/measured-postgres.ts'
import { holdRow } from './support/held-row.ts'

const hasRealPostgres = findRealPostgres() !== undefined
if (!hasRealPostgres)
  tellSkipped('contention over a person (embedded Postgres has one session)', 'PostgreSQL')

describe.skipIf(!hasRealPostgres)('erasures that meet at a person', { timeout: 60_000 }, () => {
  let real: RealServer
  let front: MeasuredPostgres
  let database: Database

  beforeAll(async () => {
    real = await startRealPostgres()
    front = await startMeasuredPostgres(real.url, [])
    database = databaseAt(front.endpoint.replace(/\/sql$/, ''))
    await migrateDatabase(database)
    // Each update of users waits for a row, once it has begun and sees what was committed by then.
    for (const statement of [
      `CREATE TABLE barrier AS SELECT 1 AS id`,
      `CREATE FUNCTION wait_at_barrier() RETURNS trigger LANGUAGE plpgsql
        AS 'BEGIN PERFORM 1 FROM barrier FOR SHARE; RETURN NULL; END'`,
      `CREATE TRIGGER wait_at_barrier BEFORE UPDATE ON users FOR EACH STATEMENT EXECUTE FUNCTION wait_at_barrier()`,
    ])
      await database.execute(sql.raw(statement))
  }, 120_000)
  afterAll(async () => {
    await front?.close()
    await real?.stop()
  })

  /** An erasure in an organization of its own, at the step that ends the membership. */
  async function begun(userId: string): Promise<string> {
    const [organizationId, id] = [randomUUID(), `erasure_${randomUUID()}`]
    for (const statement of [
      sql`INSERT INTO organizations (id, name, slug) VALUES (${organizationId}, 'Acme', ${organizationId})`,
      sql`INSERT INTO memberships (organization_id, user_id, role, disabled_at)
        VALUES (${organizationId}, ${userId}, 'member', now())`,
      sql`INSERT INTO erasures (id, organization_id, user_id, requested_by, step, counts, created_at)
        VALUES (${id}, ${organizationId}, ${userId}, 'admin_token', 'person', '{}', now() - interval '1 hour')`,
    ])
      await database.execute(statement)
    return id
  }

  const advance = (id: string) =>
    advanceErasure(
      {
        database,
        clock: Date.now,
        ledgerOf: createMemoryLedgers(database).of,
        configuration: configuration({}),
      } as never,
      id,
    )

  it('leave no name and address where two organizations erase the same person at once', async () => {
    const userId = randomUUID()
    await database.execute(
      sql`INSERT INTO users (id, email, name) VALUES (${userId}, 'ada@example.com', 'Ada Lovelace')`,
    )
    const [one, other] = [await begun(userId), await begun(userId)]
    const barrier = await holdRow(real.url, 'SELECT 1 FROM barrier', [])
    const first = await barrier.queue(advance(one))
    const second = await barrier.queue(advance(other))
    await barrier.release()
    await Promise.all([first.answer, second.answer])
    const ended = await database.execute(sql`SELECT failure, (counts->>'person')::int AS person FROM erasures
      WHERE user_id = ${userId} AND finished_at IS NOT NULL ORDER BY person`)
    expect(ended.rows).toEqual([
      { failure: null, person: 0 },
      { failure: null, person: 1 },
    ])
    const { rows } = await database.execute(sql`SELECT name, email FROM users WHERE id = ${userId}`)
    expect(rows).toEqual([{ name: 'Erased user', email: `erased-${userId}@erased.invalid` }])
  })
})
