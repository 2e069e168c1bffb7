import { eq, sql } from 'drizzle-orm'
import { apiKeys, memberships, organizations, users } from '../../schema/identity.ts'
import { createApiKey } from '../../src/identity/api-key.ts'
import { digestToken } from '../../src/identity/secret-token.ts'
import type { KeyRing } from '../../src/lib/crypto.ts'
import { KEY_SCOPES } from '../../src/wire/key-scopes.ts'
import type { ScriptDatabase } from '../database.ts'
import { demoId, organizationId } from '../demo-organizations.ts'

/** An organization's users are spread over its shards, so that it takes many of them. */
const USERS = 16
/** The organizations that are called by many, by the ledger shards that they get. */
const ORGANIZATIONS = [
  { shards: 1, slug: 'acme' },
  { shards: 4, slug: 'other' },
] as const

/**
 * Makes users of two organizations, one of them with several ledger shards.
 *
 * @returns their keys by the number of shards
 */
export async function prepareShards(
  database: ScriptDatabase,
  peppers: KeyRing,
): Promise<ReadonlyMap<number, string[]>> {
  const keys = new Map<number, string[]>()
  for (const { shards, slug } of ORGANIZATIONS) {
    await database
      .update(organizations)
      .set({ ledgerShards: shards, epoch: sql`${organizations.epoch} + 1` })
      .where(eq(organizations.id, organizationId(slug)))
    keys.set(shards, await insertOwners(database, peppers, slug))
  }
  return keys
}

/** Owners may use every model. @returns a key of each */
async function insertOwners(database: ScriptDatabase, peppers: KeyRing, slug: 'acme' | 'other') {
  const organization = organizationId(slug)
  const people = Array.from({ length: USERS }, (_, index) => {
    const name = `bench-${slug}-${index}`
    return { user: demoId(`user ${name}`), name, ...createApiKey() }
  })
  await database
    .insert(users)
    .values(people.map(({ user, name }) => ({ id: user, email: `${name}@${slug}.example`, name })))
  await database
    .insert(memberships)
    .values(
      people.map(({ user }) => ({ organizationId: organization, userId: user, role: 'owner' as const })),
    )
  await database.insert(apiKeys).values(
    people.map(({ user, name, id, key }) => ({
      id,
      organizationId: organization,
      userId: user,
      label: name,
      ...digestToken(peppers, key),
      scopes: [...KEY_SCOPES],
    })),
  )
  return people.map(({ key }) => key)
}
