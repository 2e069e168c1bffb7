import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { connections } from '../../../schema/integrations.ts'
import { wantedProviders } from '../../../scripts/demo-catalogue.ts'
import { DEMO_ORGANIZATIONS, organizationId } from '../../../scripts/demo-organizations.ts'
import { createLocalSecrets } from '../../../scripts/local-secrets.ts'
import { seedAgents } from '../../../scripts/seed-agents.ts'
import { seedCatalogue } from '../../../scripts/seed-catalogue.ts'
import { seedIntegrations } from '../../../scripts/seed-integrations.ts'
import { seedOrganizations } from '../../../scripts/seed-organizations.ts'
import { configuration } from '../calls/fixtures.ts'
import { type Harness, listRoutes, startManagement } from './harness.ts'

const UPSTREAM = 'http://127.0.0.1:9999'
const { KEY_PEPPERS, VAULT_KEYS } = configuration({})

let harness: Harness

const seed = async () => {
  const { database } = harness
  await seedCatalogue(database, VAULT_KEYS, wantedProviders({}, UPSTREAM), true)
  await seedOrganizations(database, KEY_PEPPERS, createLocalSecrets().keys)
  const upstreams = { url: UPSTREAM, memoryToken: 'token-of-the-memory', ticketKey: 'key-of-the-tickets' }
  await seedIntegrations(database, VAULT_KEYS, upstreams)
  await seedAgents(database, 'scripted-chat')
}

beforeAll(async () => {
  harness = await startManagement()
  await seed()
}, 60_000)
afterAll(() => harness.close())

// The administration token is no user with sessions.
const routes = listRoutes().filter(({ path }) => !/^\/me(\/|$)/.test(path))
/** Lists whose elements have a path of their own, with the methods of that path. */
const LISTS = routes
  .filter(({ method, path }) => method === 'GET' && !/:(?!organizationId)/.test(path))
  .flatMap(({ path }) => {
    const own = routes.filter((route) => new RegExp(`^${path}/:\\w+(\\{[^}]*\\})?$`).test(route.path))
    const methods = own.map(({ method }) => method)
    return methods.length === 0 ? [] : [{ path, methods }]
  })

/** `<kind> <id>` of each element of each list of an organization, and the status of its own path. */
async function statuses(path: string, method: string, slug: 'acme' | 'other' | 'broke') {
  const list = path.replace(':organizationId', organizationId(slug))
  const { json } = await harness.request('GET', list)
  const ids = (json.data as Array<{ id: string }>).map(({ id }) => id)
  return Promise.all(
    ids.map(async (id) => [id, (await harness.request(method, `${list}/${id}`)).status] as const),
  )
}

describe('the demo data', () => {
  it('replaces connections of earlier releases, whose ids no path takes', async () => {
    const { database } = harness
    const ids = async () =>
      (await database.select({ id: connections.id }).from(connections)).map(({ id }) => id).sort()
    const seeded = await ids()
    expect(seeded).toHaveLength(3)
    await database
      .update(connections)
      .set({ id: 'conn_demo_tickets_owner' })
      .where(eq(connections.id, seeded[0] ?? ''))
    await seed()
    expect(await ids()).toEqual(seeded)
  })

  it('has ids that the paths of the management API take', async () => {
    const read: string[] = []
    const others: Array<readonly [string, string, number]> = []
    // Resources that cannot be read by themselves are deleted, last.
    for (const method of ['GET', 'DELETE']) {
      for (const { path, methods } of LISTS) {
        if (!methods.includes(method) || (method === 'DELETE' && methods.includes('GET'))) continue
        for (const { slug } of DEMO_ORGANIZATIONS) {
          if (slug !== 'acme' && !path.includes(':organizationId')) continue
          const found = await statuses(path, method, slug)
          read.push(...found.map(() => path.split('/').at(-1) ?? ''))
          others.push(
            ...found.flatMap(([id, status]) => (status === 200 ? [] : [[path, id, status] as const])),
          )
        }
      }
    }
    expect(others).toEqual([])
    const kinds = ['organizations', 'users', 'groups', 'keys', 'grants', 'models', 'providers']
    expect([...new Set(read)]).toEqual(
      expect.arrayContaining([...kinds, 'integrations', 'integration-grants', 'connections', 'agents']),
    )
  })
})
