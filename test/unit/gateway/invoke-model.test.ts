import { afterEach, describe, expect, it, vi } from 'vitest'
import { MOST_DECISIONS } from '../../../src/calls/renew-rights.ts'
import type { KeyRights } from '../../../src/identity/identity.store.ts'
import { CATALOGUE_EPOCH, IDENTITY, TurnWorld, thrownBy, user } from './model-turn-harness.ts'

afterEach(() => vi.unstubAllGlobals())

const HI = { model: 'chat-model', input: [user('Hi')] }

/** The rights of a member, as Postgres has them. */
const rightsOf = (organizationId: string, values: Partial<KeyRights> = {}): KeyRights => ({
  keyId: 'aaaaaaaaaaaa',
  scopes: ['models'],
  compatibility: 'headgate',
  expiresAt: null,
  revokedAt: null,
  organizationId,
  userId: 'u',
  organizationDisabledAt: null,
  role: 'member',
  membershipDisabledAt: null,
  groupIds: [],
  entitlements: [],
  grantedModels: ['chat-model'],
  grantedIntegrations: [],
  organizationLimit: null,
  organizationUserLimit: null,
  membershipLimit: null,
  ledgerShards: 1,
  toolSettings: null,
  epoch: 2,
  ...values,
})

/** A world whose ledger has a newer epoch than the rights of callers. */
function changedWorld(values: Partial<KeyRights> | null): TurnWorld {
  const world = new TurnWorld([])
  world.ledger.epochs.organization = 2
  world.postgres.rights = values && rightsOf(world.organizationId, values)
  return world
}

describe('an admission', () => {
  it('carries the epochs at which rights and catalogue were read', async () => {
    const world = new TurnWorld([])
    const { planned } = await world.admit(HI)
    expect(world.ledger.opened[0]?.epochs).toEqual({ organization: 1, catalogue: CATALOGUE_EPOCH })
    expect(planned.rights.principal.epoch).toBe(1)
  })

  it('under changed rights is decided by those', async () => {
    const world = changedWorld({})
    const { planned } = await world.admit(HI)
    expect(world.ledger.opened).toHaveLength(1)
    expect(world.ledger.opened[0]?.epochs.organization).toBe(2)
    expect(planned.rights.principal.models).toEqual({ all: false, ids: new Set(['chat-model']) })
  })

  it('is refused when they no longer include the model, and recorded once', async () => {
    const world = changedWorld({ grantedModels: ['other'] })
    expect(await thrownBy(() => world.admit(HI))).toMatchObject({ status: 403, code: 'model_access_denied' })
    expect(world.ledger.opened).toEqual([])
    expect(world.ledger.recorded.map(({ outcome }) => outcome.errorCode)).toEqual(['model_access_denied'])
  })

  it('succeeds where they include the model that they did not before', async () => {
    const principal = await anyPrincipal()
    const other = changedWorld({})
    const { organizationId } = other
    const poor = { ...principal, organizationId, models: { all: false, ids: new Set<string>() } }
    await other.admit(HI, { principal: poor })
    expect(other.ledger.opened).toHaveLength(1)
    expect(other.ledger.recorded).toEqual([])
  })

  it.each([
    ['is revoked', { revokedAt: new Date(0) }, 'key_revoked'],
    ['is gone', null, 'key_revoked'],
    ['is of a disabled user', { membershipDisabledAt: new Date(0) }, 'access_disabled'],
  ])('is refused for a key that %s, and nothing is opened', async (_name, values, code) => {
    const world = changedWorld(values)
    expect(await thrownBy(() => world.admit(HI))).toMatchObject({ status: 401, code })
    expect([world.ledger.opened, world.ledger.recorded]).toEqual([[], []])
  })

  it('is planned with the current catalogue', async () => {
    const world = new TurnWorld([])
    await world.admit(HI)
    const later = new TurnWorld([])
    const epoch = CATALOGUE_EPOCH + 1
    later.ledger.epochs.catalogue = epoch
    const removed = later.postgres.catalogue.filter(({ id }) => id !== 'chat-model')
    Object.assign(later.postgres, { catalogueEpoch: epoch, catalogue: removed })
    expect(await thrownBy(() => later.admit(HI))).toMatchObject({ status: 400, code: 'model_not_found' })
    await later.admit({ ...HI, model: 'both-model' }, { identity: { ...IDENTITY, callId: 'other' } })
    expect(later.ledger.opened[0]?.epochs.catalogue).toBe(epoch)
  })

  it('under rights that keep changing ends as a fault of the gateway', async () => {
    const world = changedWorld({ epoch: 1 })
    const error = await thrownBy(() => world.admit(HI))
    expect(error).toMatchObject({ name: 'ApiError', status: 500 })
    expect([world.ledger.opened, world.ledger.recorded]).toEqual([[], []])
    expect(world.ledger.asked).toBeLessThanOrEqual(MOST_DECISIONS)
  })

  it('is refused when the ledger cannot store it', async () => {
    await anyPrincipal()
    const world = new TurnWorld([])
    world.ledger.away = true
    await expect(world.admit(HI)).rejects.toThrow('cannot be reached')
  })

  it('beyond a limit is refused before its credits are', async () => {
    const world = new TurnWorld([])
    world.ledger.available = 0
    const limited = { principal: { ...(await anyPrincipal()), userLimitPerMinute: 0 } }
    expect(await thrownBy(() => world.admit(HI, limited))).toMatchObject({
      status: 429,
      retryAfterSeconds: 7,
    })
    expect(await thrownBy(() => world.admit(HI, { identity: { ...IDENTITY, callId: 'b' } }))).toMatchObject({
      status: 429,
      retryAfterSeconds: 60,
      message: expect.stringContaining('Add credits.'),
    })
    expect(world.ledger.recorded).toHaveLength(2)
  })
})

const anyPrincipal = async () => (await new TurnWorld([]).admit(HI)).planned.rights.principal
