import { afterEach, describe, expect, it, vi } from 'vitest'
import { createApiKey } from '../../../src/identity/api-key.ts'
import { identify } from '../../../src/identity/identify.ts'
import { countShared } from '../../../src/lib/shared-limits.ts'
import { seedCaller } from '../calls/fixtures.ts'
import { away, RightsWorld, refused } from './rights-harness.ts'

const world = RightsWorld.forFile()
const NO_ROWS = {
  status: 200,
  body: JSON.stringify({ command: 'SELECT', rowCount: 0, fields: [], rows: [], rowAsArray: true }),
}

afterEach(() => void vi.useRealTimers())

// Hundreds of look-ups in a test take their time on a busy machine.
describe('an address whose keys keep being refused', { timeout: 120_000 }, () => {
  /** Looks up keys that Postgres does not have, which the forwarder answers for it. */
  const unknownKeys = async (count: number, address: string | null) => {
    world.postgres.requests = 0
    world.postgres.behaviour = NO_ROWS
    const deps = world.deps()
    const reasons: string[] = []
    for (let attempt = 0; attempt < count; attempt += 1) {
      const identification = await identify(deps, createApiKey().key, address)
      reasons.push(identification.kind === 'refused' ? identification.reason : identification.kind)
    }
    world.postgres.behaviour = 'forward'
    return { reasons, queries: world.postgres.requests }
  }

  it('gets five look-ups a second after sixty refusals, until the minute is over', async () => {
    const address = '192.0.2.10'
    expect(await unknownKeys(60, address)).toEqual({ reasons: Array(60).fill('unknown'), queries: 60 })
    const refused = await unknownKeys(20, address)
    expect(refused.queries).toBe(5)
    expect(refused.reasons.slice(5)).toEqual(Array(15).fill('unchecked'))
    expect(await identify(world.deps(), createApiKey().key, address)).toEqual({
      kind: 'refused',
      reason: 'unchecked',
      owner: null,
    })
    world.now += 1_000
    expect((await unknownKeys(10, address)).queries).toBe(5)
    expect((await unknownKeys(10, '192.0.2.11')).queries).toBe(10)
    world.now += 59_000
    expect((await unknownKeys(20, address)).queries).toBe(20)
  })

  it('still gets in with keys that were good when last seen, and with a new one in the next second', async () => {
    const address = '192.0.2.20'
    const [known, fresh] = await Promise.all([seedCaller(world.direct), seedCaller(world.direct)])
    await identify(world.deps(), known.key, address)
    await unknownKeys(66, address)
    world.now += 31_000
    await unknownKeys(10, address)
    expect((await identify(world.deps(), known.key, address)).kind).toBe('known')
    expect(await identify(world.deps(), fresh.key, address)).toMatchObject({ reason: 'unchecked' })
    world.now += 1_000
    expect((await identify(world.deps(), fresh.key, address)).kind).toBe('known')
  })

  it('is not let in with a key that was good and is revoked', async () => {
    const address = '192.0.2.30'
    const caller = await seedCaller(world.direct)
    await identify(world.deps(), caller.key, address)
    await world.revoke(caller)
    world.now += 30_000
    await unknownKeys(66, address)
    expect(await identify(world.deps(), caller.key, address)).toEqual(refused(caller, 'revoked'))
    expect(await identify(world.deps(), caller.key, address)).toMatchObject({ reason: 'unchecked' })
  })

  it('is one whose keys other isolates refused: only keys that are known here get in, until a minute has passed', async () => {
    // The limiter reads the system's clock.
    vi.useFakeTimers({ toFake: ['Date'], now: world.now })
    const address = '192.0.2.50'
    const caller = await seedCaller(world.direct)
    await identify(world.deps(), caller.key, address)
    const refusedElsewhere = { name: 'refused-keys', perMinute: 300 }
    const refusals = Array.from({ length: 300 }, () => countShared(world.deps(), refusedElsewhere, address))
    await Promise.all(refusals)
    expect(await unknownKeys(3, address)).toEqual({ reasons: Array(3).fill('unchecked'), queries: 0 })
    world.now += 31_000
    expect((await identify(world.deps(), caller.key, address)).kind).toBe('known')
    world.now += 2 * 60_000
    vi.setSystemTime(world.now)
    expect((await unknownKeys(3, address)).queries).toBe(3)
  })

  it('is a whole /64 of IPv6, while unknown addresses have a wider bound of their own', async () => {
    await unknownKeys(60, '2001:db8:0:1::1')
    expect((await unknownKeys(10, '2001:db8::1:ffff:0:0:2')).queries).toBe(5)
    expect((await unknownKeys(10, '2001:db8:0:2::1')).queries).toBe(10)
    expect((await unknownKeys(90, null)).queries).toBe(90)
  })

  it('is not one that sends malformed keys, nor one that waits for a database that is away', async () => {
    const address = '192.0.2.40'
    for (let attempt = 0; attempt < 100; attempt += 1) await identify(world.deps(), 'hg_x', address)
    world.postgres.behaviour = away
    for (let attempt = 0; attempt < 70; attempt += 1) {
      await expect(identify(world.deps(), createApiKey().key, address)).rejects.toThrow()
    }
    world.postgres.behaviour = 'forward'
    expect((await unknownKeys(10, address)).queries).toBe(10)
  })
})
