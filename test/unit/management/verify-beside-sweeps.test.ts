import { randomUUID } from 'node:crypto'
import { and, eq, sql } from 'drizzle-orm'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Database } from '../../../schema/database.ts'
import { auditRecords, creditEntries } from '../../../schema/governance.ts'
import { verifyChainRange, verifyHeads } from '../../../src/admin/verify-chains.ts'
import { callOutcome, NO_ACTOR } from '../../../src/ledger/audit-record.ts'
import { type PruneDeps, pruneChain } from '../../../src/ledger/retention/prune-chain.ts'
import { deletePrunedRecords } from '../../../src/ledger/retention/prunings.store.ts'
import { changeScopeOf } from '../../harness/aged-organization.ts'
import { monthsAgo, OLD_COST, writeOldCalls } from '../../harness/old-records.ts'
import { startFront } from '../../harness/postgres-front.ts'
import { configuration } from '../calls/fixtures.ts'
import { emptyPostgres } from '../calls/stand-ins.ts'
import { createMemoryLedgers, type MemoryLedgers } from './memory-ledger.ts'

// Retention removes records between the statements of a verification.

let database: Database
let ledgers: MemoryLedgers
/** The same database; `work` runs to its end before each request. */
let observed: Database
let work: (request: number) => Promise<void>
let requests = 0

/** Sets what runs before each request from now on, by its number. */
function observe(next: typeof work): void {
  requests = 0
  work = next
}

beforeAll(async () => {
  const postgres = await emptyPostgres()
  database = postgres.database
  const front = await startFront(postgres.url)
  front.before = () => work(requests++)
  observed = front.database
  return () => front.close()
})

beforeEach(() => {
  ledgers = createMemoryLedgers(database)
  observe(async () => {})
})

const scopeOf = (organizationId: string) => changeScopeOf({ database: observed, ledgers }, organizationId)

/** An organization whose ledger has recorded calls of the last months. An earlier sweep has removed the first one. */
async function agedOrganization(): Promise<string> {
  const organizationId = randomUUID()
  await database.execute(
    sql`INSERT INTO organizations (id, name, slug) VALUES (${organizationId}, 'Aged', ${organizationId})`,
  )
  const ledger = ledgers.of(organizationId)
  // The third call was open for two months: it is in the chain after younger ones.
  const times = [
    monthsAgo(6),
    monthsAgo(4),
    monthsAgo(6, 1),
    ...[3, 2, 1, 0].map((months) => monthsAgo(months)),
  ]
  for (const time of times) {
    const opening = {
      callId: `call_${randomUUID()}`,
      requestId: 'req_1',
      organizationId,
      at: time.getTime(),
      actor: { ...NO_ACTOR, userId: 'user-1', keyId: 'key-1' },
      surface: 'messages' as const,
      action: 'POST /v1/messages',
      modelId: 'test-model',
    }
    await ledger.record(opening, callOutcome(opening, opening.at + 5, { status: 200, cost: 3 }))
  }
  await ledger.flush()
  await sweep(organizationId, monthsAgo(5))
  return organizationId
}

/** Removes the records of a chain before a time, as a sweep does. */
async function sweep(organizationId: string, before: Date): Promise<void> {
  const deps: PruneDeps = {
    database,
    clock: Date.now,
    ledgerOf: ledgers.of,
    configuration: configuration(),
    beforePruning: async () => {},
  }
  const { pruning } = await pruneChain(deps, { organizationId, shard: 0 }, before, () => true)
  await deletePrunedRecords(database, pruning, 1_000)
  await database.execute(
    sql`DELETE FROM calls WHERE organization_id = ${organizationId}::uuid AND at < ${before.toISOString()}::timestamptz`,
  )
}

const verifications: Array<[string, (of: string) => Promise<{ faults: unknown[] }>]> = [
  ['its records', (of) => verifyChainRange(scopeOf(of), { organizationId: of, shard: 0 }, 0, 100)],
  ['a part of its records', (of) => verifyChainRange(scopeOf(of), { organizationId: of, shard: 0 }, 2, 100)],
  ['its heads', (of) => verifyHeads(scopeOf(of), of)],
]

describe('verification beside a sweep of retention', () => {
  it.each(verifications)('finds no fault in %s, wherever it is', async (_, verify) => {
    let hasEnded = false
    for (let place = 0; !hasEnded; place += 1) {
      const organizationId = await agedOrganization()
      hasEnded = true
      observe(async (number) => {
        if (number !== place) return
        hasEnded = false
        await sweep(organizationId, monthsAgo(2))
      })
      expect({ place, ...(await verify(organizationId)) }).toMatchObject({ place, faults: [] })
    }
  })

  it.each(verifications)('finds no fault in %s after two sweeps', async (_, verify) => {
    const organizationId = await agedOrganization()
    observe(async (number) => {
      if (number === 1) await sweep(organizationId, monthsAgo(3))
      if (number === 6) await sweep(organizationId, monthsAgo(2))
    })
    expect(await verify(organizationId)).toMatchObject({ faults: [] })
  })

  it('finds a missing record that a sweep has not removed', async () => {
    const organizationId = await agedOrganization()
    const taken = and(eq(auditRecords.organizationId, organizationId), eq(auditRecords.sequence, 5))
    await database.delete(auditRecords).where(taken)
    const chain = { organizationId, shard: 0 }
    observe(async (request) => {
      if (request === 1) await sweep(organizationId, monthsAgo(3))
    })
    const { faults } = await verifyChainRange(scopeOf(organizationId), chain, 0, 100)
    expect(faults.map(({ sequence, reason }) => `${sequence} ${reason}`)).toEqual(['5 missing'])
  })

  it('reads the credits of an organization once for all of its shards', async () => {
    const organizationId = randomUUID()
    const shards = [0, 1, 2, 3]
    const times = [...Array.from({ length: 50 }, () => monthsAgo(5)), monthsAgo(1)]
    for (const shard of shards) await writeOldCalls(database, organizationId, times, { shard })
    const deps = { database, clock: Date.now, ledgerOf: ledgers.of, configuration: configuration() }
    for (const shard of shards) {
      const chain = { organizationId, shard }
      await pruneChain({ ...deps, beforePruning: async () => {} }, chain, monthsAgo(2), () => true)
    }
    await database.execute(sql`ANALYZE credit_entries`)
    const faults = async () => {
      const { faults: found } = await verifyHeads(scopeOf(organizationId), organizationId)
      return found.flatMap(({ shard, reason }) => (reason === 'pruned_credits_differ' ? [shard] : []))
    }
    const before = await creditsRead()
    expect(await faults()).toEqual([])
    // The table is so small that Postgres may read it whole.
    expect((await creditsRead()) - before).toBeLessThanOrEqual(await database.$count(creditEntries))

    const ofShard = and(eq(creditEntries.organizationId, organizationId), eq(creditEntries.shard, 2))
    await database
      .update(creditEntries)
      .set({ amount: -OLD_COST - 1 })
      .where(ofShard)
    expect(await faults()).toEqual([2])
    await database.delete(creditEntries).where(ofShard)
    expect(await faults()).toEqual([2])
  })
})

/** Rows of credits that statements have read. */
async function creditsRead(): Promise<number> {
  await database.execute(sql`SELECT pg_stat_force_next_flush()`)
  const { rows } = await database.execute<{ read: string }>(
    sql`SELECT seq_tup_read + idx_tup_fetch AS read FROM pg_stat_user_tables WHERE relname = 'credit_entries'`,
  )
  return Number(rows[0]?.read)
}
