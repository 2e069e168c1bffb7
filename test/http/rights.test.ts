import OpenAI from 'openai'
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import {
  addKey,
  addMember,
  administrator,
  bearer,
  createTenant,
  type Tenant,
  uniqueName,
} from '../harness/tenant.ts'
import { MODEL_ROUTES, type ModelRoute } from '../matrices/routes.ts'

const chat = MODEL_ROUTES[0] as ModelRoute
const ask = (method: string, path: string, body?: unknown) => administrator(gateway()).ask(method, path, body)

let tenant: Tenant
const key = () => tenant.key

const list = (sent: string, headers: Record<string, string> = {}): Promise<Answer> =>
  send(`${gateway().baseUrl}/v1/models`, { headers: { ...bearer(sent), ...headers } })

async function call(sent: string, model = 'scripted-chat'): Promise<number> {
  const route = model.startsWith('scripted-messages') ? (MODEL_ROUTES[2] as ModelRoute) : chat
  const body = JSON.stringify(route.request('Hello', { model }))
  const answer = await send(gateway().baseUrl + route.path, { method: 'POST', headers: bearer(sent), body })
  return answer.status
}

async function idsOf(sent: string): Promise<string[]> {
  const answer = await list(sent)
  expect(answer.status, answer.text).toBe(200)
  return (jsonOf(answer).data as Array<{ id: string }>).map(({ id }) => id)
}

const grant = (subject: Record<string, string>, model: string) =>
  ask('POST', `${tenant.base}/grants`, { ...subject, model_id: model }) as Promise<{ id: string }>

describe('what a key may do', () => {
  beforeEach(async () => {
    tenant = await createTenant(gateway(), { models: [] })
  })

  it('is nothing without a grant', async () => {
    expect(jsonOf(await list(key()))).toEqual({ object: 'list', data: [] })
    expect(await call(key())).toBe(403)
  })

  it('follows grants to the user, its role, its group and the organization on the next call', async () => {
    const group = (await ask('POST', `${tenant.base}/groups`, { name: 'g' })) as { id: string }
    const subjects: Array<Record<string, string>> = [
      { subject_type: 'user', subject_id: tenant.userId },
      { subject_type: 'role', subject_id: 'member' },
      { subject_type: 'group', subject_id: group.id },
      { subject_type: 'organization' },
    ]
    await ask('PUT', `${tenant.base}/groups/${group.id}/members/${tenant.userId}`)
    for (const subject of subjects) {
      expect(await call(key())).toBe(403)
      const { id } = await grant(subject, 'scripted-chat')
      expect(await idsOf(key())).toEqual(['scripted-chat'])
      expect(await call(key())).toBe(200)
      expect(await call(key(), 'scripted-chat-large')).toBe(403)
      await ask('DELETE', `${tenant.base}/grants/${id}`)
      expect(await idsOf(key())).toEqual([])
    }
  })

  it('does not follow grants to others', async () => {
    const colleague = await addMember(gateway(), tenant.base)
    const group = (await ask('POST', `${tenant.base}/groups`, { name: 'g' })) as { id: string }
    await grant({ subject_type: 'user', subject_id: colleague }, '*')
    await grant({ subject_type: 'role', subject_id: 'admin' }, '*')
    await grant({ subject_type: 'group', subject_id: group.id }, '*')
    expect(await call(key())).toBe(403)
    expect(await idsOf(key())).toEqual([])
    await ask('PUT', `${tenant.base}/groups/${group.id}/members/${tenant.userId}`)
    expect(await call(key())).toBe(200)
    await ask('DELETE', `${tenant.base}/groups/${group.id}/members/${tenant.userId}`)
    expect(await call(key())).toBe(403)
    await ask('PUT', `${tenant.base}/users/${tenant.userId}`, { role: 'admin' })
    expect(await call(key())).toBe(200)
    await ask('PUT', `${tenant.base}/users/${tenant.userId}`, { role: 'member' })
    expect(await call(key())).toBe(403)
  })

  it('ends with the key, on the next call', async () => {
    await grant({ subject_type: 'organization' }, '*')
    const other = await addKey(gateway(), tenant.base, tenant.userId)
    for (const sent of [key(), other.key]) expect(await call(sent)).toBe(200)
    await ask('DELETE', `${tenant.base}/keys/${tenant.keyId}`)
    expect(await call(key())).toBe(401)
    expect((await list(key())).status).toBe(401)
    expect(await call(other.key)).toBe(200)
  })

  it('ends with the user or the organization, and begins again with them', async () => {
    await grant({ subject_type: 'organization' }, '*')
    for (const path of [`${tenant.base}/users/${tenant.userId}`, tenant.base]) {
      expect(await call(key())).toBe(200)
      await ask('PUT', path, { disabled: true })
      expect(await call(key())).toBe(401)
      await ask('PUT', path, { disabled: false })
      expect(await call(key())).toBe(200)
    }
  })

  it('ends when the key expires', async () => {
    await grant({ subject_type: 'organization' }, '*')
    const expiry = Date.now() + 2_500
    const more = { expires_at: new Date(expiry).toISOString() }
    const short = await addKey(gateway(), tenant.base, tenant.userId, more)
    expect(await call(short.key)).toBe(200)
    await vi.waitFor(async () => expect(await call(short.key)).toBe(401), { timeout: 5_000, interval: 50 })
    expect(Date.now()).toBeGreaterThanOrEqual(expiry)
    const past = { user_id: tenant.userId, label: 'late', expires_at: '2020-01-01' }
    const late = await administrator(gateway()).call('POST', `${tenant.base}/keys`, past)
    expect(late.status).toBe(422)
  })

  it('depends on the limits at the time of the call', async () => {
    await grant({ subject_type: 'organization' }, '*')
    expect(await call(key())).toBe(200)
    await ask('PUT', `${tenant.base}/users/${tenant.userId}`, { rate_limit_per_minute: 1 })
    const statuses = [await call(key()), await call(key()), await call(key())]
    expect(statuses).toContain(429)
    await ask('PUT', `${tenant.base}/users/${tenant.userId}`, { rate_limit_per_minute: 1_000 })
    // A refusal is remembered for a second where it was made.
    await vi.waitFor(async () => expect(await call(key())).toBe(200), { timeout: 5_000, interval: 100 })
  })
})

describe('the models list', () => {
  let providerId: string

  beforeAll(async () => {
    tenant = await createTenant(gateway())
    const model = (await ask('GET', '/models/scripted-chat')) as { routes: Array<{ provider_id: string }> }
    providerId = model.routes[0]?.provider_id ?? ''
  })

  const modelOf = (more: Record<string, unknown> = {}) => ({
    owned_by: 'test',
    context_window: 1_000,
    max_output_tokens: 1_000,
    prices: { input: 0, output: 0 },
    routes: [{ provider_id: providerId, upstream_model: 'x' }],
    ...more,
  })

  it('has the standard shape', async () => {
    const answer = await list(key())
    const { object, data } = jsonOf(answer) as { object: string; data: Array<Record<string, unknown>> }
    expect(object).toBe('list')
    expect(answer.headers['content-type']).toBe('application/json')
    expect(data.map(({ id }) => id)).toEqual(expect.arrayContaining(gateway().models))
    for (const model of data) {
      expect(model).toEqual({
        id: expect.any(String),
        object: 'model',
        created: expect.any(Number),
        owned_by: expect.any(String),
        type: 'model',
        display_name: model.id,
        created_at: new Date(Number(model.created) * 1_000).toISOString(),
      })
    }
    const ownerOf = (id: string) => data.find((model) => model.id === id)?.owned_by
    expect([ownerOf('scripted-chat'), ownerOf('scripted-messages')]).toEqual(['openai', 'anthropic'])
    expect(new Set(data.map(({ id }) => id)).size).toBe(data.length)
  })

  it('returns each of its models by id, and no others', async () => {
    const own = await createTenant(gateway(), { models: ['scripted-chat'] })
    const id = `maker/${uniqueName('model')}:1@b`
    await ask('PUT', `/models/${encodeURIComponent(id)}`, modelOf())
    await ask('POST', `${own.base}/grants`, { subject_type: 'organization', model_id: id })
    const { models } = new OpenAI({ baseURL: `${gateway().baseUrl}/v1`, apiKey: own.key, maxRetries: 0 })
    const { data } = await models.list()
    expect(data.map((model) => model.id).sort()).toEqual([id, 'scripted-chat'])
    for (const model of data) expect(await models.retrieve(model.id)).toEqual(model)
    const slashes = await send(`${gateway().baseUrl}/v1/models/${id}`, {
      headers: { 'x-api-key': own.key },
    })
    expect(jsonOf(slashes)).toMatchObject({ id, object: 'model' })
    for (const other of ['scripted-messages', 'no-such-model']) {
      await expect(models.retrieve(other)).rejects.toMatchObject({ status: 404 })
    }
    await ask('DELETE', `/models/${encodeURIComponent(id)}`)
  })

  it('is the same under every query that clients send', async () => {
    const plain = (await list(key())).text
    const queried = await send(`${gateway().baseUrl}/v1/models?limit=1000&beta=true`, {
      headers: bearer(key()),
    })
    expect(queried.text).toBe(plain)
  })

  it('is not sent again to a client that has it', async () => {
    const own = await createTenant(gateway(), { models: ['scripted-chat'] })
    const first = await list(own.key)
    const etag = String(first.headers.etag)
    expect(etag).toMatch(/^"[0-9a-f]{32}"$/)
    for (const match of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const again = await list(own.key, { 'if-none-match': match })
      expect(again.status).toBe(304)
      expect(again.text).toBe('')
      expect(again.headers.etag).toBe(etag)
      expect(again.headers['x-request-id']).toBeDefined()
    }
    expect((await list(own.key, { 'if-none-match': '"other"' })).status).toBe(200)
    expect(String(first.headers['cache-control'])).toMatch(/private/)
    expect(String(first.headers.vary)).toMatch(/authorization/i)
    // Another set of grants is another list, also for whoever sends this tag.
    expect((await list(key(), { 'if-none-match': etag })).status).toBe(200)
  })

  it('and calls follow the catalogue on the next call', async () => {
    const id = uniqueName('fresh')
    expect(await idsOf(key())).not.toContain(id)
    expect(await call(key(), id)).toBe(400)
    await ask('PUT', `/models/${id}`, modelOf())
    expect(await idsOf(key())).toContain(id)
    expect(await call(key(), id)).toBe(200)
    await ask('PUT', `/models/${id}`, modelOf({ owned_by: 'changed' }))
    expect((await list(key())).text).toContain('"owned_by":"changed"')
    await ask('DELETE', `/models/${id}`)
    expect(await idsOf(key())).not.toContain(id)
    expect(await call(key(), id)).toBe(400)
  })

  it('and calls follow the provider on the next call', async () => {
    const id = uniqueName('provided')
    const base_url = `${gateway().standIns.modelUpstream}/v1`
    const own = { name: uniqueName('provider'), kind: 'openai-compatible', base_url, credential: 'x' }
    const provider = (await ask('POST', '/providers', own)) as { id: string }
    await ask(
      'PUT',
      `/models/${id}`,
      modelOf({ routes: [{ provider_id: provider.id, upstream_model: 'x' }] }),
    )
    expect(await call(key(), id)).toBe(200)
    await ask('PUT', `/providers/${provider.id}`, { disabled: true })
    expect(await idsOf(key())).not.toContain(id)
    expect(await call(key(), id)).toBe(400)
    await ask('PUT', `/providers/${provider.id}`, { disabled: false })
    expect(await idsOf(key())).toContain(id)
    expect(await call(key(), id)).toBe(200)
  })
})
