import { eq } from 'drizzle-orm'
import { beforeEach, describe, expect, it } from 'vitest'
import { memberships, organizations } from '../../../schema/identity.ts'
import { deploymentEpochs, grants } from '../../../schema/models.ts'
import { admit, type CallerRights, type Stale } from '../../../src/calls/governed-call.ts'
import { MOST_DECISIONS, renewRights } from '../../../src/calls/renew-rights.ts'
import { identify } from '../../../src/identity/identify.ts'
import type { CallerCredential, Principal } from '../../../src/identity/principal.ts'
import { ApiError } from '../../../src/lib/api-error.ts'
import { away, memberOf, RightsWorld } from '../identity/rights-harness.ts'
import { MemoryLedger, someOpening } from '../ledger/memory-ledger.ts'
import { type Caller, grant, seedCaller } from './fixtures.ts'

const world = RightsWorld.forFile()
let ledger: MemoryLedger
let calls = 0

beforeEach(async () => {
  ledger = new MemoryLedger()
  await world.direct.delete(deploymentEpochs)
})

/** What a call does before it is sent. @returns whose it is, or why it is refused. @throws what Postgres or the ledger throws. */
async function call(caller: Caller, catalogueEpoch: number | null = null): Promise<Principal | string> {
  const identification = await identify(world.deps(), caller.key, null)
  if (identification.kind === 'refused') return identification.reason
  return admitted({ principal: identification.principal, catalogueEpoch, learned: null })
}

/** Has a call admitted, whose rights are renewed as often as the ledger calls them stale. */
async function admitted(known: CallerRights): Promise<Principal | string> {
  const deps = { ...world.deps(), ledgerOf: ledger.of }
  const {
    organizationId: _organization,
    modelId: _model,
    ...identity
  } = someOpening({ callId: `call ${calls++}` })
  const free = {
    identity,
    target: null,
    reserve: 0,
    leaseMilliseconds: 1,
    estimate: null,
    counted: true,
    advice: '',
  }
  let rights = known
  for (let admissions = 0; admissions < MOST_DECISIONS; admissions++) {
    const admission = await admit(deps, { ...free, rights })
    if (admission.kind === 'admitted') return rights.principal
    if (admission.kind === 'refused') throw admission.error
    try {
      rights = await renewRights(world.deps(), rights, admission)
    } catch (error) {
      if (error instanceof ApiError && error.code) return error.code
      throw error
    }
  }
  return 'keeps changing'
}

/** Raises the epoch and tells the ledger of it, as the management API does after each change of rights. */
async function announceChange(caller: Caller): Promise<void> {
  ledger.epochs.organization = await world.raiseEpoch(caller)
}

const modelsOf = (principal: Principal | string) =>
  typeof principal === 'string' ? principal : [...principal.models.ids]

/** Queries to Postgres while something is done. */
async function queriesOf(work: () => Promise<unknown>): Promise<number> {
  world.postgres.requests = 0
  await work()
  return world.postgres.requests
}

describe('a change counts on the next call', () => {
  it('when a key is revoked', async () => {
    const caller = await seedCaller(world.direct)
    expect(await call(caller)).toMatchObject({ epoch: 1 })
    await world.revoke(caller)
    await announceChange(caller)
    expect(await call(caller)).toBe('key_revoked')
    expect(await call(caller)).toBe('revoked')
    expect(ledger.opened).toHaveLength(1)
  })

  it('when a user is disabled or removed, or the organization is', async () => {
    const disabledAt = new Date()
    const changes: Array<(caller: Caller) => PromiseLike<unknown>> = [
      (caller) => world.direct.delete(memberships).where(memberOf(caller)),
      (caller) => world.direct.update(memberships).set({ disabledAt }).where(memberOf(caller)),
      ({ organizationId }) =>
        world.direct.update(organizations).set({ disabledAt }).where(eq(organizations.id, organizationId)),
    ]
    for (const change of changes) {
      ledger = new MemoryLedger()
      const caller = await seedCaller(world.direct)
      expect(await call(caller)).toMatchObject({ epoch: 1 })
      await change(caller)
      await announceChange(caller)
      expect(await call(caller)).toBe('access_disabled')
      expect(await call(caller)).toBe('disabled')
    }
  })

  it('when a role changes or a grant is taken away', async () => {
    const caller = await seedCaller(world.direct)
    await grant(world.direct, caller.organizationId, 'role', 'owner', 'large')
    await grant(world.direct, caller.organizationId, 'role', 'member', 'small')
    expect(modelsOf(await call(caller))).toEqual(['small'])
    await world.direct.update(memberships).set({ role: 'owner' }).where(memberOf(caller))
    await announceChange(caller)
    expect(await call(caller)).toMatchObject({ role: 'owner', models: { ids: new Set(['large']) } })
    await world.direct.delete(grants).where(eq(grants.organizationId, caller.organizationId))
    await announceChange(caller)
    expect(modelsOf(await call(caller))).toEqual([])
  })

  it('when the ledger was not told, but knows nothing', async () => {
    const caller = await seedCaller(world.direct)
    expect(await call(caller)).toMatchObject({ epoch: 1 })
    await world.revoke(caller)
    await world.raiseEpoch(caller)
    ledger.epochs.organization = null
    expect(await call(caller)).toBe('key_revoked')
  })

  it('within IDENTITY_CACHE_MS when the ledger was not told and believes what it knows', async () => {
    const caller = await seedCaller(world.direct)
    expect(await call(caller)).toMatchObject({ epoch: 1 })
    await world.revoke(caller)
    await world.raiseEpoch(caller)
    world.now += 30_000
    expect(await call(caller)).toBe('revoked')
  })
})

describe('what a renewal asks of Postgres', () => {
  it('is nothing while the ledger knows the epochs', async () => {
    const caller = await seedCaller(world.direct)
    expect(await queriesOf(() => call(caller, 1))).toBe(1)
    ledger.asked = 0
    expect(await queriesOf(() => call(caller, 1))).toBe(0)
    expect(ledger.asked).toBe(1)
  })

  it('is both epochs in one query when the ledger does not know one, which is told to it with the next admission', async () => {
    await world.direct.insert(deploymentEpochs).values({ name: 'catalogue', epoch: 12 })
    for (const organization of [null, 1]) {
      ledger = new MemoryLedger()
      Object.assign(ledger.epochs, { organization, catalogue: null })
      const caller = await seedCaller(world.direct)
      expect(await queriesOf(() => call(caller, 12))).toBe(2)
      expect(ledger.opened[0]?.learned).toEqual({ organization: 1, catalogue: 12 })
      expect(ledger.epochs).toEqual({ organization: 1, catalogue: 12 })
      expect(await queriesOf(() => call(caller, 12))).toBe(0)
    }
  })

  it('is nothing of the catalogue for a call that does not use it', async () => {
    const caller = await seedCaller(world.direct)
    ledger.epochs.catalogue = null
    expect(await queriesOf(() => call(caller))).toBe(1)
    expect(ledger.opened[0]?.epochs).toEqual({ organization: 1, catalogue: null })
    ledger.epochs.organization = null
    expect(await queriesOf(() => call(caller))).toBe(1)
    expect(ledger.opened[1]?.learned).toEqual({ organization: 1, catalogue: null })
  })

  it('is the rights alone when the ledger knows another epoch', async () => {
    const caller = await seedCaller(world.direct)
    await call(caller)
    await announceChange(caller)
    expect(await queriesOf(() => call(caller))).toBe(1)
    expect(ledger.opened[1]?.epochs).toEqual({ organization: 2, catalogue: null })
  })

  it('is nothing when only the catalogue changed, whose epoch is the one to read it at', async () => {
    const caller = await seedCaller(world.direct)
    const principal = await world.principalOf(caller)
    const stale: Stale = { kind: 'stale', organization: 1, catalogue: 9 }
    const rights = { principal, catalogueEpoch: 8, learned: null }
    expect(await queriesOf(() => renewRights(world.deps(), rights, stale))).toBe(0)
    expect(await renewRights(world.deps(), rights, stale)).toEqual({
      principal,
      catalogueEpoch: 9,
      learned: null,
    })
  })

  it('tells the first epoch of a catalogue that never changed', async () => {
    const principal = await world.principalOf(await seedCaller(world.direct))
    const stale: Stale = { kind: 'stale', organization: null, catalogue: null }
    const renewed = await renewRights(world.deps(), { principal, catalogueEpoch: 1, learned: null }, stale)
    expect(renewed).toEqual({ principal, catalogueEpoch: 1, learned: { organization: 1, catalogue: 1 } })
  })
})

describe('epochs of the ledger', () => {
  it('that are older than a fresh principal are raised, and the principal stays', async () => {
    const caller = await seedCaller(world.direct, { organization: { epoch: 8 } })
    ledger.epochs.organization = 7
    expect(await call(caller)).toMatchObject({ epoch: 8 })
    expect(ledger.epochs.organization).toBe(8)
  })

  it('ahead of a Postgres restored from a backup admit no call until the ledger drops them', async () => {
    const caller = await seedCaller(world.direct, { organization: { epoch: 4 } })
    ledger.epochs.organization = 900
    expect(await call(caller)).toBe('keeps changing')
    ledger.epochs.organization = null
    expect(await call(caller)).toMatchObject({ epoch: 4 })
    await world.revoke(caller)
    await announceChange(caller)
    expect(await call(caller)).toBe('key_revoked')
  })
})

describe('an organization that is gone', () => {
  it('admits no caller, whatever epoch the ledger has', async () => {
    for (const organization of [null, 2]) {
      const principal = { ...(await world.principalOf(await seedCaller(world.direct))) }
      const gone = { ...principal, organizationId: crypto.randomUUID() }
      const stale: Stale = { kind: 'stale', organization, catalogue: null }
      const rights = { principal: gone, catalogueEpoch: null, learned: null }
      await expect(renewRights(world.deps(), rights, stale)).rejects.toMatchObject({
        status: 401,
        code: 'key_revoked',
      })
    }
  })
})

describe('the rights of a caller without a key', () => {
  const CREDENTIALS: CallerCredential[] = [
    { kind: 'session', sessionId: 's' },
    { kind: 'run', runId: 'r' },
  ]

  it.each(CREDENTIALS)('are those of its user, $kind', async (credential) => {
    const caller = await seedCaller(world.direct)
    const { organizationId, userId } = caller
    const principal = { ...(await world.principalOf(caller)), credential }
    // With a key or without: the key does not contain the user.
    await world.revoke(caller)
    await grant(world.direct, organizationId, 'user', userId, 'some-model')
    await world.direct.update(memberships).set({ role: 'admin' }).where(memberOf(caller))
    await announceChange(caller)
    const renewed = await admitted({ principal, catalogueEpoch: null, learned: null })
    expect(renewed).toMatchObject({ organizationId, userId, credential, role: 'admin', epoch: 2 })
    expect(modelsOf(renewed)).toEqual(['some-model'])
    await world.direct.update(memberships).set({ disabledAt: new Date() }).where(memberOf(caller))
    await announceChange(caller)
    expect(await admitted({ principal, catalogueEpoch: null, learned: null })).toBe('access_disabled')
    await world.direct.delete(memberships).where(memberOf(caller))
    expect(await admitted({ principal, catalogueEpoch: null, learned: null })).toBe('access_disabled')
  })
})

describe('a key that expires', () => {
  it('is refused by a renewal as well, and by its time alone', async () => {
    const caller = await seedCaller(world.direct, { key: { expiresAt: new Date(world.now + 10_000) } })
    const principal = await world.principalOf(caller)
    await announceChange(caller)
    world.now += 10_000
    expect(await admitted({ principal, catalogueEpoch: null, learned: null })).toBe('key_expired')
  })
})

describe('Postgres away', () => {
  it('lets in only who is remembered and confirmed by the ledger', async () => {
    const warm = await seedCaller(world.direct)
    const cold = await seedCaller(world.direct)
    await call(warm)
    world.postgres.behaviour = away
    expect(await call(warm)).toMatchObject({ epoch: 1 })
    await expect(call(cold)).rejects.toThrow()
    world.now += 30_000
    await expect(call(warm)).rejects.toThrow()
  })

  it('admits no call if the ledger has no epoch, another one, or is away', async () => {
    const caller = await seedCaller(world.direct)
    await call(caller)
    world.postgres.behaviour = away
    ledger.epochs.organization = 2
    await expect(call(caller)).rejects.toThrow()
    ledger.epochs.organization = null
    await expect(call(caller)).rejects.toThrow()
    Object.assign(ledger.epochs, { organization: 1, catalogue: null })
    await expect(call(caller, 1)).rejects.toThrow()
    ledger.away = true
    await expect(call(caller)).rejects.toThrow()
    expect(ledger.opened).toHaveLength(1)
  })
})
