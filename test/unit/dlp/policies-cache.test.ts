import { randomUUID } from 'node:crypto'
import { eq, sql } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../../schema/database.ts'
import { dlpPolicies, dlpPolicyVersions } from '../../../schema/dlp.ts'
import { organizations } from '../../../schema/identity.ts'
import { loadPolicies } from '../../../src/dlp/policy/policies-cache.ts'
import { PolicyError, profilesFor } from '../../../src/dlp/policy/profiles.ts'
import { policyBody } from '../../../src/wire/dlp.ts'
import { databaseAt } from '../calls/fixtures.ts'
import { emptyPostgres, type Forwarder, startForwarder } from '../calls/stand-ins.ts'

let forwarder: Forwarder
/** Bypasses the forwarder, so that statements of the test are neither counted nor refused. */
let direct: Database
let database: Database

beforeAll(async () => {
  const postgres = await emptyPostgres()
  forwarder = await startForwarder(postgres.url)
  direct = postgres.database
  database = databaseAt(forwarder)
}, 120_000)
afterEach(() => {
  forwarder.behaviour = 'forward'
})
afterAll(() => forwarder?.close())

const body = (values: Record<string, unknown> = {}) =>
  policyBody.parse({ directions: ['request'], rules: [{ detector: 'email', action: 'block' }], ...values })

async function newOrganization(): Promise<string> {
  const id = randomUUID()
  await direct.insert(organizations).values({ id, name: 'Acme', slug: id })
  return id
}

interface Values {
  enabled?: boolean
  deletedAt?: Date
  body?: unknown
}

async function addPolicy(organizationId: string, values: Values = {}): Promise<string> {
  const [id, enabled] = [randomUUID(), values.enabled ?? true]
  const same = { organizationId, name: id, enabled, version: 1 }
  await direct.insert(dlpPolicies).values({ id, ...same, deletedAt: values.deletedAt ?? null })
  await direct
    .insert(dlpPolicyVersions)
    .values({ policyId: id, ...same, body: values.body ?? body(), author: 'test' })
  return id
}

async function nextVersion(policyId: string, what: unknown): Promise<void> {
  const [row] = await direct
    .update(dlpPolicies)
    .set({ version: sql`${dlpPolicies.version} + 1` })
    .where(eq(dlpPolicies.id, policyId))
    .returning()
  if (!row) throw new Error('no such policy')
  const { organizationId, name, enabled, version } = row
  await direct
    .insert(dlpPolicyVersions)
    .values({ policyId, version, organizationId, name, enabled, body: what, author: 'test' })
}

/** Result of a load, and its number of queries to Postgres. */
async function load(organizationId: string, epoch: number) {
  const before = forwarder.requests
  const policies = await loadPolicies({ database }, organizationId, epoch)
  return { policies, asked: forwarder.requests - before }
}

describe('policies of an organization', () => {
  it('are those that are enabled, not deleted, and its own, in their current version', async () => {
    const [mine, theirs] = [await newOrganization(), await newOrganization()]
    const held = await addPolicy(mine)
    await nextVersion(held, body({ rules: [{ detector: 'card', action: 'mask' }] }))
    await addPolicy(mine, { enabled: false })
    await addPolicy(mine, { deletedAt: new Date() })
    await addPolicy(theirs)
    const { policies } = await load(mine, 1)
    expect(policies).toEqual([
      {
        id: held,
        version: 2,
        name: held,
        enabled: true,
        body: body({ rules: [{ detector: 'card', action: 'mask' }] }),
      },
    ])
  })

  it('are asked for once for each epoch, also when there are none', async () => {
    for (const count of [0, 2]) {
      const organizationId = await newOrganization()
      for (let made = 0; made < count; made += 1) await addPolicy(organizationId)
      expect(await load(organizationId, 1)).toMatchObject({ policies: { length: count }, asked: 1 })
      forwarder.behaviour = { status: 503, body: 'away' }
      expect(await load(organizationId, 1)).toMatchObject({ policies: { length: count }, asked: 0 })
      forwarder.behaviour = 'forward'
      expect(await load(organizationId, 2)).toMatchObject({ policies: { length: count }, asked: 1 })
    }
  })

  it('stay the same objects under another epoch, and what is compiled for them', async () => {
    const organizationId = await newOrganization()
    const [changing] = [await addPolicy(organizationId), await addPolicy(organizationId)]
    const first = (await load(organizationId, 1)).policies
    const second = (await load(organizationId, 2)).policies
    expect(second).toBe(first)
    const subject = { groupIds: [], userId: 'u', modelId: 'm', integrationId: null }
    const known = [{ id: 'email', category: 'contact', description: '', minimumScore: 0.5 } as const]
    const profiles = profilesFor(first, subject, known)
    expect(profilesFor(second, subject, known)).toBe(profiles)

    await nextVersion(changing, body({ directions: ['response'] }))
    const third = (await load(organizationId, 3)).policies
    expect(third).not.toBe(first)
    for (const [index, policy] of third.entries()) {
      if (policy.id === changing)
        expect(policy).toMatchObject({ version: 2, body: { directions: ['response'] } })
      else expect(policy).toBe(first[index])
    }
    await direct.update(dlpPolicies).set({ enabled: false }).where(eq(dlpPolicies.id, changing))
    expect((await load(organizationId, 4)).policies.map(({ id }) => id)).not.toContain(changing)
  })
})

describe('nothing is let through', () => {
  it('when Postgres is away and the epoch is another one', async () => {
    const organizationId = await newOrganization()
    await addPolicy(organizationId)
    await load(organizationId, 1)
    forwarder.behaviour = { status: 503, body: 'away' }
    await expect(load(organizationId, 2)).rejects.toThrow()
    await expect(load(randomUUID(), 1)).rejects.toThrow()
    forwarder.behaviour = 'forward'
    expect((await load(organizationId, 2)).policies).toHaveLength(1)
  })

  it('when what is stored cannot be read; the error tells nothing of it', async () => {
    const organizationId = await newOrganization()
    const secret = 'project-blue-moon'
    const damaged = { ...body(), dictionaries: [{ id: 'x', terms: [secret, 5], [secret]: 1 }] }
    const id = await addPolicy(organizationId, { body: damaged })
    const failure = await load(organizationId, 1).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(PolicyError)
    expect(String(failure)).toContain(`version 1 of policy ${id} cannot be read: dictionaries.0`)
    expect(String(failure)).not.toContain(secret)
    await direct.delete(dlpPolicyVersions).where(eq(dlpPolicyVersions.policyId, id))
    await expect(load(organizationId, 1)).rejects.toThrow(PolicyError)
  })
})

it('policies too large to be kept hold all the same', async () => {
  const organizationId = await newOrganization()
  const terms = Array.from({ length: 5_000 }, (_, index) => `term ${index} ${'x'.repeat(185)}`)
  for (let count = 0; count < 3; count++) {
    await addPolicy(organizationId, { body: body({ dictionaries: [{ id: 'words', terms }] }) })
  }
  expect(await load(organizationId, 1)).toMatchObject({ policies: { length: 3 }, asked: 1 })
  expect(await load(organizationId, 1)).toMatchObject({ policies: { length: 3 }, asked: 1 })
}, 60_000)
