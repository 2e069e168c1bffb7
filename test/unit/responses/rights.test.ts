import { randomUUID } from 'node:crypto'
import { eq, sql } from 'drizzle-orm'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../../schema/database.ts'
import { apiKeys, memberships, organizations } from '../../../schema/identity.ts'
import type { Principal } from '../../../src/identity/principal.ts'
import { currentPrincipal } from '../../../src/responses/model/current-principal.ts'
import { type Caller, configuration, databaseAt, grant, seedCaller } from '../calls/fixtures.ts'
import { emptyPostgres, unusedUrl } from '../calls/stand-ins.ts'

const NOW = Date.UTC(2026, 10, 21, 12, 0)

let database: Database

beforeAll(async () => {
  ;({ database } = await emptyPostgres())
})

const rightsOf = (
  { organizationId, userId, keyId }: Omit<Caller, 'key'>,
  { from = database, known = null }: { from?: Database; known?: Principal | null } = {},
) => {
  const deps = { configuration: configuration(), clock: () => NOW, database: from }
  const credential = {
    kind: 'key' as const,
    keyId,
    scopes: [],
    compatibility: 'headgate' as const,
    expiresAt: null,
  }
  return currentPrincipal(deps, { organizationId, userId }, { credential }, known)
}

const keyOf = ({ keyId }: Caller) => eq(apiKeys.id, keyId)
const memberOf = ({ userId }: Caller) => eq(memberships.userId, userId)

describe('the rights that a response goes on with', () => {
  it('are those of the moment after a restart', async () => {
    const caller = await seedCaller(database)
    const { organizationId, userId, keyId } = caller
    const before = await rightsOf(caller)
    const credential = { kind: 'key', keyId, scopes: ['models'] }
    expect(before).toMatchObject({ organizationId, userId, credential, role: 'member', epoch: 1 })
    expect(before.models).toEqual({ all: false, ids: new Set() })
    await grant(database, organizationId, 'user', userId, 'some-model')
    await database
      .update(organizations)
      .set({ epoch: sql`${organizations.epoch} + 1` })
      .where(eq(organizations.id, organizationId))
    await database.update(memberships).set({ role: 'admin' }).where(memberOf(caller))
    const principal = await rightsOf(caller)
    expect(principal).toMatchObject({ role: 'admin', epoch: 2, models: { ids: new Set(['some-model']) } })
  })

  it('are those that are known, unless the key has expired', async () => {
    const caller = await seedCaller(database)
    const known = await rightsOf(caller)
    const from = databaseAt(await unusedUrl())
    expect(await rightsOf(caller, { from, known })).toBe(known)
    const expired = { ...known, credential: { ...known.credential, expiresAt: NOW } } as Principal
    await expect(rightsOf(caller, { from, known: expired })).rejects.toMatchObject({ code: 'key_expired' })
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
    const mixed = { ...other, keyId: caller.keyId }
    await expect(rightsOf(mixed)).rejects.toMatchObject({ code: 'key_revoked' })
    const unknown = { ...caller, keyId: randomUUID() }
    await expect(rightsOf(unknown)).rejects.toMatchObject({ code: 'key_revoked' })
  })

  it('are none while Postgres is away', async () => {
    const caller = await seedCaller(database)
    const error = await rightsOf(caller, { from: databaseAt(await unusedUrl()) }).catch(
      (thrown: unknown) => thrown,
    )
    expect(error).toBeInstanceOf(Error)
    expect(error).not.toHaveProperty('code', 'key_revoked')
  })
})
