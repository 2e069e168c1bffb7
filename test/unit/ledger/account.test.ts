import { describe, expect, it } from 'vitest'
import { AccountTables } from '../../../src/ledger/account/account-tables.ts'
import { type CommitEntry, closingEntry, recordEntry } from '../../../src/ledger/commits/commit-entries.ts'
import type { CallLimits } from '../../../src/ledger/contract.ts'
import { type ChainLink, GENESIS } from '../../../src/ledger/records/chain.ts'
import { copiedColumns } from '../../../src/ledger/records/record-body.ts'
import { verifyLinks } from '../../../src/ledger/records/verify.ts'
import { PROPERTY_RUNS } from '../lib/property-runs.ts'
import {
  EPOCH,
  LEASE_MS,
  openingOf,
  organizationId,
  outcomeOf,
  type Random,
  randomFrom,
  World,
} from './account-world.ts'

/** The expected decisions of the account, computed independently. */
class Model {
  balance: number
  readonly open = new Map<string, number>()
  readonly settled = new Map<string, number>()
  readonly #settledAt = new Map<string, number>()
  /** Instants of the calls that were counted, by user; the organization's under ''. */
  readonly counted = new Map<string, number[]>()

  constructor(balance: number) {
    this.balance = balance
  }

  get available(): number {
    return [...this.open.values()].reduce((left, reserve) => left - reserve, this.balance)
  }

  /** The sliding window of @upstash/ratelimit: `floor((1 - share) * before) + current`. */
  used(name: string, now: number): number {
    const start = now - (now % 60_000)
    const within = (from: number) =>
      (this.counted.get(name) ?? []).filter((at) => at >= from && at < from + 60_000).length
    return Math.floor((1 - (now - start) / 60_000) * within(start - 60_000)) + within(start)
  }

  admit(id: string, reserve: number, limits: CallLimits | null, now: number): string {
    if (this.settled.has(id)) return 'invalid'
    if (this.open.has(id)) return 'admitted'
    if (limits && this.used('', now) >= limits.organizationPerMinute) return 'limited organization'
    if (limits && this.used(limits.userId, now) >= limits.userPerMinute) return 'limited user'
    if (reserve > 0 && this.available < reserve) return 'no_credits'
    this.open.set(id, reserve)
    if (limits) {
      for (const name of ['', limits.userId]) this.counted.set(name, [...(this.counted.get(name) ?? []), now])
    }
    return 'admitted'
  }

  /** Limit and remaining calls of the tighter of both limits, or of the organization's if it is used up; 0 for what is not counted. */
  tightest(limits: CallLimits | null, now: number): [limit: number, remaining: number] {
    if (!limits) return [0, 0]
    const { organizationPerMinute, userPerMinute } = limits
    const organization = organizationPerMinute - this.used('', now)
    const user = userPerMinute - this.used(limits.userId, now)
    return organization <= 0 || organization < user
      ? [organizationPerMinute, organization]
      : [userPerMinute, user]
  }

  /** Ids of calls that may be repeated: what was settled more than two minutes ago is known to nobody after a restart. */
  repeatable(now: number): string[] {
    const recent = [...this.#settledAt].filter(([, at]) => now - at < 120_000)
    return [...recent.map(([id]) => id), ...this.open.keys()]
  }

  settle(id: string, cost: number, now: number): void {
    this.open.delete(id)
    this.#settledAt.set(id, now)
    this.settled.set(id, cost)
    this.balance -= cost
  }
}

const LIMITS = { organizationPerMinute: 40, userPerMinute: 15 }

/** Makes a commit of random calls and closings, some repeated, and compares the account with the model. */
function commitSome(world: World, model: Model, random: Random, names: () => string): void {
  const openIds = [...model.open.keys()]
  const closings = new Map(
    Array.from({ length: random(4) }, () => openIds[random(openIds.length || 1)])
      .filter((id) => id !== undefined)
      .map((id) => [id, random((model.open.get(id) ?? 0) + 1)]),
  )
  for (const [id, cost] of closings) model.settle(id, cost, world.now)
  const calls = Array.from({ length: random(6) }, () => {
    const known = random(8) === 0 ? model.repeatable(world.now) : []
    const id = known[random(known.length || 1)] ?? names()
    const limits = random(3) === 0 ? null : { ...LIMITS, userId: `user-${random(4)}` }
    const reserve = random(3) === 0 ? 0 : random(50)
    const entry = world.call(id, reserve, limits)
    const verdict = model.admit(id, reserve, limits, world.now)
    const isAdmitted = verdict === 'admitted'
    return { entry, verdict, tightest: model.tightest(isAdmitted ? limits : null, world.now) }
  })
  const entries = [...closings].map(([id, cost]) => closingEntry(id, outcomeOf(cost)))
  const { refused, unsettled, rateLimits } = world.commit([...entries, ...calls.map(({ entry }) => entry)])
  expect(unsettled).toEqual([])
  const told = calls.map(() => 'admitted')
  for (const [index, verdict] of refused) {
    told[index] = verdict.kind === 'limited' ? `limited ${verdict.scope}` : verdict.kind
  }
  expect(told).toEqual(calls.map(({ verdict }) => verdict))
  const sent = calls.map((_, index) => [rateLimits?.limits[index] ?? 0, rateLimits?.remaining[index] ?? 0])
  expect(sent).toEqual(calls.map(({ tightest }) => tightest))
}

describe('an account beside a model of it', () => {
  const seeds = Array.from({ length: Math.ceil(PROPERTY_RUNS / 6) }, (_, index) => index + 1)

  it.each(seeds)('admits, counts and records the same, whatever restarts come between (seed %i)', (seed) => {
    const random = randomFrom(seed)
    const world = new World(400)
    const model = new Model(400)
    const flushed: ChainLink[] = []
    let made = 0
    for (let step = 0; step < 150; step += 1) {
      commitSome(world, model, random, () => `call_${made++}`)
      const { balance, available } = world.account.balance()
      expect({ balance, available }).toEqual({ balance: model.balance, available: model.available })
      expect(available).toBeGreaterThanOrEqual(0)
      // Never as long as a lease: what lapses is another test's.
      if (random(4) === 0) world.now += random(20_000)
      for (const id of model.open.keys()) if (random(4) === 0) world.account.extend(id, LEASE_MS, null)
      if (random(6) === 0) world.flush(flushed, 1 + random(10))
      if (random(10) === 0) world.account.log.trim()
      if (random(6) === 0) world.restart()
    }
    for (const id of [...model.open.keys()]) {
      world.commit([closingEntry(id, outcomeOf(0))])
      model.settle(id, 0, world.now)
    }
    while (world.account.log.pending() > 0) world.flush(flushed)
    const rows = flushed.map((link) => ({ ...copiedColumns(JSON.parse(link.body)), ...link }))
    expect(verifyLinks(rows, GENESIS)).toMatchObject({ intact: true })
    expect(new Map(rows.map(({ id, creditsSettled }) => [id, creditsSettled]))).toEqual(model.settled)
    expect(rows).toHaveLength(model.settled.size)
  })
})

describe('an account', () => {
  it('keeps calls that are open for longer than a restart reads its log, and ends them once', () => {
    const world = new World(100)
    const flushed: ChainLink[] = []
    world.commit([world.call('long', 40)])
    for (let minute = 0; minute < 10; minute += 1) {
      world.now += 60_000
      const progress = { provider: 'p', usage: { ...noUsage }, cost: minute }
      expect(world.account.extend('long', LEASE_MS, progress)).toEqual({ open: true })
      world.commit([recordEntry(organizationId, openingOf(`short_${minute}`, world.now), outcomeOf(0))])
      world.flush(flushed)
      world.restart()
      expect(world.account.balance()).toEqual({ balance: 100, reserved: 40, available: 60 })
    }
    world.now += LEASE_MS
    world.account.settleExpired()
    world.restart()
    expect(world.account.balance()).toEqual({ balance: 91, reserved: 0, available: 91 })
    world.now += 600_000
    world.account.settleExpired()
    world.flush(flushed)
    world.restart()
    expect(world.account.balance()).toEqual({ balance: 91, reserved: 0, available: 91 })
    expect(flushed.filter(({ id }) => id === 'long')).toHaveLength(1)
  })

  it('reads no more than three minutes of its log after a restart, also when Postgres has nothing', () => {
    const world = new World(100)
    for (let call = 0; call < 100; call += 1) {
      world.now += 10_000
      world.commit([recordEntry(organizationId, openingOf(`call_${call}`, world.now), outcomeOf(0))])
      world.account.log.trim()
    }
    expect(storedCommits(world)).toBe(100)
    const { replayFrom } = new AccountTables(world.storage).account()
    expect([...new AccountTables(world.storage).replay(replayFrom)].length).toBeLessThanOrEqual(19)
    expect(world.account.log.pending()).toBe(100)
  })

  it('is what is stored when a commit cannot be written', () => {
    const world = new World(100)
    world.commit([world.call('a', 30)])
    world.storage.failNext()
    expect(() => world.commit([closingEntry('a', outcomeOf(10)), world.call('b', 20)])).toThrow('disk full')
    expect(world.account.balance()).toEqual({ balance: 100, reserved: 30, available: 70 })
    world.commit([closingEntry('a', outcomeOf(10)), world.call('b', 20)])
    world.restart()
    expect(world.account.balance()).toEqual({ balance: 90, reserved: 20, available: 70 })
  })

  it('refuses an entry that cannot be stored, and none beside it', () => {
    const world = new World(100)
    const wrong = { ...world.call('wrong', 0), reserve: 0.5 } as CommitEntry
    const answer = world.commit([world.call('a', 30), wrong, world.call('b', 20)])
    expect(answer.refused).toMatchObject([[1, { kind: 'invalid' }]])
    const huge = { ...closingEntry('a', outcomeOf(1)), outcome: `"x":"${'y'.repeat(1_000_000)}"` }
    const settled = world.commit([huge, closingEntry('b', outcomeOf(5))])
    expect(settled.unsettled).toMatchObject([[0, { kind: 'invalid' }]])
    expect(world.account.balance()).toEqual({ balance: 95, reserved: 30, available: 65 })
    world.restart()
    expect(world.account.balance()).toEqual({ balance: 95, reserved: 30, available: 65 })
  })

  it('writes a commit that is too large for one row as several', () => {
    const world = new World(100)
    const long = { ...outcomeOf(1), flags: ['x'.repeat(300_000)] }
    const ids = ['a', 'b', 'c', 'd', 'e']
    world.commit(ids.map((id) => recordEntry(organizationId, openingOf(id, world.now), long)))
    expect(storedCommits(world)).toBe(3)
    world.restart()
    const flushed: ChainLink[] = []
    world.flush(flushed)
    expect(flushed.map(({ id }) => id)).toEqual(ids)
    expect(world.account.balance().balance).toBe(95)
  })

  it('answers stale for rights of another epoch, and counts nothing', () => {
    const world = new World(100)
    const limits = { ...LIMITS, userId: 'u' }
    const { refused } = world.commit([world.call('old', 10, limits, EPOCH - 1)])
    expect(refused).toEqual([[0, { kind: 'stale', organization: EPOCH, catalogue: null }]])
    expect(world.account.balance().reserved).toBe(0)
  })
})

const noUsage = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite5Minutes: 0,
  cacheWrite1Hour: 0,
  reasoning: 0,
}

const storedCommits = ({ storage }: World): number =>
  Number(storage.sql.exec('SELECT count(*) AS n FROM commits').one().n)
