import { eq } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { apiKeys } from '../../../schema/identity.ts'
import { providers } from '../../../schema/models.ts'
import { openCredential, SECRET_ONLY } from '../../../src/gateway/providers/credential.ts'
import { parseApiKey } from '../../../src/identity/api-key.ts'
import { digestToken } from '../../../src/identity/secret-token.ts'
import { configuration } from '../calls/fixtures.ts'
import {
  ADMIN_TOKEN,
  create,
  dumpDatabase,
  type Harness,
  listRoutes,
  seedTenant,
  someModel,
  someProvider,
  startManagement,
  uniqueName,
} from './harness.ts'

let harness: Harness
const lines: string[] = []

beforeAll(async () => {
  harness = await startManagement()
}, 60_000)
afterEach(() => {
  vi.restoreAllMocks()
  harness.postgresForwarder.behaviour = 'forward'
})
afterAll(() => harness.close())

/** Answers of every GET of the API for one tenant and one provider, and all that is stored or was logged. */
async function everythingReadable(ids: Record<string, string>): Promise<string> {
  const texts = [...lines, JSON.stringify(harness.ledgers.changes)]
  // The description of the API is a static file, which this harness does not serve.
  // The administration token is no user with sessions.
  const routes = listRoutes().filter(
    ({ method, path }) =>
      // The return from an identity provider is a page, which leads to another.
      method === 'GET' && path !== '/openapi.json' && !/^\/me(\/|$)|\/callback$/.test(path),
  )
  for (const { path } of routes) {
    const filled = path
      .replace(/:modelId\{\.\+\}/, ids.modelId ?? 'none')
      .replace(/:(\w+)/g, (_all, parameter: string) => ids[parameter] ?? 'none')
    // A stream ends at once, and a search has a text.
    const query = filled.endsWith('/tail') ? '?seconds=0' : filled.endsWith('/find') ? '?q=example' : ''
    const answer = await harness.request('GET', filled + query)
    expect(answer.status, filled).toBe(200)
    texts.push(answer.text)
  }
  for (const changed of new Set(harness.ledgers.changes.map(({ organizationId }) => organizationId))) {
    await harness.ledgers.of(changed).flush()
  }
  texts.push(await dumpDatabase(harness.database))
  return texts.join('\n')
}

function captureLogs() {
  const keep = (line: unknown) => void lines.push(String(line))
  vi.spyOn(console, 'log').mockImplementation(keep)
  vi.spyOn(console, 'error').mockImplementation(keep)
}

it('a key is told once, and is found nowhere afterwards; neither is a credential', async () => {
  captureLogs()
  const tenant = await seedTenant(harness)
  const credential = someProvider().credential
  const replaced = `${credential}-replaced`
  const provider = await create(harness, '/providers', someProvider({ credential }))
  const update = await harness.request('PUT', `/providers/${provider.id}`, { credential: replaced })
  const modelId = 'acme/secret-test'
  await harness.request('PUT', `/models/${modelId}`, someModel(provider.id))
  // Failures must not disclose it either: a refusal of the database, and a lost connection.
  const taken = await harness.request('POST', '/providers', someProvider({ name: provider.name, credential }))
  expect(taken.status).toBe(422)
  harness.postgresForwarder.behaviour = { status: 502, body: 'bad gateway' }
  const lost = await harness.request('POST', '/providers', someProvider({ credential }))
  expect(lost.status).toBe(500)
  harness.postgresForwarder.behaviour = 'forward'

  const [row] = await harness.database.select().from(providers).where(eq(providers.id, provider.id))
  const sealed = row?.sealedCredential ?? ''
  const { key } = tenant.key
  expect(parseApiKey(key)).toEqual({ id: tenant.key.id })
  const text = await everythingReadable({
    organizationId: tenant.organization.id,
    userId: tenant.user.id,
    groupId: tenant.group.id,
    keyId: tenant.key.id,
    policyId: tenant.policy.id,
    integrationId: tenant.integration.id,
    connectionId: tenant.connection.id,
    agentId: tenant.agent.id,
    runId: tenant.run.id,
    callId: tenant.call.id,
    erasureId: tenant.erasure.id,
    version: '1',
    providerId: provider.id,
    modelId,
  })
  for (const secret of [key, key.slice(16), credential, ADMIN_TOKEN]) {
    expect(text).not.toContain(secret)
    expect([update.text, taken.text, lost.text].join()).not.toContain(secret)
  }
  expect(text.split(sealed).length - 1, 'sealed only in its row').toBe(1)
  expect(JSON.stringify(provider)).not.toContain(sealed)
  expect(provider).toMatchObject({ credential_set: true })
  expect(lines.length, 'something was logged').toBeGreaterThan(0)
})

it('the stored digest and seal are the ones the gateway will look for', async () => {
  const tenant = await seedTenant(harness)
  const credential = 'sk-known-credential'
  const provider = await create(harness, '/providers', someProvider({ credential }))
  const { KEY_PEPPERS, VAULT_KEYS } = configuration()
  const [key] = await harness.database.select().from(apiKeys).where(eq(apiKeys.id, tenant.key.id))
  expect(key).toMatchObject(digestToken(KEY_PEPPERS, tenant.key.key))
  const [row] = await harness.database.select().from(providers).where(eq(providers.id, provider.id))
  const open = (id: string) => openCredential(VAULT_KEYS, id, SECRET_ONLY, row?.sealedCredential ?? '')
  expect(open(provider.id)).toEqual({ parts: { secret: credential }, secrets: [credential] })
  expect(() => open('another')).toThrow()
})

it('answers with a key are not for caches', async () => {
  const tenant = await seedTenant(harness)
  const answer = await harness.request('POST', `${tenant.base}/keys`, { user_id: tenant.user.id, label: 'x' })
  expect(answer.headers.get('cache-control')).toBe('no-store')
})

it('a key pasted where an id belongs is not quoted back', async () => {
  const tenant = await seedTenant(harness)
  for (const path of ['keys', 'users', 'grants']) {
    const answer = await harness.request('DELETE', `${tenant.base}/${path}/${tenant.key.key}`)
    expect(answer.status).toBe(404)
    expect(answer.text).not.toContain(tenant.key.key.slice(16))
  }
})

describe('a credential of named parts', () => {
  it('is the same as the text, where the kind takes one secret', async () => {
    const provider = await create(harness, '/providers', someProvider({ credential: { secret: 'sk-one' } }))
    const path = `/providers/${provider.id}`
    const partsOf = async () => {
      const [row] = await harness.database.select().from(providers).where(eq(providers.id, provider.id))
      const ring = configuration().VAULT_KEYS
      return openCredential(ring, provider.id, SECRET_ONLY, row?.sealedCredential ?? '').parts
    }
    expect(await partsOf()).toEqual({ secret: 'sk-one' })
    expect(await harness.request('PUT', path, { credential: { secret: 'sk-two' } })).toMatchObject({
      status: 200,
    })
    expect(await partsOf()).toEqual({ secret: 'sk-two' })
    for (const credential of [{}, { key_id: 'AKIA1' }, { secret: 'sk-three', region: 'eu-north-1' }]) {
      const answer = await harness.request('PUT', path, { credential })
      expect(answer).toMatchObject({
        status: 422,
        json: { message: expect.stringContaining('takes `secret`') },
      })
      expect(answer.text).not.toMatch(/AKIA1|key_id|region|sk-/)
      expect((await harness.request('POST', '/providers', someProvider({ credential }))).status).toBe(422)
    }
    expect(await partsOf()).toEqual({ secret: 'sk-two' })
  })
})

describe('a stored credential', () => {
  it('does not follow its provider to another host', async () => {
    const provider = await create(harness, '/providers', someProvider({ base_url: 'https://a.example.com' }))
    const path = `/providers/${provider.id}`
    const elsewhere = { base_url: 'https://b.example.com' }
    expect(await harness.request('PUT', path, elsewhere)).toMatchObject({ status: 422 })
    expect((await harness.request('GET', path)).json.base_url).toBe('https://a.example.com')
    const samePlace = await harness.request('PUT', path, { base_url: 'https://a.example.com/v2/' })
    expect(samePlace.json.base_url).toBe('https://a.example.com/v2')
    const both = await harness.request('PUT', path, { ...elsewhere, credential: 'sk-for-b' })
    expect(both.json.base_url).toBe('https://b.example.com')
  })

  it('is not paired with an address that another request set meanwhile', async () => {
    const provider = await create(harness, '/providers', someProvider({ base_url: 'https://a.example.com' }))
    const path = `/providers/${provider.id}`
    harness.ledgers.onChange = async () => {
      harness.ledgers.onChange = () => {}
      const moved = await harness.request('PUT', path, { base_url: 'https://b.example.com', credential: 'b' })
      expect(moved.status).toBe(200)
    }
    const late = await harness.request('PUT', path, { base_url: 'https://a.example.com/v2' })
    expect(late.status).toBe(422)
    expect((await harness.request('GET', path)).json.base_url).toBe('https://b.example.com')
  })

  it('stays when other members change', async () => {
    const provider = await create(harness, '/providers', someProvider({ credential: 'sk-staying' }))
    const name = uniqueName('renamed')
    const answer = await harness.request('PUT', `/providers/${provider.id}`, { name, disabled: true })
    expect(answer.json).toMatchObject({ name, disabled_at: expect.any(String), credential_set: true })
    const [row] = await harness.database.select().from(providers).where(eq(providers.id, provider.id))
    const ring = configuration().VAULT_KEYS
    const opened = openCredential(ring, provider.id, SECRET_ONLY, row?.sealedCredential ?? '')
    expect(opened.parts).toEqual({ secret: 'sk-staying' })
  })
})
