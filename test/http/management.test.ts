import { beforeAll, describe, expect, it, vi } from 'vitest'
import { runAdmin } from '../../scripts/admin/run.ts'
import { gateway, query } from '../harness/gateway.ts'
import { jsonOf, send } from './support/send.ts'
import { addKey, addMember, administrator, createTenant, type Tenant, uniqueName } from './support/tenant.ts'

let tenant: Tenant
let api: ReturnType<typeof administrator>

beforeAll(async () => {
  api = administrator(gateway())
  tenant = await createTenant(gateway())
})

const callModels = (key: string) =>
  send(`${gateway().baseUrl}/v1/models`, { headers: { authorization: `Bearer ${key}` } })

const listedModels = async (key: string) =>
  (jsonOf(await callModels(key)).data as Array<{ id: string }>).map(({ id }) => id)

/** Runs the admin command against the gateway. */
async function admin(...words: string[]) {
  const lines: string[] = []
  const code = await runAdmin(words, {
    environment: { HEADGATE_URL: gateway().baseUrl, ADMIN_TOKEN: gateway().adminToken },
    readInput: async () => '',
    print: (line) => lines.push(line),
    complain: (line) => lines.push(line),
  })
  return { code, text: lines.join('\n') }
}

describe('a change counts on the next call', () => {
  it('a key that is revoked, a user and an organization that are disabled', async () => {
    const own = await createTenant(gateway())
    const user = await addMember(gateway(), own.base)
    const [first, second] = [await addKey(gateway(), own.base, user), await addKey(gateway(), own.base, user)]
    // Called before the change, so that the gateway remembers the keys.
    for (const { key } of [first, second, own]) expect((await callModels(key)).status).toBe(200)
    await api.ask('DELETE', `${own.base}/keys/${first.id}`)
    expect((await callModels(first.key)).status).toBe(401)
    expect((await callModels(second.key)).status).toBe(200)
    await api.ask('DELETE', `${own.base}/users/${user}`)
    expect((await callModels(second.key)).status).toBe(401)
    await api.ask('PUT', `${own.base}/users/${user}`, { disabled: false })
    expect((await callModels(second.key)).status).toBe(200)
    await api.ask('PUT', own.base, { disabled: true })
    expect((await callModels(own.key)).status).toBe(401)
    await api.ask('PUT', own.base, { disabled: false })
    expect((await callModels(own.key)).status).toBe(200)
  })

  it('a grant that is made and taken back, also through a group', async () => {
    const own = await createTenant(gateway(), { models: [] })
    const model = gateway().models[0] ?? ''
    expect(await listedModels(own.key)).toEqual([])
    const group = await api.ask<{ id: string }>('POST', `${own.base}/groups`, { name: 'testers' })
    const grant = { subject_type: 'group', subject_id: group.id, model_id: model }
    const { id } = await api.ask<{ id: string }>('POST', `${own.base}/grants`, grant)
    expect(await listedModels(own.key)).toEqual([])
    await api.ask('PUT', `${own.base}/groups/${group.id}/members/${own.userId}`)
    expect(await listedModels(own.key)).toEqual([model])
    await api.ask('DELETE', `${own.base}/grants/${id}`)
    expect(await listedModels(own.key)).toEqual([])
  })

  it('a limit of a user, and its end', async () => {
    const own = await createTenant(gateway(), { user: { rate_limit_per_minute: 2 } })
    const statuses = []
    for (let call = 0; call < 3; call += 1) statuses.push((await callModels(own.key)).status)
    expect(statuses).toEqual([200, 200, 429])
    await api.ask('PUT', `${own.base}/users/${own.userId}`, { rate_limit_per_minute: 1_000 })
    await vi.waitFor(async () => expect((await callModels(own.key)).status).toBe(200), { timeout: 5_000 })
  })

  it('a model that is registered and disabled', async () => {
    const provider = await api.ask<{ id: string }>('POST', '/providers', {
      name: uniqueName('provider'),
      kind: 'anthropic',
      base_url: 'https://api.example.com',
      credential: 'sk-not-used',
    })
    const id = `acme/${uniqueName('model')}`
    await api.ask('PUT', `/models/${id}`, {
      owned_by: 'acme',
      context_window: 1_000,
      max_output_tokens: 100,
      prices: { input: 1, output: 1 },
      routes: [{ provider_id: provider.id, upstream_model: 'x' }],
    })
    expect(await listedModels(tenant.key)).toContain(id)
    await api.ask('DELETE', `/models/${id}`)
    expect(await listedModels(tenant.key)).not.toContain(id)
  })
})

describe('envelopes', () => {
  it('are flat, with every reason', async () => {
    const invalid = await api.call('POST', '/organizations', { slug: 'X', colour: 'red' })
    expect(invalid.status).toBe(400)
    expect(jsonOf(invalid)).toEqual({
      error: 'Bad Request',
      message: expect.stringContaining('colour'),
      details: { issues: expect.any(Array) },
    })
    expect(invalid.headers['x-request-id']).toMatch(/^req_/)
    const malformed = await send(`${gateway().baseUrl}/api/organizations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway().adminToken}`, 'content-type': 'application/json' },
      body: '{"name":',
    })
    expect(malformed.status).toBe(400)
    expect(jsonOf(malformed)).toEqual({ error: 'Bad Request', message: expect.any(String) })
    const unknown = await api.call('GET', '/organizations/11111111-2222-4333-8444-555555555555')
    expect(unknown.status).toBe(404)
    expect(jsonOf(unknown)).toMatchObject({
      error: 'Not found',
      message: expect.stringMatching(/not found\.$/),
    })
  })

  it.each(['a-key', 'nothing'])('a caller with %s instead of the token is 401', async (kind) => {
    const headers: Record<string, string> =
      kind === 'nothing' ? {} : { authorization: `Bearer ${tenant.key}` }
    const answer = await send(`${gateway().baseUrl}/api/organizations`, { headers })
    expect(answer.status).toBe(401)
    expect(answer.headers['www-authenticate']).toBe('Bearer')
    expect(answer.text).not.toContain(tenant.key)
  })

  it('is not served under the LLM host', async () => {
    const headers = { authorization: `Bearer ${gateway().adminToken}` }
    expect((await send(`${gateway().llmUrl}/api/organizations`, { headers })).status).toBe(404)
  })
})

describe('the ledger', () => {
  it('keeps grants once, under concurrency', async () => {
    const own = await createTenant(gateway(), { credits: 0 })
    const grant = { amount: 1_000, reason: 'test', id: 'same' }
    await Promise.all(Array.from({ length: 5 }, () => api.ask('POST', `${own.base}/credits`, grant)))
    expect(await api.ask('GET', `${own.base}/credits`)).toMatchObject({ balance: 1_000, available: 1_000 })
  })

  it('records changes and views, verifies, and names what was tampered with', async () => {
    const slug = uniqueName('audited')
    const { id } = await api.ask<{ id: string }>('POST', '/organizations', { name: slug, slug })
    for (const name of ['a', 'b', 'c']) await api.ask('POST', `/organizations/${id}/groups`, { name })
    await api.ask('GET', `/organizations/${id}/audit`)
    const intact = await admin('audit', 'verify', '--organization', slug)
    expect(intact.text).toContain(`ok      ${slug} shard 0: records 1 to 5`)
    expect(intact.code).toBe(0)
    const listed = await admin('audit', 'list', '--organization', slug)
    expect(listed.text).toMatch(/management +audit\.viewed/)
    expect(listed.text).toMatch(/management +organization\.created/)
    const text = 'update audit_records set action = $1 where organization_id = $2 and sequence = 3'
    await query(gateway(), text, ['group.deleted', id])
    const tampered = await admin('audit', 'verify', '--organization', slug)
    expect(tampered.text).toContain('first broken record: 3 (columns_differ: action')
    expect(tampered.code).toBe(3)
    // Other tests of this gateway may verify all chains.
    await query(gateway(), text, ['group.created', id])
  })
})
