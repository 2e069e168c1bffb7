import { randomUUID } from 'node:crypto'
import { and, eq, sql } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  apiKeys,
  entitlements,
  groupMemberships,
  groups,
  memberships,
  organizations,
} from '../../../schema/identity.ts'
import { deploymentEpochs, grants } from '../../../schema/models.ts'
import type { Database } from '../../../src/deps.ts'
import {
  catalogueEpochKey,
  confirmCatalogueEpoch,
  confirmRights,
  organizationEpochKey,
  publishEpoch,
} from '../../../src/governance/epochs.ts'
import { createApiKey } from '../../../src/governance/identity/api-key.ts'
import { type Identification, identify } from '../../../src/governance/identity/identify.ts'
import { checkLimits } from '../../../src/governance/limits.ts'
import { mayUse } from '../../../src/governance/model-access.ts'
import type { Principal } from '../../../src/governance/principal.ts'
import {
  type Caller,
  configuration,
  currentPepper,
  databaseAt,
  grant,
  migrateDatabase,
  oldPepper,
  redisAt,
  seedCaller,
} from './fixtures.ts'
import { type Forwarder, type Service, startForwarder, startStandIn, unusedUrl } from './stand-ins.ts'

let postgres: Service
let redis: Service
let postgresForwarder: Forwarder
let redisForwarder: Forwarder
/** Not through the forwarder: what the test does is neither counted nor hindered. */
let direct: Database
/** What the code under test gets. */
let database: Database

let now = Date.UTC(2026, 10, 21, 12, 0)
const clock = () => now

beforeAll(async () => {
  const token = { LOCAL_REDIS_TOKEN: 'local-token' }
  ;[postgres, redis] = await Promise.all([startStandIn('postgres'), startStandIn('redis', [], token)])
  ;[postgresForwarder, redisForwarder] = await Promise.all([
    startForwarder(postgres.url),
    startForwarder(redis.url),
  ])
  direct = databaseAt(postgres.url)
  database = databaseAt(postgresForwarder.url)
  await migrateDatabase(direct)
}, 120_000)

afterAll(async () => {
  await Promise.all([postgresForwarder?.close(), redisForwarder?.close()])
  await Promise.all([postgres?.close(), redis?.close()])
})

beforeEach(async () => {
  vi.spyOn(console, 'log').mockImplementation(() => undefined)
  // Past anything an earlier test left in the isolate's memory.
  now += 10 * 60_000
  redisForwarder.behaviour = 'forward'
  postgresForwarder.behaviour = 'forward'
  await redisAt(redis.url).del(catalogueEpochKey)
})

afterEach(() => vi.restoreAllMocks())

const away = { status: 503, body: '{"message":"away"}' } as const

function dependencies(values: Record<string, unknown> = {}) {
  const background: Promise<unknown>[] = []
  return {
    configuration: configuration({ LIMITS_TIMEOUT_MS: 20_000, ...values }),
    clock,
    database,
    redis: redisAt(redisForwarder.url),
    waitUntil: (work: Promise<unknown>) => void background.push(work),
    background,
  }
}

/** The rights of a key, for a test in which it has to be good. */
async function principalOf(caller: Caller, values: Record<string, unknown> = {}): Promise<Principal> {
  return known(await identify(dependencies(values), caller.key))
}

function known(identification: Identification): Principal {
  if (identification.kind === 'refused') throw new Error(`refused: ${identification.reason}`)
  return identification.principal
}

/** What a request does before its handler: who is it, may it call now, and is that still true? */
async function call(caller: Caller): Promise<Identification> {
  const deps = dependencies()
  const identification = await identify(deps, caller.key)
  if (identification.kind === 'refused') return identification
  const decision = await checkLimits(deps, identification.principal)
  const confirmed = await confirmRights(deps, caller.key, identification.principal, decision)
  if (confirmed.kind === 'known') await confirmCatalogueEpoch(deps, confirmed.principal, decision)
  await Promise.all(deps.background)
  return confirmed
}

/** Raises the epoch in Postgres as every change of rights does, and tells Redis of it unless told otherwise. */
async function raiseEpoch(
  caller: Caller,
  options: { publish: boolean } = { publish: true },
): Promise<number> {
  const [row] = await direct
    .update(organizations)
    .set({ epoch: sql`${organizations.epoch} + 1` })
    .where(eq(organizations.id, caller.organizationId))
    .returning({ epoch: organizations.epoch })
  const epoch = row?.epoch ?? 0
  if (options.publish)
    await publishEpoch(redisAt(redis.url), organizationEpochKey(caller.organizationId), epoch)
  return epoch
}

const revoke = (caller: Caller) =>
  direct.update(apiKeys).set({ revokedAt: new Date() }).where(eq(apiKeys.id, caller.keyId))

const memberOf = (caller: Caller) =>
  and(eq(memberships.organizationId, caller.organizationId), eq(memberships.userId, caller.userId))

const refused = (caller: Caller, reason: string) => ({
  kind: 'refused',
  reason,
  owner: { organizationId: caller.organizationId, userId: caller.userId, keyId: caller.keyId },
})

async function joinGroup(caller: Caller, groupOrganizationId: string, rowOrganizationId: string) {
  const groupId = randomUUID()
  await direct.insert(groups).values({ id: groupId, organizationId: groupOrganizationId, name: groupId })
  await direct
    .insert(groupMemberships)
    .values({ organizationId: rowOrganizationId, groupId, userId: caller.userId })
  return groupId
}

describe('the rights of a key', () => {
  it('come from the organization, its groups, the role and the user, and from no one else', async () => {
    const caller = await seedCaller(direct, { membership: { role: 'admin' } })
    const stranger = await seedCaller(direct, { membership: { role: 'admin' } })
    const { organizationId, userId } = caller
    const groupId = await joinGroup(caller, organizationId, organizationId)
    const foreignGroups = [
      await joinGroup(caller, stranger.organizationId, stranger.organizationId),
      await joinGroup(caller, stranger.organizationId, organizationId),
      await joinGroup(caller, organizationId, stranger.organizationId),
    ]
    const otherGroup = await joinGroup(stranger, organizationId, organizationId)

    await grant(direct, organizationId, 'organization', organizationId, 'by-organization')
    await grant(direct, organizationId, 'group', groupId, 'by-group')
    await grant(direct, organizationId, 'role', 'admin', 'by-role')
    await grant(direct, organizationId, 'user', userId, 'by-user')
    await grant(direct, organizationId, 'user', userId, 'by-organization')

    await grant(direct, organizationId, 'role', 'owner', 'other-role')
    await grant(direct, organizationId, 'user', stranger.userId, 'other-user')
    await grant(direct, organizationId, 'group', otherGroup, 'other-group')
    for (const id of foreignGroups) await grant(direct, organizationId, 'group', id, 'foreign-group')
    await grant(direct, organizationId, 'organization', stranger.organizationId, 'foreign-organization')
    await grant(direct, organizationId, 'role', userId, 'confused-subject')
    await grant(direct, stranger.organizationId, 'role', 'admin', 'foreign-role')
    await grant(direct, stranger.organizationId, 'user', userId, 'foreign-user-grant')

    const principal = await principalOf(caller)
    expect([...principal.models.ids].sort()).toEqual(['by-group', 'by-organization', 'by-role', 'by-user'])
    expect(principal.models.all).toBe(false)
    expect(principal.groupIds).toEqual([groupId])
    expect(principal.role).toBe('admin')
    expect(mayUse(principal, 'by-group')).toBe(true)
    expect(mayUse(principal, 'foreign-role')).toBe(false)
  })

  it('of a user in two organizations are those of the key’s organization', async () => {
    const caller = await seedCaller(direct)
    const other = await seedCaller(direct)
    await direct
      .insert(memberships)
      .values({ organizationId: other.organizationId, userId: caller.userId, role: 'owner' })
    await grant(direct, other.organizationId, 'user', caller.userId, 'elsewhere')
    const principal = await principalOf(caller)
    expect(principal).toMatchObject({ organizationId: caller.organizationId, role: 'member' })
    expect(principal.models.ids.size).toBe(0)

    const former = await seedCaller(direct, { membership: null })
    await direct
      .insert(memberships)
      .values({ organizationId: other.organizationId, userId: former.userId, role: 'owner' })
    expect(await identify(dependencies(), former.key)).toEqual(refused(former, 'disabled'))
  })

  it('hold every model with a grant on *', async () => {
    const caller = await seedCaller(direct)
    await grant(direct, caller.organizationId, 'organization', caller.organizationId, '*')
    const { models } = await principalOf(caller)
    expect(models).toEqual({ all: true, ids: new Set() })
  })

  it('hold the entitlements of the user and the scopes of the key', async () => {
    const caller = await seedCaller(direct, { key: { scopes: ['mcp', 'models', 'everything'] } })
    const bare = await seedCaller(direct, { key: { scopes: [] } })
    await direct.insert(entitlements).values([
      { organizationId: caller.organizationId, userId: caller.userId, name: 'personal_api_key_access' },
      { organizationId: caller.organizationId, userId: bare.userId, name: 'personal_api_key_access' },
    ])
    expect(await principalOf(caller)).toMatchObject({
      entitlements: ['personal_api_key_access'],
      scopes: ['models', 'mcp'],
    })
    expect(await principalOf(bare)).toMatchObject({ entitlements: [], scopes: [] })
  })

  it.each([
    ['the deployment’s', {}, {}, [6000, 600]],
    ['the organization’s', { rateLimitPerMinute: 50, userRateLimitPerMinute: 20 }, {}, [50, 20]],
    ['the user’s', { userRateLimitPerMinute: 20 }, { rateLimitPerMinute: 3 }, [6000, 3]],
    ['zero', { rateLimitPerMinute: 0, userRateLimitPerMinute: 9 }, { rateLimitPerMinute: 0 }, [0, 0]],
  ])('have %s limits', async (_name, organization, membership, expected) => {
    const principal = await principalOf(await seedCaller(direct, { organization, membership }))
    expect([principal.organizationLimitPerMinute, principal.userLimitPerMinute]).toEqual(expected)
  })

  it('are read in one query', async () => {
    const caller = await seedCaller(direct)
    postgresForwarder.requests = 0
    await principalOf(caller)
    expect(postgresForwarder.requests).toBe(1)
  })
})

describe('a refused key', () => {
  it('costs no query when it is malformed', async () => {
    postgresForwarder.behaviour = away
    postgresForwarder.requests = 0
    for (const text of ['', 'sk-something', `${createApiKey().key}x`]) {
      expect(await identify(dependencies(), text)).toEqual({
        kind: 'refused',
        reason: 'malformed',
        owner: null,
      })
    }
    expect(postgresForwarder.requests).toBe(0)
  })

  it('is told as unknown, revoked, expired or disabled, with its owner', async () => {
    const deps = dependencies()
    expect(await identify(deps, createApiKey().key)).toEqual({
      kind: 'refused',
      reason: 'unknown',
      owner: null,
    })
    const revoked = await seedCaller(direct, { key: { revokedAt: new Date(now - 1) } })
    expect(await identify(deps, revoked.key)).toEqual(refused(revoked, 'revoked'))
    const expired = await seedCaller(direct, { key: { expiresAt: new Date(now) } })
    expect(await identify(deps, expired.key)).toEqual(refused(expired, 'expired'))
    const disabledAt = new Date(now - 1)
    const disabledOnes = [
      await seedCaller(direct, { membership: { disabledAt } }),
      await seedCaller(direct, { organization: { disabledAt } }),
      await seedCaller(direct, { membership: null }),
    ]
    for (const caller of disabledOnes) {
      expect(await identify(deps, caller.key)).toEqual(refused(caller, 'disabled'))
    }
  })

  it('is not remembered: a key made or a user let in afterwards works at once', async () => {
    const caller = await seedCaller(direct, { membership: { disabledAt: new Date() } })
    expect((await call(caller)).kind).toBe('refused')
    await direct.update(memberships).set({ disabledAt: null }).where(memberOf(caller))
    expect((await call(caller)).kind).toBe('known')
  })
})

describe('an address whose keys keep being refused', () => {
  const unknownKeys = async (count: number, address: string | null) => {
    postgresForwarder.requests = 0
    const reasons: string[] = []
    for (let attempt = 0; attempt < count; attempt += 1) {
      const identification = await identify(dependencies(), createApiKey().key, { address })
      reasons.push(identification.kind === 'refused' ? identification.reason : identification.kind)
    }
    return { reasons, queries: postgresForwarder.requests }
  }

  it('gets five look-ups a second after sixty refusals, until the minute is over', async () => {
    const address = '192.0.2.10'
    expect(await unknownKeys(60, address)).toEqual({ reasons: Array(60).fill('unknown'), queries: 60 })
    const refused = await unknownKeys(100, address)
    expect(refused.queries).toBe(5)
    expect(refused.reasons.slice(5)).toEqual(Array(95).fill('unchecked'))
    expect(await identify(dependencies(), createApiKey().key, { address })).toEqual({
      kind: 'refused',
      reason: 'unchecked',
      owner: null,
    })
    now += 1_000
    expect((await unknownKeys(10, address)).queries).toBe(5)
    expect((await unknownKeys(10, '192.0.2.11')).queries).toBe(10)
    now += 59_000
    expect((await unknownKeys(20, address)).queries).toBe(20)
  })

  it('still gets in with keys that were good when last seen, and with a new one in the next second', async () => {
    const address = '192.0.2.20'
    const [known, fresh] = await Promise.all([seedCaller(direct), seedCaller(direct)])
    await identify(dependencies(), known.key, { address })
    await unknownKeys(80, address)
    now += 31_000
    await unknownKeys(10, address)
    expect((await identify(dependencies(), known.key, { address })).kind).toBe('known')
    expect(await identify(dependencies(), fresh.key, { address })).toMatchObject({ reason: 'unchecked' })
    now += 1_000
    expect((await identify(dependencies(), fresh.key, { address })).kind).toBe('known')
  })

  it('is not let in with a key that was good and is revoked', async () => {
    const address = '192.0.2.30'
    const caller = await seedCaller(direct)
    await identify(dependencies(), caller.key, { address })
    await direct
      .update(apiKeys)
      .set({ revokedAt: new Date(now) })
      .where(eq(apiKeys.id, caller.keyId))
    now += 30_000
    await unknownKeys(70, address)
    expect(await identify(dependencies(), caller.key, { address })).toEqual(refused(caller, 'revoked'))
    expect(await identify(dependencies(), caller.key, { address })).toMatchObject({ reason: 'unchecked' })
  })

  it('is a whole /64 of IPv6, while unknown addresses have a wider bound of their own', async () => {
    await unknownKeys(60, '2001:db8:0:1::1')
    expect((await unknownKeys(10, '2001:db8::1:ffff:0:0:2')).queries).toBe(5)
    expect((await unknownKeys(10, '2001:db8:0:2::1')).queries).toBe(10)
    expect((await unknownKeys(200, null)).queries).toBe(200)
  })

  it('is not one that sends malformed keys, nor one that waits for a database that is away', async () => {
    const address = '192.0.2.40'
    for (let attempt = 0; attempt < 100; attempt += 1) await identify(dependencies(), 'hg_x', { address })
    postgresForwarder.behaviour = away
    for (let attempt = 0; attempt < 70; attempt += 1) {
      await expect(identify(dependencies(), createApiKey().key, { address })).rejects.toThrow()
    }
    postgresForwarder.behaviour = 'forward'
    expect((await unknownKeys(10, address)).queries).toBe(10)
  })
})

describe('peppers', () => {
  it('that are old still find their keys, and those that are gone do not', async () => {
    const caller = await seedCaller(direct, { peppers: oldPepper })
    expect((await principalOf(caller)).keyId).toBe(caller.keyId)
    // A changed configuration comes with new isolates, which remember nothing.
    now += 30_000
    const identification = await identify(dependencies({ KEY_PEPPERS: currentPepper }), caller.key)
    expect(identification).toEqual({ kind: 'refused', reason: 'unknown', owner: null })
  })
})

describe('what an isolate remembers', () => {
  it('saves the query until IDENTITY_CACHE_MS have passed', async () => {
    const caller = await seedCaller(direct)
    const values = { IDENTITY_CACHE_MS: 5_000 }
    await principalOf(caller, values)
    postgresForwarder.requests = 0
    now += 4_999
    await principalOf(caller, values)
    expect(postgresForwarder.requests).toBe(0)
    now += 1
    await principalOf(caller, values)
    expect(postgresForwarder.requests).toBe(1)
    await identify(dependencies(values), caller.key, { fresh: true })
    expect(postgresForwarder.requests).toBe(2)
  })

  it('does not outlive the key', async () => {
    const caller = await seedCaller(direct, { key: { expiresAt: new Date(now + 10_000) } })
    expect((await call(caller)).kind).toBe('known')
    now += 9_999
    expect((await call(caller)).kind).toBe('known')
    now += 1
    postgresForwarder.requests = 0
    expect(await call(caller)).toEqual(refused(caller, 'expired'))
    expect(postgresForwarder.requests).toBe(0)
  })

  it('is dropped by a fresh look that finds the key revoked', async () => {
    const caller = await seedCaller(direct)
    await principalOf(caller)
    await revoke(caller)
    expect((await identify(dependencies(), caller.key)).kind).toBe('known')
    await identify(dependencies(), caller.key, { fresh: true })
    expect(await identify(dependencies(), caller.key)).toEqual(refused(caller, 'revoked'))
  })
})

describe('a change counts on the next call', () => {
  it('when a key is revoked', async () => {
    const caller = await seedCaller(direct)
    expect((await call(caller)).kind).toBe('known')
    await revoke(caller)
    await raiseEpoch(caller)
    expect(await call(caller)).toEqual(refused(caller, 'revoked'))
    expect(await call(caller)).toEqual(refused(caller, 'revoked'))
  })

  it('when a user is disabled or removed', async () => {
    for (const remove of [false, true]) {
      const caller = await seedCaller(direct)
      expect((await call(caller)).kind).toBe('known')
      if (remove) await direct.delete(memberships).where(memberOf(caller))
      else await direct.update(memberships).set({ disabledAt: new Date() }).where(memberOf(caller))
      await raiseEpoch(caller)
      expect(await call(caller)).toEqual(refused(caller, 'disabled'))
    }
  })

  it('when a role changes or a grant is taken away', async () => {
    const caller = await seedCaller(direct)
    await grant(direct, caller.organizationId, 'role', 'owner', 'large')
    await grant(direct, caller.organizationId, 'role', 'member', 'small')
    expect([...known(await call(caller)).models.ids]).toEqual(['small'])
    await direct.update(memberships).set({ role: 'owner' }).where(memberOf(caller))
    await raiseEpoch(caller)
    expect(known(await call(caller))).toMatchObject({ role: 'owner', models: { ids: new Set(['large']) } })
    await direct.delete(grants).where(eq(grants.organizationId, caller.organizationId))
    await raiseEpoch(caller)
    expect(known(await call(caller)).models.ids.size).toBe(0)
  })

  it('with Redis away', async () => {
    const caller = await seedCaller(direct)
    redisForwarder.behaviour = { status: 503, body: '{"error":"away"}' }
    expect((await call(caller)).kind).toBe('known')
    await revoke(caller)
    await raiseEpoch(caller, { publish: false })
    expect(await call(caller)).toEqual(refused(caller, 'revoked'))
  })

  it('with the epoch gone from Redis', async () => {
    const caller = await seedCaller(direct)
    expect((await call(caller)).kind).toBe('known')
    await revoke(caller)
    await raiseEpoch(caller, { publish: false })
    await redisAt(redis.url).del(organizationEpochKey(caller.organizationId))
    expect(await call(caller)).toEqual(refused(caller, 'revoked'))
  })

  it('within IDENTITY_CACHE_MS when Redis was not told', async () => {
    const caller = await seedCaller(direct)
    expect((await call(caller)).kind).toBe('known')
    await revoke(caller)
    await raiseEpoch(caller, { publish: false })
    now += 30_000
    expect(await call(caller)).toEqual(refused(caller, 'revoked'))
  })
})

describe('epochs in Redis', () => {
  it('are asked of Postgres once when missing, then found for at most a minute', async () => {
    const caller = await seedCaller(direct)
    postgresForwarder.requests = 0
    await call(caller)
    // The key's rights, then both epochs; neither equal epochs nor the catalogue's need a third query.
    expect(postgresForwarder.requests).toBe(2)
    const key = organizationEpochKey(caller.organizationId)
    const client = redisAt(redis.url)
    expect(await client.get(key)).toBe(1)
    for (const kept of [key, catalogueEpochKey]) {
      const lifetime = await client.pttl(kept)
      expect(lifetime).toBeGreaterThan(0)
      expect(lifetime).toBeLessThanOrEqual(60_000)
    }
    postgresForwarder.requests = 0
    redisForwarder.requests = 0
    await call(caller)
    expect([postgresForwarder.requests, redisForwarder.requests]).toEqual([0, 1])
  })

  it('are only ever raised, whoever comes late', async () => {
    const key = organizationEpochKey(randomUUID())
    const client = redisAt(redis.url)
    await publishEpoch(client, key, 5)
    await publishEpoch(client, key, 3)
    expect(await client.get(key)).toBe(5)
    await Promise.all([9, 2, 10, 7, 1, 6].map((epoch) => publishEpoch(redisAt(redis.url), key, epoch)))
    expect(await client.get(key)).toBe(10)
  })

  it('that are older than a fresh principal are raised, and the principal stays', async () => {
    const caller = await seedCaller(direct, { organization: { epoch: 8 } })
    const key = organizationEpochKey(caller.organizationId)
    await publishEpoch(redisAt(redis.url), key, 7)
    expect(known(await call(caller)).epoch).toBe(8)
    expect(await redisAt(redis.url).get(key)).toBe(8)
  })

  it('that are ahead of a Postgres restored from a backup cost a query and lock nobody out', async () => {
    const caller = await seedCaller(direct, { organization: { epoch: 4 } })
    await publishEpoch(redisAt(redis.url), organizationEpochKey(caller.organizationId), 900)
    expect(known(await call(caller)).epoch).toBe(4)
    await revoke(caller)
    await raiseEpoch(caller)
    expect(await call(caller)).toEqual(refused(caller, 'revoked'))
  })

  it('that cannot be written do not fail the call', async () => {
    const caller = await seedCaller(direct)
    const deps = dependencies()
    const principal = known(await identify(deps, caller.key))
    const decision = await checkLimits(deps, principal)
    redisForwarder.behaviour = { status: 503, body: '{"error":"away"}' }
    expect((await confirmRights(deps, caller.key, principal, decision)).kind).toBe('known')
    await expect(Promise.all(deps.background)).resolves.toHaveLength(1)
  })

  it('are not written while Redis is away', async () => {
    const caller = await seedCaller(direct)
    const deps = dependencies()
    const principal = known(await identify(deps, caller.key))
    const evidence = { epochs: { organization: null, catalogue: null }, degraded: true }
    expect((await confirmRights(deps, caller.key, principal, evidence)).kind).toBe('known')
    expect(deps.background).toHaveLength(0)
  })

  it('tell of the catalogue, from Postgres when Redis has none', async () => {
    const caller = await seedCaller(direct)
    const deps = dependencies()
    const principal = known(await identify(deps, caller.key))
    const missing = () => ({ epochs: { organization: 1, catalogue: null }, degraded: false })
    await direct.delete(deploymentEpochs)
    expect(await confirmCatalogueEpoch(deps, principal, missing())).toBe(1)
    await direct.insert(deploymentEpochs).values({ name: 'catalogue', epoch: 12 })
    expect(await confirmCatalogueEpoch(deps, principal, missing())).toBe(12)
    await Promise.all(deps.background)
    expect(await redisAt(redis.url).get(catalogueEpochKey)).toBe(12)
    const found = { epochs: { organization: 1, catalogue: 12 }, degraded: false }
    postgresForwarder.behaviour = away
    expect(await confirmCatalogueEpoch(deps, principal, found)).toBe(12)
  })
})

describe('Postgres away', () => {
  it('lets in only who is remembered and confirmed by Redis', async () => {
    const warm = await seedCaller(direct)
    const cold = await seedCaller(direct)
    await call(warm)
    postgresForwarder.behaviour = away
    expect((await call(warm)).kind).toBe('known')
    await expect(call(cold)).rejects.toThrow()
    await expect(identify(dependencies(), warm.key, { fresh: true })).rejects.toThrow()
    now += 30_000
    await expect(call(warm)).rejects.toThrow()
  })

  it('lets nobody in when Redis has no epoch, another one, or is away', async () => {
    const caller = await seedCaller(direct)
    const key = organizationEpochKey(caller.organizationId)
    await call(caller)
    postgresForwarder.behaviour = away
    await publishEpoch(redisAt(redis.url), key, 2)
    await expect(call(caller)).rejects.toThrow()
    await redisAt(redis.url).del(key)
    await expect(call(caller)).rejects.toThrow()
    redisForwarder.behaviour = { status: 503, body: '{"error":"away"}' }
    await expect(call(caller)).rejects.toThrow()
  })

  it('is an error, never a refusal, when nothing listens', async () => {
    const caller = await seedCaller(direct)
    const deps = { ...dependencies(), database: databaseAt(await unusedUrl()) }
    await expect(identify(deps, caller.key)).rejects.toThrow()
    expect((await identify(dependencies(), caller.key)).kind).toBe('known')
  })
})
