import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { LedgerObject } from '../../src/ledger/ledger-object.ts'
import { Ledger } from '../../workers/ledger.ts'
import { useDatabaseGate } from './database-gate.ts'
import { outcome } from './ledger-harness.ts'
import {
  BEGINNING,
  expectWhole,
  fundedOrganization,
  kindsOf,
  shardedOrganization,
  sumOf,
} from './ledger-shards-harness.ts'

useDatabaseGate(BEGINNING)

/** What goes wrong with one message of a transfer, before or after its receiver has stored what it says. */
const FAULTS = [
  'lost',
  'answer lost',
  'twice',
  'receiver killed before',
  'receiver killed after',
  'all killed before',
  'all killed after',
] as const
type Fault = (typeof FAULTS)[number]

type Step = 'sendEscrow' | 'takeEscrow'
const original = { sendEscrow: Ledger.prototype.sendEscrow, takeEscrow: Ledger.prototype.takeEscrow }
afterEach(() => {
  Object.assign(Ledger.prototype, original)
})

/** Set by a message at which every object is to be killed; the runtime cannot do that from within one of them. */
let isKillDue = false
const never = () => new Promise<never>(() => {})

/** Lets the next messages of a kind go wrong, one each. */
function fail(step: Step, faults: Fault[]) {
  const run = original[step] as (this: Ledger, ...parameters: number[]) => Promise<unknown>
  const failing = async function (this: Ledger, ...parameters: number[]) {
    const fault = faults.shift()
    if (fault === 'lost') throw new Error('the message was lost')
    if (fault === 'receiver killed before') this.ctx.abort('killed')
    if (fault === 'all killed before') {
      isKillDue = true
      return never()
    }
    const answer = await run.apply(this, parameters)
    if (fault === 'twice') return run.apply(this, parameters)
    if (fault === undefined) return answer
    await this.ctx.storage.sync()
    if (fault === 'answer lost') throw new Error('the answer was lost')
    if (fault === 'receiver killed after') this.ctx.abort('killed')
    isKillDue = true
    return never()
  }
  Object.assign(Ledger.prototype, { [step]: failing })
}

/** Waits for a call, and kills every object when a message asks for it. @returns null when there was no answer. */
async function survive<Answer>(work: Promise<Answer>): Promise<Answer | null> {
  isKillDue = false
  let isDone = false
  const done = work
    .catch(() => null)
    .finally(() => {
      isDone = true
    })
  while (!isDone) {
    await new Promise((resolve) => setTimeout(resolve, 1))
    if (!isKillDue) continue
    isKillDue = false
    await abortAllDurableObjects()
  }
  return done
}

type Organization = ReturnType<typeof shardedOrganization>

/** Nobody calls any more, and no credits are between two shards. */
async function expectAtRest(organization: Organization, balance: number) {
  await organization.comeToRest()
  await vi.waitFor(async () => expect(await organization.ledger.flush()).toEqual({ pending: 0 }))
  const total = await organization.ledger.balance()
  expect(total.balance).toBe(balance)
  expect(sumOf(await organization.held())).toBe(balance)
  await expectWhole(organization, balance)
}

describe('a transfer that goes wrong', () => {
  it.each(FAULTS)('to a shard, and nobody calls there again: %s', async (fault) => {
    const organization = await fundedOrganization(1_000)
    fail('sendEscrow', [fault])
    const admission = await survive(organization.open(1, 100))
    expect((await organization.ledger.balance()).balance).toBe(1_000)
    // Its lease runs out.
    await expectAtRest(organization, admission?.kind === 'admitted' ? 900 : 1_000)
  })

  it.each(FAULTS)('to a shard again and again, and then it is drawn from: %s', async (fault) => {
    const organization = await fundedOrganization(1_000)
    fail('sendEscrow', [fault, fault, fault])
    let admitted = 0
    for (let attempt = 0; attempt < 5 && admitted === 0; attempt += 1) {
      const admission = await survive(organization.open(1, 1_000))
      if (admission?.kind === 'admitted') admitted += 1
    }
    expect(admitted).toBe(1)
    expect(await organization.open(2, 1)).toMatchObject({ kind: 'no_credits' })
    expect(sumOf(await organization.held())).toBe(1_000)
  })

  it.each(FAULTS)('from a shard: %s', async (fault) => {
    const organization = await fundedOrganization(1_000)
    const call = organization.opening()
    await organization.open(1, 800, call)
    await organization.ledgerOf(1).close(call.callId, outcome({ cost: 10 }))
    fail('takeEscrow', [fault])
    // What shard 1 does not need any more is called in for it.
    const admission = await survive(organization.open(2, 600))
    const reserved = admission?.kind === 'admitted' ? 600 : 0
    expect(await organization.ledger.balance()).toMatchObject({ balance: 990, reserved })
    await expectAtRest(organization, 990 - reserved)
  })

  it('moves nothing when the question comes long after it was answered', async () => {
    const organization = await fundedOrganization(100)
    const home = organization.stub(0) as unknown as LedgerObject
    expect(await organization.open(1, 101)).toMatchObject({ kind: 'no_credits' })
    expect(await home.sendEscrow(1, 1, 1, 50)).toEqual({ number: 1, amount: 0 })
    expect(await organization.open(1, 60)).toEqual({ kind: 'admitted' })
    expect(await home.sendEscrow(1, 1, 1, 50)).toEqual({ number: 2, amount: 0 })
    expect(sumOf(await organization.held())).toBe(100)
  })
})

describe('a shard that is in debt', () => {
  it('is covered by the home shard, so that nobody spends what was spent', async () => {
    const organization = await fundedOrganization(100)
    const call = organization.opening()
    await organization.open(1, 10, call)
    await organization.ledgerOf(1).close(call.callId, outcome({ cost: 60 }))
    await organization.runAlarms()
    expect(Math.min(...(await organization.held()))).toBeGreaterThanOrEqual(0)
    expect(await organization.open(0, 41)).toMatchObject({ kind: 'no_credits' })
    expect(await organization.open(0, 40)).toEqual({ kind: 'admitted' })
  })

  it('is the home shard, after credits were taken away: the others hold no more than there is', async () => {
    const organization = await fundedOrganization(1_000)
    const calls = [1, 2, 3].map((shard) => ({ shard, call: organization.opening() }))
    for (const { shard, call } of calls) await organization.open(shard, 100, call)
    for (const { shard, call } of calls) await organization.ledgerOf(shard).close(call.callId, outcome())
    const taken = await organization.ledger.grantCredits(organization.grant(-950))
    expect(taken).toEqual({ balance: 50, reserved: 0, available: 50 })
    const admissions = await Promise.all(
      [0, 1, 2, 3, 0, 1, 2, 3].map((shard) => organization.open(shard, 20)),
    )
    expect(kindsOf(admissions, 'admitted')).toBeLessThanOrEqual(2)
    expect(Math.min(...(await organization.held()))).toBeGreaterThanOrEqual(0)
  })

  it('gets what running calls held elsewhere as soon as they end', async () => {
    const organization = await fundedOrganization(1_000)
    const call = organization.opening()
    await organization.open(1, 900, call)
    await organization.ledger.grantCredits(organization.grant(-500))
    expect(await organization.ledger.balance()).toEqual({ balance: 500, reserved: 900, available: -400 })
    await organization.ledgerOf(1).close(call.callId, outcome({ cost: 100 }))
    vi.setSystemTime(Date.now() + 2_000)
    await organization.runAlarms()
    expect(await organization.open(1, 401)).toMatchObject({ kind: 'no_credits' })
    expect(await organization.open(1, 400)).toEqual({ kind: 'admitted' })
  })
})

describe('the balance of several shards', () => {
  it('is of one moment, while credits move', async () => {
    const organization = await fundedOrganization(1_000)
    let moving = true
    const moves = Promise.all(
      [1, 2, 3].map(async (shard) => {
        for (let round = 0; round < 15; round += 1) {
          const call = organization.opening()
          await organization.open(shard, 200 + 10 * ((7 * round + 5 * shard) % 13), call)
          await organization.ledgerOf(shard).close(call.callId, outcome())
        }
      }),
    ).finally(() => {
      moving = false
    })
    const seen = new Set<number>()
    while (moving) {
      seen.add((await organization.ledger.balance()).balance)
      // Calls between objects of one process leave timers no room.
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    await moves
    expect([...seen]).toEqual([1_000])
  })
})

describe('calls that ask for credits at the same time', () => {
  it('are not refused because another one asked for more than there is', async () => {
    const organization = await fundedOrganization(100)
    await organization.open(1, 0)
    // Two isolates: their commits do not travel together.
    const client = organization.stub(1) as unknown as Ledger
    const batchOf = organization.batchOf
    const [large, small] = await Promise.all([client.commit(batchOf(500)), client.commit(batchOf(90))])
    expect(large.refused).toHaveLength(1)
    expect(small.refused).toEqual([])
  })
})

describe('a home shard that loses its storage', () => {
  it('tells every shard of epochs that has records, whether it ever had credits or not', async () => {
    const organization = shardedOrganization()
    const at = (epoch: number) => ({
      epochs: { organization: epoch, catalogue: null },
      learned: null,
      limits: null,
    })
    await organization.ledger.learnEpoch(5)
    await organization.ledgerOf(3).record(organization.opening(), outcome({ status: 403 }))
    expect(await organization.ledgerOf(3).check(at(5))).toEqual({ kind: 'admitted' })
    await organization.ledger.flush()
    await runInDurableObject(organization.stub(0), (_, state) => state.storage.deleteAll())
    await abortAllDurableObjects()
    await organization.ledger.learnEpoch(6)
    expect(await organization.ledgerOf(3).check(at(5))).toMatchObject({ kind: 'stale', organization: 6 })
  })
})
