import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Database } from '../../schema/database.ts'
import { applyRetention } from '../../src/admin/retention/sweep.ts'
import { retentionSettings } from '../../src/wire/retention.ts'
import { createAged, emptyMonths, retentionDepsOf } from '../harness/aged-organization.ts'
import { storeRetention } from '../harness/old-records.ts'
import { type PostgresFront, startFront } from '../harness/postgres-front.ts'
import { configuration } from '../unit/calls/fixtures.ts'
import { emptyPostgres } from '../unit/calls/stand-ins.ts'
import { createMemoryLedgers, type MemoryLedgers } from '../unit/management/memory-ledger.ts'

// The sweep of retention over responses and conversations, while a run of it is killed, or the script of tools does not answer.

const DAYS = 20
const HOUR_MS = 3_600_000

let database: Database
let ledgers: MemoryLedgers
let front: PostgresFront
let organizationId: string

beforeAll(async () => {
  const postgres = await emptyPostgres()
  database = postgres.database
  front = await startFront(postgres.url)
  return () => front.close()
})
beforeEach(async () => {
  ledgers = createMemoryLedgers(database)
  await emptyMonths(database, [])
  await database.execute(sql`TRUNCATE conversations CASCADE`)
  organizationId = await createAged({ database, ledgers }, [])
  const settings = retentionSettings.parse({ responses: DAYS })
  await storeRetention(database, configuration().KEY_PEPPERS, organizationId, settings)
})
afterEach(() => {
  front.mend()
  vi.restoreAllMocks()
})

/** @param hours from now. @param workspaceOf removes workspaces. */
function sweep(hours: number, workspaceOf?: object) {
  const deps = retentionDepsOf({ database: front.database, ledgers }, {}, () => Date.now() + hours * HOUR_MS)
  return applyRetention({ ...deps, ...workspaceOf })
}

/** The run dies at a statement of this text. */
function killAt(text: RegExp): void {
  let isDead = false
  front.before = (sent) => {
    isDead ||= text.test(sent)
    if (isDead) throw new Error('killed')
  }
  vi.spyOn(console, 'error').mockImplementation(() => {})
}

/** Conversations of one minute after another, the first one the oldest. */
async function addConversations(
  name: string,
  count: number,
  { days = DAYS + 10, of = organizationId, writer = null as string | null, hasResponses = false } = {},
): Promise<void> {
  const user = randomUUID()
  await database.execute(sql`INSERT INTO conversations (id, organization_id, user_id, writer, created_at)
    SELECT ${name} || '_' || n, ${of}::uuid, ${user}::uuid, ${writer}, now() - ${days} * interval '1 day' + n * interval '1 second'
    FROM generate_series(1, ${count}::int) AS n`)
  if (!hasResponses) return
  await database.execute(sql`INSERT INTO responses
      (id, organization_id, user_id, key_id, conversation_id, model, status, policy_version, created_at)
    SELECT 'resp_' || ${name} || '_' || n, ${of}::uuid, ${user}::uuid, 'key', ${name} || '_' || n, 'm', 'completed', 'v', now()
    FROM generate_series(1, ${count}::int) AS n`)
}

const makeResponsesOld = () =>
  database.execute(sql`UPDATE responses SET created_at = now() - ${DAYS + 1} * interval '1 day'`)

/** Names of conversations that are left, with how many there are of each. */
async function left(): Promise<Record<string, number>> {
  const { rows } = await database.execute<{ name: string; n: number }>(
    sql`SELECT split_part(id, '_', 1) AS name, count(*)::int AS n FROM conversations GROUP BY 1`,
  )
  return Object.fromEntries(rows.map(({ name, n }) => [name, n]))
}

/** How many statements that match are sent from now on. */
function countStatements(text: RegExp): () => number {
  let sent = 0
  front.before = (statement) => {
    if (text.test(statement)) sent += 1
  }
  return () => sent
}
const SEARCH = /WITH page AS MATERIALIZED/

describe('conversations of which nothing is left', () => {
  it('go, when they are old, and have no writer, no response and no item', async () => {
    const other = await createAged({ database, ledgers }, [])
    await addConversations('empty', 3)
    await addConversations('young', 1, { days: DAYS - 1 })
    await addConversations('written', 1, { writer: 'resp_x' })
    await addConversations('used', 1, { hasResponses: true })
    await addConversations('other', 1, { of: other })
    await addConversations('kept', 1)
    // An item that another conversation's response has brought in.
    await database.execute(sql`INSERT INTO response_items (id, organization_id, user_id, response_id, type, created_at)
      SELECT 'item', organization_id, user_id, id, 'message', now() FROM responses`)
    await database.execute(sql`INSERT INTO conversation_items VALUES ('kept_1', 0, 'item', 'resp_gone')`)
    await sweep(0)
    expect(await left()).toEqual({ young: 1, written: 1, used: 1, other: 1, kept: 1 })
  })

  it.each([
    ['their deletion', /DELETE FROM \\"conversations\\"/],
    ['that of their responses', /DELETE FROM \\"responses\\"/],
  ])('go by the next run, where one is killed before %s', async (_, text) => {
    await addConversations('old', 5, { hasResponses: true })
    await makeResponsesOld()
    killAt(text)
    await expect(sweep(0)).rejects.toThrow()
    expect(await left()).toEqual({ old: 5 })
    front.mend()
    await sweep(1)
    expect(await left()).toEqual({})
  })

  it('are searched page by page, where the run before ended, and the others once a day', async () => {
    await addConversations('used', 2_500, { hasResponses: true })
    await addConversations('empty', 1, { days: DAYS + 1 })
    let searches = 0
    const others = countStatements(SEARCH)
    const count = front.before
    front.before = (text) => {
      count(text)
      if (others() > 2) throw new Error('killed')
    }
    vi.spyOn(console, 'error').mockImplementation(() => {})
    await expect(sweep(0)).rejects.toThrow()
    expect(await left()).toEqual({ used: 2_500, empty: 1 })
    for (const [hours, pages] of [
      [1, 1],
      [2, 0],
      [23, 0],
      [26, 3],
      [27, 0],
    ] as const) {
      const sent = countStatements(SEARCH)
      await sweep(hours)
      searches += sent()
      expect(sent(), `after ${hours} hours`).toBe(pages)
      expect(await left()).toEqual({ used: 2_500 })
    }
    expect(searches).toBe(4)
  })

  it('are searched anew, where the place of the search is no place', async () => {
    await addConversations('empty', 1)
    await database.execute(sql`UPDATE organizations SET conversation_search = '{"after": 7}'`)
    await sweep(0)
    expect(await left()).toEqual({})
  })
})

/** Workspaces of which so many are removed at once. */
function workspaces(answer: () => Promise<unknown>) {
  const counts = { now: 0, most: 0, removed: 0 }
  const run = async () => {
    counts.now += 1
    counts.most = Math.max(counts.most, counts.now)
    await answer()
    counts.now -= 1
    counts.removed += 1
    return {}
  }
  return { counts, workspaceOf: () => ({ run, download: async () => null }) as never }
}

describe('files of conversations that go', () => {
  it.each([
    ['of deleted responses', true],
    ['that were empty', false],
  ])('are removed some at a time, of conversations %s', async (_, hasResponses) => {
    await addConversations('old', 150, { hasResponses })
    await makeResponsesOld()
    const { counts, workspaceOf } = workspaces(() => new Promise((done) => setTimeout(done, 20)))
    await sweep(0, { workspaceOf })
    expect(await left()).toEqual({})
    expect(counts.removed).toBe(150)
    expect(counts.most).toBeGreaterThan(5)
    expect(counts.most).toBeLessThanOrEqual(20)
  })

  it('keep the run for seconds, where the script of tools does not answer', async () => {
    await addConversations('old', 60)
    const { workspaceOf } = workspaces(() => new Promise(() => {}))
    const begun = Date.now()
    await sweep(0, { workspaceOf })
    expect(await left()).toEqual({})
    expect(Date.now() - begun).toBeLessThan(15_000)
  })
})
