import { describe, expect, it } from 'vitest'
import { AccountTables } from '../../../src/ledger/account/account-tables.ts'
import { recordEntry } from '../../../src/ledger/commits/commit-entries.ts'
import { type ChainLink, GENESIS } from '../../../src/ledger/records/chain.ts'
import { copiedColumns } from '../../../src/ledger/records/record-body.ts'
import { verifyLinks } from '../../../src/ledger/records/verify.ts'
import { PROPERTY_RUNS } from '../lib/property-runs.ts'
import { LEASE_MS, openingOf, organizationId, outcomeOf, randomFrom, World } from './account-world.ts'

const HOUR_MS = 60 * 60_000
const DAY_MS = 24 * HOUR_MS

const storedNumbers = ({ storage }: World): number[] =>
  storage.sql
    .exec('SELECT number FROM commits ORDER BY number')
    .toArray()
    .map(({ number }) => Number(number))

const storedSequences = ({ storage }: World): number[] =>
  [...new AccountTables(storage).recordsAfter(0)].flatMap(({ links }) =>
    links.map(({ sequence }) => sequence),
  )

function record(world: World, id: string, cost = 1): void {
  world.commit([recordEntry(organizationId, openingOf(id, world.now), outcomeOf(cost))])
}

/** A record every hour, each of which Postgres has within the minute after. */
function recordHours(world: World, hours: number, into: ChainLink[]): void {
  for (let hour = 0; hour < hours; hour += 1) {
    world.now += HOUR_MS
    record(world, `call_${into.length}`)
    world.flush(into)
  }
}

describe('the log of an account', () => {
  it('overwrites commits that Postgres has had for a day, and has as many rows as a day has commits', () => {
    const world = new World(1_000)
    const flushed: ChainLink[] = []
    recordHours(world, 24, flushed)
    expect(storedNumbers(world)).toHaveLength(24)
    recordHours(world, 200, flushed)
    expect(storedNumbers(world).length).toBeLessThanOrEqual(26)
    expect(storedNumbers(world).at(-1)).toBe(224)
    expect(storedSequences(world).at(-1)).toBe(224)
  })

  it('overwrites nothing that Postgres does not have, however old it is', () => {
    const world = new World(1_000)
    const flushed: ChainLink[] = []
    recordHours(world, 30, flushed)
    for (let hour = 0; hour < 100; hour += 1) {
      world.now += HOUR_MS
      record(world, `waiting_${hour}`)
      world.account.log.trim()
    }
    const waiting = Array.from({ length: 100 }, (_, index) => 31 + index)
    expect(storedSequences(world).slice(-100)).toEqual(waiting)
    while (world.account.log.pending() > 0) world.flush(flushed, 7)
    expect(verifyLinks(rowsOf(flushed), GENESIS)).toMatchObject({ intact: true })
  })

  it('sends again what a restore of Postgres has lost within a day', () => {
    const world = new World(1_000)
    const flushed: ChainLink[] = []
    recordHours(world, 60, flushed)
    const lost = 23
    world.storage.sql.exec('UPDATE account SET flushed = ?', 60 - lost)
    world.restart()
    expect(world.account.log.pending()).toBe(lost)
    const again = flushed.slice(0, 60 - lost)
    while (world.account.log.pending() > 0) world.flush(again)
    expect(again).toEqual(flushed)
  })

  it('keeps a call that is open for longer than its commit is stored', () => {
    const world = new World(1_000)
    const flushed: ChainLink[] = []
    world.commit([world.call('long', 40)])
    for (let hour = 0; hour < 60; hour += 1) {
      recordHours(world, 1, flushed)
      world.account.extend('long', LEASE_MS, null)
    }
    world.restart()
    expect(storedNumbers(world)[0]).toBeGreaterThan(1)
    expect(world.account.balance().reserved).toBe(40)
  })

  it('deletes rows that nothing has overwritten for a week, a thousand at a time', () => {
    const world = new World(1_000_000)
    const flushed: ChainLink[] = []
    for (let call = 0; call < 1_500; call += 1) record(world, `busy_${call}`)
    while (world.account.log.pending() > 0) world.flush(flushed)
    recordHours(world, 7 * 24, flushed)
    expect(storedNumbers(world).length).toBeGreaterThan(1_490)
    recordHours(world, 2 * 24, flushed)
    expect(storedNumbers(world).length).toBeLessThan(200)
  })

  it('keeps the newest commits only, where they would not fit into the object', () => {
    const world = new World(1_000)
    const flushed: ChainLink[] = []
    recordHours(world, 20, flushed)
    Object.assign(world.storage.sql, { databaseSize: 6_000_000_000 })
    recordHours(world, 20, flushed)
    expect(storedNumbers(world)).toHaveLength(21)
    expect(verifyLinks(rowsOf(flushed), GENESIS)).toMatchObject({ intact: true })
  })

  it('shrinks when it has grown beyond its bound while Postgres was away, and keeps what Postgres lacks', () => {
    const world = new World(1_000_000)
    const flushed: ChainLink[] = []
    for (let call = 0; call < 1_500; call += 1) record(world, `away_${call}`)
    Object.assign(world.storage.sql, { databaseSize: 7_000_000_000 })
    world.now += HOUR_MS
    world.account.log.trim()
    expect(storedNumbers(world)).toHaveLength(1_500)
    while (world.account.log.pending() > 0) world.flush(flushed)
    world.now += HOUR_MS
    world.account.log.trim()
    expect(storedNumbers(world).length).toBeLessThanOrEqual(500)
    world.restart()
    record(world, 'after')
    while (world.account.log.pending() > 0) world.flush(flushed)
    expect(verifyLinks(rowsOf(flushed), GENESIS)).toMatchObject({ intact: true })
  })

  it('is what is stored when a row cannot be overwritten', () => {
    const world = new World(1_000)
    const flushed: ChainLink[] = []
    recordHours(world, 40, flushed)
    const { balance } = world.account.balance()
    world.storage.failNext()
    expect(() => record(world, 'lost')).toThrow('disk full')
    expect(world.account.balance().balance).toBe(balance)
    // The row that it would take is gone: nothing may be lost silently.
    world.storage.sql.exec('DELETE FROM commits WHERE number = (SELECT min(number) FROM commits)')
    world.now += HOUR_MS
    world.account.log.trim()
    world.storage.sql.exec('DELETE FROM commits WHERE number = (SELECT min(number) FROM commits)')
    expect(() => record(world, 'lost')).toThrow('wrote 0 rows')
    record(world, 'stored')
    world.restart()
    expect(world.account.balance().balance).toBe(balance - 1)
  })

  const seeds = Array.from({ length: Math.ceil(PROPERTY_RUNS / 6) }, (_, index) => index + 1)

  it.each(seeds)('has every record that Postgres lacks or has had for less than a day (seed %i)', (seed) => {
    const random = randomFrom(seed)
    const world = new World(1_000_000)
    const flushed: ChainLink[] = []
    const appendedAt: number[] = []
    let cost = 0
    for (let step = 0; step < 200; step += 1) {
      const calls = Array.from({ length: random(4) }, (_, index) => `call_${step}_${index}`)
      for (const id of calls) record(world, id)
      for (const _ of calls) appendedAt.push(world.now)
      cost += calls.length
      world.now += random(3) === 0 ? random(8 * HOUR_MS) : random(HOUR_MS)
      if (random(5) > 0) world.flush(flushed, 1 + random(6))
      else world.account.log.trim()
      if (random(4) === 0) world.restart()
      expectKept(world, appendedAt, flushed.length)
      expect(world.account.balance().balance).toBe(1_000_000 - cost)
    }
    while (world.account.log.pending() > 0) world.flush(flushed)
    expect(flushed).toHaveLength(appendedAt.length)
    expect(verifyLinks(rowsOf(flushed), GENESIS)).toMatchObject({ intact: true })
  })
})

describe('a log that was rewound', () => {
  it('overwrites nothing that Postgres has lost, and has it again after a restart', () => {
    const world = new World(1_000)
    const flushed: ChainLink[] = []
    recordHours(world, 40, flushed)
    expect(world.account.log.rewind(20)).toBe(20)
    world.restart()
    expect(world.account.log.pending()).toBe(20)
    for (let hour = 0; hour < 60; hour += 1) {
      world.now += HOUR_MS
      record(world, `more_${hour}`)
      world.account.log.trim()
    }
    const again = flushed.slice(0, 20)
    while (world.account.log.pending() > 0) world.flush(again, 3)
    expect(again.slice(0, 40)).toEqual(flushed)
    expect(verifyLinks(rowsOf(again), GENESIS)).toMatchObject({ intact: true })
  })

  it('goes back no further than it has records, or than is wanted', () => {
    const world = new World(1_000)
    const flushed: ChainLink[] = []
    recordHours(world, 60, flushed)
    const [oldest = 0] = storedSequences(world)
    expect(oldest).toBeGreaterThan(30)
    expect(world.account.log.rewind(50, world.now - 5 * HOUR_MS)).toBe(54)
    expect(world.account.log.rewind(60)).toBe(54)
    expect(world.account.log.rewind(3)).toBe(oldest - 1)
    expect(world.account.log.pending()).toBe(60 - oldest + 1)
  })

  it('does not jump over what is pending when an earlier write is answered', () => {
    const world = new World(1_000)
    recordHours(world, 20, [])
    world.account.log.rewind(5)
    world.account.log.markFlushed(11, 20)
    expect(world.account.log.flushed).toBe(5)
    world.account.log.markFlushed(6, 20)
    expect(world.account.log.flushed).toBe(20)
  })

  const seeds = Array.from({ length: Math.ceil(PROPERTY_RUNS / 6) }, (_, index) => index + 1)

  it.each(seeds)('gives Postgres everything again that it had confirmed within a day (seed %i)', (seed) => {
    const random = randomFrom(seed + 1_000)
    const world = new World(1_000_000)
    let stored: ChainLink[] = []
    const appendedAt: number[] = []
    for (let step = 0; step < 200; step += 1) {
      for (let call = random(4); call > 0; call -= 1) {
        record(world, `call_${appendedAt.length}`)
        appendedAt.push(world.now)
      }
      world.now += random(3) === 0 ? random(8 * HOUR_MS) : random(HOUR_MS)
      if (random(5) > 0) world.flush(stored, 1 + random(6))
      else world.account.log.trim()
      if (random(6) === 0) {
        // Postgres goes back by at most a day, and a write of before may still be answered.
        const firstOfDay = appendedAt.findIndex((at) => world.now - at < DAY_MS)
        const recent = firstOfDay < 0 ? 0 : Math.max(0, stored.length - firstOfDay)
        const late = { first: Math.max(1, stored.length - 2), last: stored.length }
        stored = stored.slice(0, stored.length - random(recent + 1))
        expect(world.account.log.rewind(stored.length)).toBe(stored.length)
        if (late.first > stored.length + 1) world.account.log.markFlushed(late.first, late.last)
        expect(world.account.log.flushed).toBe(stored.length)
      }
      if (random(4) === 0) world.restart()
    }
    while (world.account.log.pending() > 0) world.flush(stored)
    expect(stored).toHaveLength(appendedAt.length)
    expect(verifyLinks(rowsOf(stored), GENESIS)).toMatchObject({ intact: true })
  })
})

const rowsOf = (links: readonly ChainLink[]) =>
  links.map((link) => ({ ...copiedColumns(JSON.parse(link.body)), ...link }))

function expectKept(world: World, appendedAt: readonly number[], flushed: number): void {
  const numbers = storedNumbers(world)
  expect(numbers).toEqual(numbers.map((_, index) => (numbers[0] ?? 0) + index))
  const stored = new Set(storedSequences(world))
  const isNeeded = (at: number, index: number) => index + 1 > flushed || world.now - at < DAY_MS
  const missing = appendedAt.flatMap((at, index) =>
    isNeeded(at, index) && !stored.has(index + 1) ? [index + 1] : [],
  )
  expect(missing).toEqual([])
}
