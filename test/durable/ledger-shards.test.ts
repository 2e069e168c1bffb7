import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, it, vi } from 'vitest'
import type { CreditBalance } from '../../src/ledger/contract.ts'
import { readChain } from '../../src/ledger/records/chain.store.ts'
import { SeededRandom } from '../unit/lib/seeded-random.ts'
import { passTime, useDatabaseGate } from './database-gate.ts'
import { database, LEASE_MS, outcome } from './ledger-harness.ts'
import {
  BEGINNING,
  expectWhole,
  fundedOrganization,
  kindsOf,
  type Limits,
  SHARDS,
  type Sharded,
  shardedOrganization,
  sumOf,
} from './ledger-shards-harness.ts'

const gate = useDatabaseGate(BEGINNING)

describe('credits of several shards', () => {
  it('are drawn from the home shard when they are needed, and summed up', async () => {
    const organization = await fundedOrganization(1_000)
    for (let shard = 0; shard < SHARDS; shard += 1) {
      expect(await organization.open(shard, 100)).toEqual({ kind: 'admitted' })
    }
    expect(await organization.ledger.balance()).toEqual({ balance: 1_000, reserved: 400, available: 600 })
    expect(await organization.ledgerOf(2).balance()).toEqual({
      balance: 1_000,
      reserved: 400,
      available: 600,
    })
    const held = await organization.held()
    expect(sumOf(held)).toBe(1_000)
    expect(Math.min(...held)).toBeGreaterThanOrEqual(100)
  })

  it('never admit more than there is at any concurrency, and all that there is in the end', async () => {
    const organization = await fundedOrganization(50 * 7 + 6)
    const calls = Array.from({ length: 200 }, (_, index) => organization.open(index % SHARDS, 7))
    let admitted = kindsOf(await Promise.all(calls), 'admitted')
    expect(admitted).toBeLessThanOrEqual(50)
    expect(admitted).toBeGreaterThan(0)
    for (let shard = 0; shard < SHARDS; shard += 1) {
      while ((await organization.open(shard, 7)).kind === 'admitted') admitted += 1
    }
    expect(admitted).toBe(50)
    expect(await organization.ledger.balance()).toEqual({ balance: 356, reserved: 350, available: 6 })
  })

  it('are called in from shards that do not need them', async () => {
    const organization = await fundedOrganization(100)
    const call = organization.opening()
    await organization.open(1, 90, call)
    await organization.ledgerOf(1).close(call.callId, outcome({ cost: 10 }))
    // What is left lies in shard 1, for the most part.
    expect(await organization.open(2, 85)).toEqual({ kind: 'admitted' })
    expect(await organization.open(0, 6)).toMatchObject({ kind: 'no_credits', required: 6 })
    expect(await organization.open(0, 5)).toEqual({ kind: 'admitted' })
    expect(await organization.ledger.balance()).toEqual({ balance: 90, reserved: 90, available: 0 })
  })

  it('go back when they are not needed', async () => {
    const organization = await fundedOrganization(1_000)
    const call = organization.opening()
    await organization.open(3, 100, call)
    await organization.ledgerOf(3).close(call.callId, outcome({ cost: 40 }))
    await organization.comeToRest()
    expect(await organization.held()).toEqual([960, 0, 0, 0])
    expect(await organization.ledger.flush()).toEqual({ pending: 0 })
    await expectWhole(organization, 960)
  })

  it('are recorded on both sides, and shown as what they are', async () => {
    const organization = await fundedOrganization(1_000)
    await organization.open(2, 100)
    await organization.ledger.flush()
    const { organizationId } = organization
    const [sent] = (await readChain(database, { organizationId, shard: 0 }, 1, 1)).map(({ body }) =>
      JSON.parse(body),
    )
    const [received] = (await readChain(database, { organizationId, shard: 2 }, 0, 1)).map(({ body }) =>
      JSON.parse(body),
    )
    const { amount } = received.credit
    expect(sent).toMatchObject({
      action: 'credits.moved',
      actor: { administrator: 'ledger' },
      detail: { shard: 2, direction: 'sent', amount },
      credit: { kind: 'transfer', id: '2:1:sent', amount: -amount },
    })
    expect(received.credit).toMatchObject({ kind: 'transfer', id: '2:1:received', amount })
  })
})

describe('a shard that loses its storage', () => {
  it.each([0, 1])('begins again from Postgres with what is its own (shard %i)', async (lost) => {
    const organization = await fundedOrganization(1_000)
    const call = organization.opening()
    await organization.open(1, 300, call)
    await organization.ledgerOf(1).close(call.callId, outcome({ cost: 50 }))
    await organization.ledger.flush()
    const before = await organization.held()
    await runInDurableObject(organization.stub(lost), (_, state) => state.storage.deleteAll())
    await abortAllDurableObjects()
    expect(await organization.ledger.balance()).toEqual({ balance: 950, reserved: 0, available: 950 })
    expect(await organization.open(1, 600)).toEqual({ kind: 'admitted' })
    const held = await organization.held()
    expect(sumOf(held)).toBe(sumOf(before))
    expect(await organization.ledger.flush()).toEqual({ pending: 0 })
    await expectWhole(organization, 950)
  })
})

describe('epochs of several shards', () => {
  it('are known to all of them when the home shard has been told', async () => {
    const organization = shardedOrganization()
    const at = (epoch: number) => ({
      epochs: { organization: epoch, catalogue: null },
      learned: null,
      limits: null,
    })
    await organization.ledger.learnEpoch(5)
    for (let shard = 0; shard < SHARDS; shard += 1) {
      expect(await organization.ledgerOf(shard).check(at(5))).toEqual({ kind: 'admitted' })
    }
    await organization.ledgerOf(2).learnEpoch(6)
    for (let shard = 0; shard < SHARDS; shard += 1) {
      expect(await organization.ledgerOf(shard).check(at(5))).toMatchObject({
        kind: 'stale',
        organization: 6,
      })
      expect(await organization.ledgerOf(shard).check(at(6))).toEqual({ kind: 'admitted' })
    }
  })
})

describe('limits of several shards', () => {
  const limits = (userId: string): Limits => ({
    userId,
    organizationPerMinute: 40,
    userPerMinute: 8,
    shards: SHARDS,
  })

  it('give each shard its part while nothing is known of the others (Redis is away here)', async () => {
    const organization = shardedOrganization()
    const calls = Array.from({ length: 100 }, (_, index) =>
      organization.open(index % SHARDS, 0, organization.opening(), limits(`user-${index}`)),
    )
    const admissions = await Promise.all(calls)
    expect(kindsOf(admissions, 'admitted')).toBe(40)
  })

  it('are exact for a user, who has one shard', async () => {
    const organization = shardedOrganization()
    const calls = Array.from({ length: 20 }, () =>
      organization.open(3, 0, organization.opening(), limits('one')),
    )
    expect(kindsOf(await Promise.all(calls), 'admitted')).toBe(8)
  })
})

describe('any interleaving of calls, transfers, deaths and time', () => {
  const seeds = Array.from({ length: Number(env.LEDGER_SEEDS) }, (_, index) => index + 1)

  it.each(seeds)(
    'never spends more than there is, and comes out exact (seed %i)',
    { timeout: 120_000 },
    async (seed) => {
      const organization = shardedOrganization()
      const random = new SeededRandom(seed)
      const open = new Map<string, { shard: number; reserve: number }>()
      const told = new Map<string, number>()
      await organization.ledger.grantCredits(organization.grant(500))
      for (let step = 0; step < 40; step += 1) {
        gate.mode = (['open', 'open', 'open', 'away', 'answer_lost'] as const)[random.below(5)] ?? 'open'
        // The first calls of a shard need Postgres.
        if (step < 3) gate.mode = 'open'
        const acts = Array.from({ length: 2 + random.below(8) }, () => act(organization, random, open, told))
        if (random.below(4) === 0) acts.push(abortAllDurableObjects())
        await Promise.all(acts)
        if (random.below(5) === 0) passTime(random.below(90_000))
        if (random.below(5) === 0) await organization.runAlarms().catch(() => {})
      }
      gate.mode = 'open'
      await settleEverything(organization)
      const balance = (await organization.ledger.balance()) as CreditBalance
      expect(balance.reserved).toBe(0)
      expect(balance.balance).toBeGreaterThanOrEqual(0)
      const held = await organization.held()
      expect(sumOf(held)).toBe(balance.balance)
      expect(Math.min(...held)).toBeGreaterThanOrEqual(0)
      const settled = await expectWhole(organization, balance.balance)
      for (const [callId] of told) expect(settled.has(callId)).toBe(true)
      const spent = sumOf([...settled.values()])
      expect(balance.balance).toBe(500 - spent)
    },
  )
})

/** Opens a call, or ends one that is open. */
async function act(
  organization: Sharded,
  random: SeededRandom,
  open: Map<string, { shard: number; reserve: number }>,
  told: Map<string, number>,
): Promise<void> {
  const [first] = open
  if (first && random.below(2) === 0) {
    const [callId, { shard, reserve }] = first
    open.delete(callId)
    const cost = random.below(reserve + 1)
    const isStored = await organization
      .ledgerOf(shard)
      .close(callId, outcome({ cost }))
      .then(
        () => true,
        () => false,
      )
    if (isStored) told.set(callId, cost)
    return
  }
  const call = organization.opening()
  const shard = random.below(SHARDS)
  const reserve = random.below(60)
  const admission = await organization.open(shard, reserve, call).catch(() => null)
  if (admission?.kind === 'admitted') open.set(call.callId, { shard, reserve })
}

/** Ends every lease and every transfer, and brings everything to Postgres. */
async function settleEverything(organization: Sharded): Promise<void> {
  await organization.ledger.balance()
  for (let round = 0; round < 3; round += 1) {
    vi.setSystemTime(Date.now() + 2 * LEASE_MS)
    await organization.runAlarms()
  }
  expect(await organization.ledger.flush()).toEqual({ pending: 0 })
}
