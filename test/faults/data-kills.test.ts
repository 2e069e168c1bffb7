import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../schema/database.ts'
import { advanceErasure } from '../../src/admin/erasure/erase-person.ts'
import { insertErasure, selectErasure } from '../../src/admin/erasure/erasures.store.ts'
import { applyRetention } from '../../src/admin/retention/sweep.ts'
import { retentionSettings } from '../../src/wire/retention.ts'
import {
  changeScopeOf,
  createAged,
  emptyMonths,
  retentionDepsOf,
  verificationFaults,
} from '../harness/aged-organization.ts'
import { monthsAgo, storeRetention } from '../harness/old-records.ts'
import { type PostgresFront, startFront } from '../harness/postgres-front.ts'
import { configuration } from '../unit/calls/fixtures.ts'
import { emptyPostgres } from '../unit/calls/stand-ins.ts'
import { createMemoryLedgers, type MemoryLedgers } from '../unit/management/memory-ledger.ts'

// What deletes is killed at each of its statements: before it reaches Postgres, and before its answer comes back.

let database: Database
let ledgers: MemoryLedgers
let front: PostgresFront

beforeAll(async () => {
  const postgres = await emptyPostgres()
  database = postgres.database
  front = await startFront(postgres.url)
  return () => front.close()
})
afterEach(() => front.mend())

const settings = (values: Record<string, unknown>) => configuration(values)
const scopeOf = (organizationId: string) => changeScopeOf({ database, ledgers }, organizationId)
const faultsOf = (organizationId: string) => verificationFaults({ database, ledgers }, organizationId)
const retentionDeps = (through: Database, values: Record<string, unknown>, clock = Date.now) =>
  retentionDepsOf({ database: through, ledgers }, values, clock)
/** The job of the next hour: organizations whose turns have begun are not due before. */
const anHourLater = () => Date.now() + 3_600_000

const countOf = async (table: string, organizationId: string) => {
  const { rows } = await database.execute<{ n: number }>(
    sql`SELECT count(*)::int AS n FROM ${sql.identifier(table)} WHERE organization_id = ${organizationId}`,
  )
  return rows[0]?.n ?? 0
}
const daysOf = (months: number) => Math.ceil((Date.now() - monthsAgo(months).getTime()) / 86_400_000)

const LOSSES = ['request', 'answer'] as const

describe.each(LOSSES)('the sweep of retention whose %s of a statement is lost', (loses) => {
  it.each([
    { what: 'deletes rows', own: true },
    { what: 'drops months', own: false },
  ])(
    'leaves what can be verified, and is finished by the next one: it $what',
    async ({ own }) => {
      let cuts = 0
      for (let requests = 0; ; requests += 1) {
        ledgers = createMemoryLedgers(database)
        await emptyMonths(database, [5, 4])
        const organizations = [
          await createAged({ database, ledgers }),
          await createAged({ database, ledgers }),
        ]
        const values = own ? {} : { AUDIT_RETENTION_DAYS: daysOf(3), USAGE_RETENTION_DAYS: daysOf(3) }
        if (own) {
          const retention = retentionSettings.parse({ audit_records: daysOf(3), usage_events: daysOf(3) })
          for (const id of organizations)
            await storeRetention(database, settings({}).KEY_PEPPERS, id, retention)
        }
        front.cutAfter(requests, loses)
        await applyRetention(retentionDeps(front.database, values)).catch(() => {})
        front.mend()
        for (const id of organizations) expect(await faultsOf(id), `cut after ${requests}`).toEqual([])
        if (!front.hasCut) break
        cuts += 1
        await applyRetention(retentionDeps(database, values, anHourLater))
        for (const id of organizations) {
          expect(await faultsOf(id), `cut after ${requests}, finished`).toEqual([])
          const { rows } = await database.execute<{ first: number }>(
            sql`SELECT min(sequence)::int AS first FROM audit_records WHERE organization_id = ${id}`,
          )
          expect([rows[0]?.first, await countOf('usage_events', id), await countOf('calls', id)]).toEqual([
            5, 3, 3,
          ])
        }
      }
      expect(cuts).toBeGreaterThan(10)
    },
    600_000,
  )
})

describe.each(LOSSES)('the erasure of a person whose %s of a statement is lost', (loses) => {
  it('is finished by the next attempt, and leaves others alone', async () => {
    let cuts = 0
    for (let requests = 0; ; requests += 1) {
      ledgers = createMemoryLedgers(database)
      const organizationId = randomUUID()
      await database.execute(
        sql`INSERT INTO organizations (id, name, slug) VALUES (${organizationId}, 'Acme', ${organizationId})`,
      )
      const [person, other] = [await personOf(organizationId), await personOf(organizationId)]
      const scope = scopeOf(organizationId)
      const id = `erasure_${randomUUID()}`
      await insertErasure(scope, {
        id,
        userId: person,
        requestedBy: 'admin_token',
        step: 'connections',
        createdAt: new Date(),
      })
      const removed: string[] = []
      let now = Date.now()
      const depsOf = (through: Database) => erasureDeps(through, removed, () => now)
      front.cutAfter(requests, loses)
      await advanceErasure(depsOf(front.database), id).catch(() => {})
      // What was in flight has stored its rows.
      now += 1_200_000
      await advanceErasure(depsOf(front.database), id).catch(() => {})
      front.mend()
      // After the lease of the attempt that died.
      now += 3_600_000
      if (front.hasCut) await advanceErasure(depsOf(database), id)
      const row = await selectErasure(scope, person, id)
      expect(row?.finishedAt, `cut after ${requests}`).not.toBeNull()
      expect(await rowsOf(person), `cut after ${requests}`).toEqual({ users: 1 })
      expect(removed).toContain(`items/${person}`)
      expect(await rowsOf(other)).toEqual({
        users: 1,
        memberships: 1,
        api_keys: 1,
        conversations: 1,
        responses: 1,
        response_items: 1,
        runs: 1,
      })
      if (!front.hasCut) break
      cuts += 1
    }
    expect(cuts).toBeGreaterThan(30)
  }, 600_000)
})

async function personOf(organizationId: string): Promise<string> {
  const userId = randomUUID()
  const agentId = randomUUID()
  for (const statement of [
    sql`INSERT INTO users (id, email, name) VALUES (${userId}, ${`${userId}@example.com`}, 'Person')`,
    sql`INSERT INTO memberships (organization_id, user_id, role, disabled_at) VALUES (${organizationId}, ${userId}, 'member', now())`,
    sql`INSERT INTO api_keys (id, organization_id, user_id, label, digest, pepper_id, scopes)
      VALUES (${userId.slice(0, 12)}, ${organizationId}, ${userId}, 'laptop', ${userId}, 'p', '{}')`,
    sql`INSERT INTO conversations (id, organization_id, user_id, created_at) VALUES (${`conv_${userId}`}, ${organizationId}, ${userId}, now())`,
    sql`INSERT INTO responses (id, organization_id, user_id, key_id, conversation_id, model, status, policy_version, created_at)
      VALUES (${`resp_${userId}`}, ${organizationId}, ${userId}, 'k', ${`conv_${userId}`}, 'm', 'completed', '1', now())`,
    sql`INSERT INTO response_items (id, organization_id, user_id, response_id, type, content_key, created_at)
      VALUES (${`item_${userId}`}, ${organizationId}, ${userId}, ${`resp_${userId}`}, 'message', ${`items/${userId}`}, now())`,
    sql`INSERT INTO agents (id, organization_id, created_by, name, description, metadata, visibility, group_ids, version)
      VALUES (${agentId}, ${organizationId}, ${userId}, ${agentId}, '', '{}', 'creator', '[]', 1)`,
    sql`INSERT INTO runs (id, organization_id, user_id, agent_id, agent_version, conversation_id, origin, sealed_inputs, status, rev, step,
      attempt, created_at, ended_at, deadline_at)
      VALUES (${randomUUID()}, ${organizationId}, ${userId}, ${agentId}, 1, 'c', 'api', '', 'success', 1, 1, 1, now(), now(), now())`,
  ]) {
    await database.execute(statement)
  }
  return userId
}

async function rowsOf(userId: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const table of [
    'users',
    'memberships',
    'api_keys',
    'conversations',
    'responses',
    'response_items',
    'runs',
  ]) {
    const column = sql.identifier(table === 'users' ? 'id' : 'user_id')
    const { rows } = await database.execute<{ n: number }>(
      sql`SELECT count(*)::int AS n FROM ${sql.identifier(table)} WHERE ${column} = ${userId}`,
    )
    if (rows[0]?.n) counts[table] = rows[0].n
  }
  return counts
}

const erasureDeps = (through: Database, removed: string[], clock: () => number) =>
  ({
    database: through,
    clock,
    ledgerOf: ledgers.of,
    configuration: settings({}),
    contentStore: { remove: async (keys: readonly string[]) => void removed.push(...keys) },
    responseObject: () => ({ remove: async () => true }),
    workspaceOf: () => ({ run: async () => ({}) }),
    renewTokens: async () => null,
    runQueue: null,
    waitUntil: () => {},
  }) as never
