import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sql } from 'drizzle-orm'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../schema/database.ts'
import { findUnrecorded } from '../../src/admin/audit.ts'
import { advanceErasure } from '../../src/admin/erasure/erase-person.ts'
import { insertErasure, selectErasure } from '../../src/admin/erasure/erasures.store.ts'
import { applyRetention, type RetentionDeps } from '../../src/admin/retention/sweep.ts'
import { verifyChainRange, verifyHeads } from '../../src/admin/verify-chains.ts'
import { callOutcome, NO_ACTOR } from '../../src/ledger/audit-record.ts'
import type { ChangeScope } from '../../src/ledger/changes/audited-change.ts'
import { verifyCheckpoints } from '../../src/ledger/records/checkpoint.ts'
import { monthsAgo } from '../harness/old-records.ts'
import { configuration, databaseAt } from '../unit/calls/fixtures.ts'
import { emptyPostgres } from '../unit/calls/stand-ins.ts'
import { createMemoryLedgers, type MemoryLedgers } from '../unit/management/memory-ledger.ts'

// What deletes is killed at each of its statements: before it reaches Postgres, and before its answer comes back.

/** A front of Postgres that ends with a request. */
interface CuttingFront {
  database: Database
  /** Lets so many requests through. The next one is lost: before Postgres has it, or its answer. */
  cutAfter(requests: number, loses: 'request' | 'answer'): void
  mend(): void
  /** Whether a request was lost since the last call of `cutAfter`. */
  hasCut: boolean
  close(): Promise<void>
}

async function startFront(target: string): Promise<CuttingFront> {
  let left = Number.POSITIVE_INFINITY
  let loses: 'request' | 'answer' = 'request'
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const isCut = left <= 0
    left -= 1
    if (isCut) front.hasCut = true
    // A process that was killed sends nothing any more.
    if (isCut && (loses === 'request' || left < -1)) return response.destroy()
    const headers = Object.fromEntries(
      Object.entries(request.headers).filter(
        ([name]) => !/^(host|connection|content-length|transfer-encoding)$/.test(name),
      ),
    ) as Record<string, string>
    const answer = await fetch(target + request.url, { method: 'POST', headers, body: Buffer.concat(parts) })
    const body = Buffer.from(await answer.arrayBuffer())
    if (isCut) return response.destroy()
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const front: CuttingFront = {
    database: databaseAt(url),
    cutAfter: (requests, lost) => {
      left = requests
      loses = lost
      front.hasCut = false
    },
    mend: () => {
      left = Number.POSITIVE_INFINITY
    },
    hasCut: false,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
  return front
}

let database: Database
let ledgers: MemoryLedgers
let front: CuttingFront

beforeAll(async () => {
  const postgres = await emptyPostgres()
  database = postgres.database
  front = await startFront(postgres.url)
  return () => front.close()
})
afterEach(() => front.mend())

const settings = (values: Record<string, unknown>) => configuration(values)
const scopeOf = (organizationId: string): ChangeScope => ({
  database,
  organizationId,
  ledgerOf: ledgers.of,
  clock: Date.now,
  pepperRing: settings({}).KEY_PEPPERS,
  vaultRing: settings({}).VAULT_KEYS,
  egressAllow: [],
  requestId: 'req_test',
  actor: NO_ACTOR,
  propagationDelayed: () => {},
})

const retentionDeps = (through: Database, values: Record<string, unknown>): RetentionDeps => ({
  database: through,
  clock: Date.now,
  ledgerOf: ledgers.of,
  workspaceOf: () => ({ run: async () => ({}), download: async () => null }) as never,
  waitUntil: () => {},
  configuration: settings(values),
})

/** Everything of an organization that `audit verify` finds wrong. */
async function faultsOf(organizationId: string): Promise<unknown[]> {
  const scope = scopeOf(organizationId)
  await ledgers.of(organizationId).flush()
  const range = await verifyChainRange(scope, { organizationId, shard: 0 }, 0, 1_000)
  const heads = await verifyHeads(scope, organizationId)
  const usage = await findUnrecorded(scope, organizationId, { table: 'usage_events', after: null }, 1_000)
  const credits = await findUnrecorded(scope, organizationId, { table: 'credit_entries', after: null }, 1_000)
  const deps = { database, clock: Date.now, configuration: settings({}) }
  const checkpoints = await verifyCheckpoints(deps, { organizationId, after: null, limit: 1_000 })
  return [...range.faults, ...heads.faults, ...usage.rows, ...credits.rows, ...checkpoints.faults]
}

/** An organization with calls of the last five months, some of which were open over the end of one. */
async function agedOrganization(): Promise<string> {
  const organizationId = randomUUID()
  await database.execute(
    sql`INSERT INTO organizations (id, name, slug) VALUES (${organizationId}, 'Aged', ${organizationId})`,
  )
  const times = [
    monthsAgo(5),
    monthsAgo(4),
    monthsAgo(5, 1),
    monthsAgo(4, 1),
    monthsAgo(3),
    monthsAgo(1),
    new Date(),
  ]
  for (const [index, date] of times.entries()) {
    const at = date.getTime()
    const opening = {
      callId: `call_${organizationId}_${index}`,
      requestId: `req_${index}`,
      organizationId,
      at,
      actor: { ...NO_ACTOR, userId: 'user-1' },
      surface: 'messages',
      action: 'POST /v1/messages',
      modelId: 'test-model',
    }
    await ledgers.of(organizationId).record(opening, callOutcome(opening, at + 5, { status: 200, cost: 3 }))
  }
  await ledgers.of(organizationId).flush()
  return organizationId
}

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
        await database.execute(sql`TRUNCATE organizations CASCADE`)
        await database.execute(
          sql`TRUNCATE audit_records, calls, usage_events, credit_entries, prunings, audit_checkpoints`,
        )
        for (const months of [5, 4]) {
          const month = `${monthsAgo(months).toISOString().slice(0, 7)}-01`
          await database.execute(sql`SELECT add_month_partition(parent, ${month}::timestamp)
          FROM unnest(ARRAY['audit_records', 'usage_events']) AS parent`)
        }
        const organizations = [await agedOrganization(), await agedOrganization()]
        const values = own ? {} : { AUDIT_RETENTION_DAYS: daysOf(3), USAGE_RETENTION_DAYS: daysOf(3) }
        if (own) {
          const retention = JSON.stringify({ audit_records: daysOf(3), usage_events: daysOf(3) })
          await database.execute(sql`UPDATE organizations SET retention = ${retention}::jsonb`)
        }
        front.cutAfter(requests, loses)
        await applyRetention(retentionDeps(front.database, values)).catch(() => {})
        front.mend()
        for (const id of organizations) expect(await faultsOf(id), `cut after ${requests}`).toEqual([])
        if (!front.hasCut) break
        cuts += 1
        await applyRetention(retentionDeps(database, values))
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
    expect(cuts).toBeGreaterThan(15)
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
