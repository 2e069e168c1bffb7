import { describe, expect, it } from 'vitest'
import { entitlements, memberships } from '../../../schema/identity.ts'
import { mayUse } from '../../../src/calls/access.ts'
import { modelTarget } from '../../../src/calls/target.ts'
import { createApiKey } from '../../../src/identity/api-key.ts'
import { identify, renewPrincipal } from '../../../src/identity/identify.ts'
import { hasScope, keyIdOf } from '../../../src/identity/principal.ts'
import { currentPepper, databaseAt, grant, oldPepper, seedCaller } from '../calls/fixtures.ts'
import { unusedUrl } from '../calls/stand-ins.ts'
import { away, known, memberOf, RightsWorld, refused } from './rights-harness.ts'

const world = RightsWorld.forFile()

describe('the rights of a key', () => {
  it('come from the organization, its groups, the role and the user, and from no one else', async () => {
    const caller = await seedCaller(world.direct, { membership: { role: 'admin' } })
    const stranger = await seedCaller(world.direct, { membership: { role: 'admin' } })
    const { organizationId, userId } = caller
    const groupId = await world.joinGroup(caller, organizationId, organizationId)
    const foreignGroups = [
      await world.joinGroup(caller, stranger.organizationId, stranger.organizationId),
      await world.joinGroup(caller, stranger.organizationId, organizationId),
      await world.joinGroup(caller, organizationId, stranger.organizationId),
    ]
    const otherGroup = await world.joinGroup(stranger, organizationId, organizationId)

    await grant(world.direct, organizationId, 'organization', organizationId, 'by-organization')
    await grant(world.direct, organizationId, 'group', groupId, 'by-group')
    await grant(world.direct, organizationId, 'role', 'admin', 'by-role')
    await grant(world.direct, organizationId, 'user', userId, 'by-user')
    await grant(world.direct, organizationId, 'user', userId, 'by-organization')

    await grant(world.direct, organizationId, 'role', 'owner', 'other-role')
    await grant(world.direct, organizationId, 'user', stranger.userId, 'other-user')
    await grant(world.direct, organizationId, 'group', otherGroup, 'other-group')
    for (const id of foreignGroups) await grant(world.direct, organizationId, 'group', id, 'foreign-group')
    await grant(world.direct, organizationId, 'organization', stranger.organizationId, 'foreign-organization')
    await grant(world.direct, organizationId, 'role', userId, 'confused-subject')
    await grant(world.direct, stranger.organizationId, 'role', 'admin', 'foreign-role')
    await grant(world.direct, stranger.organizationId, 'user', userId, 'foreign-user-grant')

    const principal = await world.principalOf(caller)
    expect([...principal.models.ids].sort()).toEqual(['by-group', 'by-organization', 'by-role', 'by-user'])
    expect(principal.models.all).toBe(false)
    expect(principal.groupIds).toEqual([groupId])
    expect(principal.role).toBe('admin')
    expect(mayUse(principal, modelTarget('by-group'))).toBe(true)
    expect(mayUse(principal, modelTarget('foreign-role'))).toBe(false)
  })

  it('of a user in two organizations are those of the key’s organization', async () => {
    const caller = await seedCaller(world.direct)
    const other = await seedCaller(world.direct)
    await world.direct
      .insert(memberships)
      .values({ organizationId: other.organizationId, userId: caller.userId, role: 'owner' })
    await grant(world.direct, other.organizationId, 'user', caller.userId, 'elsewhere')
    const principal = await world.principalOf(caller)
    expect(principal).toMatchObject({ organizationId: caller.organizationId, role: 'member' })
    expect(principal.models.ids.size).toBe(0)

    const former = await seedCaller(world.direct, { membership: null })
    await world.direct
      .insert(memberships)
      .values({ organizationId: other.organizationId, userId: former.userId, role: 'owner' })
    expect(await identify(world.deps(), former.key, null)).toEqual(refused(former, 'disabled'))
  })

  it('hold every model with a grant on *', async () => {
    const caller = await seedCaller(world.direct)
    await grant(world.direct, caller.organizationId, 'organization', caller.organizationId, '*')
    const { models } = await world.principalOf(caller)
    expect(models).toEqual({ all: true, ids: new Set() })
  })

  it('hold the entitlements of the user and the scopes of the key', async () => {
    const caller = await seedCaller(world.direct, { key: { scopes: ['mcp', 'models', 'everything'] } })
    const bare = await seedCaller(world.direct, { key: { scopes: [] } })
    await world.direct.insert(entitlements).values([
      { organizationId: caller.organizationId, userId: caller.userId, name: 'personal_api_key_access' },
      { organizationId: caller.organizationId, userId: bare.userId, name: 'personal_api_key_access' },
    ])
    const principal = await world.principalOf(caller)
    expect(principal).toMatchObject({
      entitlements: ['personal_api_key_access'],
      credential: {
        kind: 'key',
        keyId: caller.keyId,
        scopes: ['models', 'mcp'],
        compatibility: 'headgate',
        expiresAt: null,
      },
    })
    expect([hasScope(principal, 'mcp'), hasScope(principal, 'agents')]).toEqual([true, false])
    const none = await world.principalOf(bare)
    expect(none).toMatchObject({ entitlements: [], credential: { scopes: [] } })
    expect(hasScope(none, 'models')).toBe(false)
  })

  it.each([
    ['the deployment’s', {}, {}, [6000, 600]],
    ['the organization’s', { rateLimitPerMinute: 50, userRateLimitPerMinute: 20 }, {}, [50, 20]],
    ['the user’s', { userRateLimitPerMinute: 20 }, { rateLimitPerMinute: 3 }, [6000, 3]],
    ['zero', { rateLimitPerMinute: 0, userRateLimitPerMinute: 9 }, { rateLimitPerMinute: 0 }, [0, 0]],
  ])('have %s limits', async (_name, organization, membership, expected) => {
    const principal = await world.principalOf(await seedCaller(world.direct, { organization, membership }))
    expect([principal.organizationLimitPerMinute, principal.userLimitPerMinute]).toEqual(expected)
  })

  it('are read in one query', async () => {
    const caller = await seedCaller(world.direct)
    world.postgres.requests = 0
    await world.principalOf(caller)
    expect(world.postgres.requests).toBe(1)
  })
})

describe('a refused key', () => {
  it('costs no query when it is malformed', async () => {
    world.postgres.behaviour = away
    world.postgres.requests = 0
    for (const text of ['', 'sk-something', `${createApiKey().key}x`]) {
      expect(await identify(world.deps(), text, null)).toEqual({
        kind: 'refused',
        reason: 'malformed',
        owner: null,
      })
    }
    expect(world.postgres.requests).toBe(0)
  })

  it('is told as unknown, revoked, expired or disabled, with its owner', async () => {
    const deps = world.deps()
    expect(await identify(deps, createApiKey().key, null)).toEqual({
      kind: 'refused',
      reason: 'unknown',
      owner: null,
    })
    const revoked = await seedCaller(world.direct, { key: { revokedAt: new Date(world.now - 1) } })
    expect(await identify(deps, revoked.key, null)).toEqual(refused(revoked, 'revoked'))
    const expired = await seedCaller(world.direct, { key: { expiresAt: new Date(world.now) } })
    expect(await identify(deps, expired.key, null)).toEqual(refused(expired, 'expired'))
    const disabledAt = new Date(world.now - 1)
    const disabledOnes = [
      await seedCaller(world.direct, { membership: { disabledAt } }),
      await seedCaller(world.direct, { organization: { disabledAt } }),
      await seedCaller(world.direct, { membership: null }),
    ]
    for (const caller of disabledOnes) {
      expect(await identify(deps, caller.key, null)).toEqual(refused(caller, 'disabled'))
    }
  })

  it('is not remembered: a key made or a user let in afterwards works at once', async () => {
    const caller = await seedCaller(world.direct, { membership: { disabledAt: new Date() } })
    expect((await identify(world.deps(), caller.key, null)).kind).toBe('refused')
    await world.direct.update(memberships).set({ disabledAt: null }).where(memberOf(caller))
    expect((await identify(world.deps(), caller.key, null)).kind).toBe('known')
  })
})

describe('peppers', () => {
  it('that are old still find their keys, and those that are gone do not', async () => {
    const caller = await seedCaller(world.direct, { peppers: oldPepper })
    expect(keyIdOf(await world.principalOf(caller))).toBe(caller.keyId)
    // A changed configuration comes with new isolates, which remember nothing.
    world.now += 30_000
    const identification = await identify(world.deps({ KEY_PEPPERS: currentPepper }), caller.key, null)
    expect(identification).toEqual({ kind: 'refused', reason: 'unknown', owner: null })
  })
})

describe('what an isolate remembers', () => {
  it('saves the query until IDENTITY_CACHE_MS have passed', async () => {
    const caller = await seedCaller(world.direct)
    const values = { IDENTITY_CACHE_MS: 5_000 }
    await world.principalOf(caller, values)
    world.postgres.requests = 0
    world.now += 4_999
    await world.principalOf(caller, values)
    expect(world.postgres.requests).toBe(0)
    world.now += 1
    await world.principalOf(caller, values)
    expect(world.postgres.requests).toBe(1)
    await renewPrincipal(world.deps(values), known(await identify(world.deps(values), caller.key, null)))
    expect(world.postgres.requests).toBe(2)
  })

  it('does not outlive the key', async () => {
    const caller = await seedCaller(world.direct, { key: { expiresAt: new Date(world.now + 10_000) } })
    expect((await identify(world.deps(), caller.key, null)).kind).toBe('known')
    world.now += 9_999
    expect((await identify(world.deps(), caller.key, null)).kind).toBe('known')
    world.now += 1
    world.postgres.requests = 0
    expect(await identify(world.deps(), caller.key, null)).toEqual(refused(caller, 'expired'))
    expect(world.postgres.requests).toBe(0)
  })

  it('is what was read last, whoever had it read', async () => {
    const caller = await seedCaller(world.direct)
    const before = await world.principalOf(caller)
    await world.raiseEpoch(caller)
    const renewed = known(await renewPrincipal(world.deps(), before))
    expect(renewed.epoch).toBe(before.epoch + 1)
    world.postgres.requests = 0
    expect(await world.principalOf(caller)).toEqual(renewed)
    expect(world.postgres.requests).toBe(0)
  })

  it('is dropped by a renewal that finds the key revoked', async () => {
    const caller = await seedCaller(world.direct)
    const principal = await world.principalOf(caller)
    await world.revoke(caller)
    expect((await identify(world.deps(), caller.key, null)).kind).toBe('known')
    expect(await renewPrincipal(world.deps(), principal)).toEqual(refused(caller, 'revoked'))
    expect(await identify(world.deps(), caller.key, null)).toEqual(refused(caller, 'revoked'))
  })
})

describe('Postgres away', () => {
  it('is an error, never a refusal, when nothing listens', async () => {
    const caller = await seedCaller(world.direct)
    const deps = { ...world.deps(), database: databaseAt(await unusedUrl()) }
    await expect(identify(deps, caller.key, null)).rejects.toThrow()
    expect((await identify(world.deps(), caller.key, null)).kind).toBe('known')
  })
})
