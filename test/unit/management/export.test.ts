import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type SQL, sql } from 'drizzle-orm'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../../schema/database.ts'
import { exportPerson } from '../../../src/admin/erasure/export-person.ts'
import { selectCallsOf } from '../../../src/admin/erasure/exported-person.store.ts'
import { NO_ACTOR } from '../../../src/ledger/audit-record.ts'
import type { Owner } from '../../../src/responses/model/types.ts'
import { configuration, databaseAt } from '../calls/fixtures.ts'
import { emptyPostgres } from '../calls/stand-ins.ts'
import { createMemoryLedgers } from './memory-ledger.ts'

const MEGABYTE = 1024 * 1024

let database: Database
let measured: Awaited<ReturnType<typeof startMeasuring>>

beforeAll(async () => {
  const postgres = await emptyPostgres()
  database = postgres.database
  measured = await startMeasuring(postgres.url)
  return () => measured.close()
}, 60_000)

/** A front of Postgres that measures its answers. */
async function startMeasuring(target: string) {
  const measured = { largest: 0, close: () => Promise.resolve(), database: null as unknown as Database }
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const headers = Object.fromEntries(
      Object.entries(request.headers).filter(
        ([name]) => !/^(host|connection|content-length|transfer-encoding)$/.test(name),
      ),
    ) as Record<string, string>
    const answer = await fetch(target + request.url, { method: 'POST', headers, body: Buffer.concat(parts) })
    const body = Buffer.from(await answer.arrayBuffer())
    measured.largest = Math.max(measured.largest, body.byteLength)
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  measured.database = databaseAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  measured.close = () => new Promise((resolve) => server.close(() => resolve()))
  return measured
}

async function member(): Promise<Owner> {
  const [organizationId, userId] = [randomUUID(), randomUUID()]
  for (const statement of [
    sql`INSERT INTO organizations (id, name, slug) VALUES (${organizationId}, 'Acme', ${organizationId})`,
    sql`INSERT INTO users (id, email, name) VALUES (${userId}, ${`${userId}@example.com`}, 'Person')`,
    sql`INSERT INTO memberships (organization_id, user_id, role) VALUES (${organizationId}, ${userId}, 'member')`,
  ])
    await database.execute(statement)
  return { organizationId, userId }
}

/** Items of a megabyte each, their text in the row or in the content store. */
async function storeItems({ organizationId, userId }: Owner, count: number, isLarge: boolean) {
  const responseId = `resp_${randomUUID()}`
  await database.execute(sql`INSERT INTO responses (id, organization_id, user_id, key_id, model, status, body, policy_version, created_at)
    VALUES (${responseId}, ${organizationId}, ${userId}, 'k', 'm', 'completed', repeat('b', ${MEGABYTE}), '1', now())`)
  await database.execute(sql`INSERT INTO response_items (id, organization_id, user_id, response_id, type, body, content_key, created_at)
    SELECT ${responseId}::text || '_' || n, ${organizationId}::uuid, ${userId}::uuid, ${responseId}, 'message',
      CASE WHEN ${isLarge}::boolean THEN NULL ELSE repeat('i', ${MEGABYTE}) END,
      CASE WHEN ${isLarge}::boolean THEN 'items/' || n END, now() FROM generate_series(1, ${count}::int) AS n`)
}

function exported(owner: Owner, get: (key: string) => Promise<Uint8Array>) {
  const { KEY_PEPPERS: pepperRing, VAULT_KEYS: vaultRing } = configuration({})
  const scope = {
    ...{ database: measured.database, organizationId: owner.organizationId, clock: Date.now },
    ...{ ledgerOf: createMemoryLedgers(database).of, pepperRing, vaultRing, egressAllow: [] },
    ...{ requestId: 'req_test', actor: NO_ACTOR, propagationDelayed: () => {} },
  }
  return exportPerson({ contentStore: { get } as never }, scope, owner.userId)
}

describe('the export of a person', () => {
  it('reads a few megabytes at once, whatever the person has', async () => {
    const owner = await member()
    for (let made = 0; made < 10; made += 1) await storeItems(owner, 5, false)
    measured.largest = 0
    const counts: Record<string, number> = {}
    const unread = async () => Promise.reject(new Error('nothing is in the content store'))
    for await (const { type, data } of await exported(owner, unread)) {
      counts[type] = (counts[type] ?? 0) + 1
      if (type === 'item' || type === 'response') expect(String(data.body)).toHaveLength(MEGABYTE)
    }
    expect(counts).toMatchObject({ response: 10, item: 50 })
    expect(measured.largest).toBeGreaterThan(3 * MEGABYTE)
    expect(measured.largest).toBeLessThan(5 * MEGABYTE)
  }, 60_000)

  it('reads one item of the content store at a time, as the caller reads', async () => {
    const owner = await member()
    await storeItems(owner, 12, true)
    const content = new Uint8Array(10 * MEGABYTE).fill(120)
    let reads = 0
    const get = async () => {
      reads += 1
      return content
    }
    let items = 0
    for await (const { type, data } of await exported(owner, get)) {
      if (type !== 'item') continue
      items += 1
      expect([reads, String(data.body).length]).toEqual([items, content.length])
    }
    expect(items).toBe(12)
  }, 60_000)
})

describe('the runs of an export', () => {
  /** Runs of the person, the first ones in progress. */
  async function storeRuns({ organizationId, userId }: Owner, inProgress: number, ended: number) {
    const agentId = randomUUID()
    await database.execute(sql`INSERT INTO agents (id, organization_id, created_by, name, description, metadata, visibility, group_ids, version)
      VALUES (${agentId}, ${organizationId}, ${userId}, 'agent', '', '{}', 'creator', '[]', 1)`)
    const { rows } = await database.execute<{
      id: string
      status: string
    }>(sql`INSERT INTO runs (id, organization_id, user_id, agent_id,
        agent_version, conversation_id, origin, sealed_inputs, status, rev, step, attempt, created_at, ended_at, deadline_at)
      SELECT gen_random_uuid(), ${organizationId}::uuid, ${userId}::uuid, ${agentId}::uuid, 1, 'c', 'api', '',
        CASE WHEN n <= ${inProgress}::int THEN 'in_progress' ELSE 'success' END, 1, 1, 1, now(),
        CASE WHEN n > ${inProgress}::int THEN now() END, now() FROM generate_series(1, ${inProgress + ended}::int) AS n
      RETURNING id::text AS id, status`)
    return rows
  }

  const runsOf = async (parts: AsyncGenerator<{ type: string; data: Record<string, unknown> }>) => {
    const runs: Array<Record<string, unknown>> = []
    for await (const { type, data } of parts) if (type === 'run') runs.push(data)
    return runs
  }
  const nothing = async () => new Uint8Array()

  it('are those that have ended and those in progress, each once', async () => {
    const [owner, other] = [await member(), await member()]
    const stored = await storeRuns(owner, 1_100, 3)
    await storeRuns(other, 2, 1)
    const runs = await runsOf(await exported(owner, nothing))
    const shown = (run: Record<string, unknown>) => `${run.id} ${run.status}`
    expect(runs.map(shown).sort()).toEqual(stored.map(shown).sort())
  }, 60_000)

  it('are each there once when one of them ends while they are read', async () => {
    const owner = await member()
    const [one, other] = await storeRuns(owner, 2, 1)
    const parts = await exported(owner, nothing)
    const end = (id: string | undefined) =>
      database.execute(sql`UPDATE runs SET status = 'success', ended_at = now() WHERE id = ${id}::uuid`)
    const runs: string[] = []
    for await (const { type, data } of parts) {
      if (type === 'user') await end(one?.id)
      if (type !== 'run') continue
      // The runs that have ended were read, and those in progress not yet.
      if (runs.length === 0) await end(other?.id)
      runs.push(String(data.id))
    }
    expect([runs.length, new Set(runs).size]).toEqual([3, 3])
  }, 60_000)
})

interface Plan {
  'Node Type': string
  'Index Name'?: string
  'Actual Rows': number
  Plans?: Plan[]
}

/** The database, whose page of calls is explained instead of read. */
function explaining(plans: Plan[][]): Database {
  const execute = (statement: SQL) => statement
  const batch = async (statements: SQL[]) => {
    const [before, page] = [statements.slice(0, -1), statements.at(-1) ?? sql``]
    const explained = database.execute<{ 'QUERY PLAN': Array<{ Plan: Plan }> }>(
      sql`EXPLAIN (ANALYZE, FORMAT JSON) ${page}`,
    )
    const results = await database.batch([
      ...before.map((each) => database.execute(each)),
      explained,
    ] as never)
    const [{ rows }] = (results as unknown as Array<{ rows: Array<{ 'QUERY PLAN': unknown }> }>).slice(
      -1,
    ) as [{ rows: Array<{ 'QUERY PLAN': unknown }> }]
    const plan = rows[0]?.['QUERY PLAN']
    plans.push(nodesOf((typeof plan === 'string' ? JSON.parse(plan) : plan)[0].Plan))
    return statements.map(() => ({ rows: [] }))
  }
  return { execute, batch } as never
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

describe('the calls of an export', () => {
  it('are read by the index of the person, as many rows as a page has', async () => {
    const [owner, other] = [await member(), randomUUID()]
    // A person with many calls in an organization with more of others; no statistics.
    await database.execute(sql`INSERT INTO calls (organization_id, id, at, request_id, user_id, surface, action, status, outcome,
        duration_milliseconds, input_tokens, output_tokens, cost, count)
      SELECT ${owner.organizationId}::uuid, 'call_' || n, now() - n * interval '1 second', 'req_' || n,
        CASE WHEN n % 4 = 0 THEN ${owner.userId} ELSE ${other} END, 'messages', 'POST /v1/messages', 200, 'ok', 1, 1, 1, 1, 1
      FROM generate_series(1, 60000) AS n`)
    const plans: Plan[][] = []
    const first = await selectCallsOf(database, owner, null, 5_000)
    expect(first.rows).toHaveLength(5_000)
    for (const after of [null, first.next]) await selectCallsOf(explaining(plans), owner, after, 5_000)
    for (const nodes of plans) {
      const scan = nodes.find((node) => node['Index Name'] !== undefined)
      expect(scan).toMatchObject({ 'Index Name': 'calls_user', 'Actual Rows': 5_000 })
      expect(nodes.map((node) => node['Node Type'])).not.toContain('Sort')
    }
    let [read, after] = [0, null as Awaited<ReturnType<typeof selectCallsOf>>['next']]
    const ids = new Set<unknown>()
    do {
      const page = await selectCallsOf(database, owner, after, 5_000)
      read += page.rows.length
      for (const { id } of page.rows) ids.add(id)
      after = page.next
    } while (after !== null)
    expect([read, ids.size]).toEqual([15_000, 15_000])
  }, 60_000)
})
