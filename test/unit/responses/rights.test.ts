import { randomUUID } from 'node:crypto'
import { eq, sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { apiKeys, memberships, organizations } from '../../../schema/identity.ts'
import { deploymentEpochs } from '../../../schema/models.ts'
import type { Database } from '../../../src/deps.ts'
import { currentRights } from '../../../src/responses/rights.ts'
import { type Caller, configuration, databaseAt, grant, seedCaller } from '../governance/fixtures.ts'
import { type Service, unusedUrl } from '../governance/stand-ins.ts'
import { startStore } from './store-harness.ts'

const NOW = Date.UTC(2026, 10, 21, 12, 0)

let service: Service
let database: Database

beforeAll(async () => {
  ;({ service, database } = await startStore())
})
afterAll(() => service?.close())

const rightsOf = (caller: Pick<Caller, 'organizationId' | 'keyId'>, from = database) =>
  currentRights({ configuration: configuration(), clock: () => NOW, database: from }, caller)

const keyOf = ({ keyId }: Caller) => eq(apiKeys.id, keyId)
const memberOf = ({ userId }: Caller) => eq(memberships.userId, userId)

describe('the rights that a response goes on with', () => {
  it('are those of the moment, and of the catalogue of the moment', async () => {
    const caller = await seedCaller(database)
    const { key: _key, ...whose } = caller
    const before = await rightsOf(caller)
    expect(before.principal).toMatchObject({ ...whose, role: 'member', epoch: 1 })
    expect(before.principal.models).toEqual({ all: false, ids: new Set() })
    await grant(database, caller.organizationId, 'user', caller.userId, 'some-model')
    await database
      .update(organizations)
      .set({ epoch: sql`${organizations.epoch} + 1` })
      .where(eq(organizations.id, caller.organizationId))
    await database.update(memberships).set({ role: 'admin' }).where(memberOf(caller))
    await database
      .insert(deploymentEpochs)
      .values({ name: 'catalogue', epoch: 7 })
      .onConflictDoUpdate({ target: deploymentEpochs.name, set: { epoch: 7 } })
    const { principal, catalogueEpoch } = await rightsOf(caller)
    expect(principal).toMatchObject({ role: 'admin', epoch: 2, models: { ids: new Set(['some-model']) } })
    expect(catalogueEpoch).toBe(7)
  })

  const past = new Date(NOW - 1)
  const CHANGES: Array<[name: string, code: string, change: (caller: Caller) => PromiseLike<unknown>]> = [
    [
      'its key is revoked',
      'key_revoked',
      (caller) => database.update(apiKeys).set({ revokedAt: past }).where(keyOf(caller)),
    ],
    ['its key is gone', 'key_revoked', (caller) => database.delete(apiKeys).where(keyOf(caller))],
    [
      'its key has expired',
      'key_expired',
      (caller) => database.update(apiKeys).set({ expiresAt: past }).where(keyOf(caller)),
    ],
    [
      'its key is for something else',
      'model_access_denied',
      (caller) =>
        database
          .update(apiKeys)
          .set({ scopes: ['mcp'] })
          .where(keyOf(caller)),
    ],
    [
      'its user is disabled',
      'access_disabled',
      (caller) => database.update(memberships).set({ disabledAt: past }).where(memberOf(caller)),
    ],
    [
      'its user is no member any more',
      'access_disabled',
      (caller) => database.delete(memberships).where(memberOf(caller)),
    ],
    [
      'its organization is disabled',
      'access_disabled',
      ({ organizationId }) =>
        database.update(organizations).set({ disabledAt: past }).where(eq(organizations.id, organizationId)),
    ],
  ]

  it.each(CHANGES)('are none when %s', async (_name, code, change) => {
    const caller = await seedCaller(database)
    await rightsOf(caller)
    await change(caller)
    await expect(rightsOf(caller)).rejects.toMatchObject({ name: 'ApiError', code })
  })

  it('are none by the key of another organization', async () => {
    const [caller, other] = await Promise.all([seedCaller(database), seedCaller(database)])
    const mixed = { organizationId: other.organizationId, keyId: caller.keyId }
    await expect(rightsOf(mixed)).rejects.toMatchObject({ code: 'key_revoked' })
    const unknown = { organizationId: caller.organizationId, keyId: randomUUID() }
    await expect(rightsOf(unknown)).rejects.toMatchObject({ code: 'key_revoked' })
  })

  it('are none while Postgres is away', async () => {
    const caller = await seedCaller(database)
    const error = await rightsOf(caller, databaseAt(await unusedUrl())).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(Error)
    expect(error).not.toHaveProperty('code', 'key_revoked')
  })
})
