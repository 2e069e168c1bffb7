import { describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { auditEntries, flush, readList, settledCredits } from '../harness/records.ts'
import { jsonOf, send } from '../harness/send.ts'
import { administrator, bearer, createTenant, uniqueName } from '../harness/tenant.ts'
import { MODEL_ROUTES, type ModelRoute } from '../matrices/routes.ts'

const chat = MODEL_ROUTES[0] as ModelRoute
const api = () => administrator(gateway())

describe('the way of an administrator', () => {
  it('leads from nothing to a call that is paid for, recorded and summed up', async () => {
    const { ask } = api()
    const slug = uniqueName('journey')
    const organization = await ask('POST', '/organizations', { name: 'Journey', slug })
    expect(organization).toMatchObject({ slug, disabled_at: null, rate_limit_per_minute: null })
    const base = `/organizations/${organization.id}`
    const user = await ask('POST', `${base}/users`, {
      email: `${slug}@example.com`,
      name: 'Ann',
      role: 'admin',
    })
    expect(user).toMatchObject({ role: 'admin', entitlements: [], group_ids: [] })
    const created = await ask<{ id: string; key: string }>('POST', `${base}/keys`, {
      user_id: user.id,
      label: 'laptop',
      scopes: ['models'],
    })
    expect(created.key).toMatch(new RegExp(`^hg_${created.id}_[0-9A-Za-z]{49}$`))
    const body = JSON.stringify(chat.request('script:canned prompt=9'))
    const call = () =>
      send(gateway().baseUrl + chat.path, { method: 'POST', headers: bearer(created.key), body })
    expect((await call()).status).toBe(403)
    await ask('POST', `${base}/grants`, {
      subject_type: 'user',
      subject_id: user.id,
      model_id: 'scripted-chat',
    })
    expect((await call()).status).toBe(429)
    await ask('POST', `${base}/credits`, { amount: 100_000, reason: 'start' })
    const answer = await call()
    expect(answer.status).toBe(200)

    const cost = 9 + 5 * 11
    expect(await settledCredits(gateway(), { base })).toMatchObject({ balance: 100_000 - cost, reserved: 0 })
    const entries = await auditEntries(gateway(), { base })
    expect(entries.map(({ action, status }) => `${status} ${action}`).reverse()).toEqual([
      '200 organization.created',
      '200 user.created',
      '200 api_key.created',
      '403 POST /v1/chat/completions',
      '200 grant.created',
      '429 POST /v1/chat/completions',
      '200 credits.granted',
      '200 POST /v1/chat/completions',
    ])
    const [newest] = entries
    expect(newest).toMatchObject({ request_id: answer.headers['x-request-id'], credits_settled: cost })
    for (const { kind, record } of entries.filter((entry) => entry.kind === 'change')) {
      expect(kind).toBe('change')
      expect(record.actor).toMatchObject({ administrator: 'admin_token', userId: null })
    }
    for (const group of ['model', 'key', 'user', 'day']) {
      const totals = await readList<Record<string, unknown>>(gateway(), `${base}/usage`, { group_by: group })
      expect(totals).toMatchObject([{ calls: 1, input_tokens: 9, output_tokens: 11, cost }])
    }
    expect(await ask('GET', `${base}/audit/verify`)).toMatchObject({ ok: true })
  })

  it('shows a key once', async () => {
    const tenant = await createTenant(gateway())
    const shown = await api().call('GET', `${tenant.base}/keys/${tenant.keyId}`)
    const listed = await api().call('GET', `${tenant.base}/keys`)
    for (const answer of [shown, listed]) {
      expect(answer.status).toBe(200)
      expect(answer.text).toContain(tenant.keyId)
      expect(answer.text).not.toContain(tenant.key)
      expect(answer.text).not.toContain(tenant.key.split('_')[2])
    }
    expect(await api().ask('DELETE', `${tenant.base}/keys/${tenant.keyId}`)).toMatchObject({
      id: tenant.keyId,
      revoked_at: expect.stringMatching(/^\d{4}-/),
    })
  })

  it('keeps the credential of a provider to itself', async () => {
    const credential = uniqueName('credential')
    const base_url = `${gateway().standIns.modelUpstream}/v1`
    const own = { name: uniqueName('provider'), kind: 'openai-compatible', base_url, credential }
    const created = await api().call('POST', '/providers', own)
    const { id } = jsonOf(created) as { id: string }
    const replies = [
      created,
      await api().call('PUT', `/providers/${id}`, { credential: `${credential}-2` }),
      await api().call('PUT', `/providers/${id}`, { credential: { secret: `${credential}-3` } }),
      await api().call('GET', `/providers/${id}`),
      await api().call('GET', '/providers'),
      await api().call('GET', '/audit'),
    ]
    for (const { status, text } of replies) {
      expect(status).toBeLessThan(300)
      expect(text).not.toContain(credential)
    }
    expect(jsonOf(replies[3] as (typeof replies)[0])).toMatchObject({ credential_set: true, base_url })
    const refused = await api().call('PUT', `/providers/${id}`, { credential: { key_id: credential } })
    expect(refused.status).toBe(422)
    expect(refused.text).toContain('takes `secret`')
    expect(refused.text).not.toContain(credential)
  })

  it('stops at providers outside of what may be called', async () => {
    const refused = [
      'http://127.0.0.1:1',
      'https://10.0.0.1',
      'http://example.com',
      'https://localhost',
      'ftp://x',
      'x',
    ]
    for (const base_url of refused) {
      const own = { name: uniqueName('provider'), kind: 'anthropic', base_url, credential: 'x' }
      const answer = await api().call('POST', '/providers', own)
      expect(jsonOf(answer), base_url).toMatchObject({
        error: 'Unprocessable Entity',
        message: expect.stringMatching(/^base_url: /),
      })
      expect(answer.status).toBe(422)
    }
  })
})

describe('errors of the management API', () => {
  it('name what is wrong with a body', async () => {
    const answer = await api().call('POST', '/organizations', { name: '', colour: 'red' })
    expect(answer.status).toBe(400)
    expect(jsonOf(answer)).toEqual({
      error: 'Bad Request',
      message: expect.stringMatching(/name: .*slug: is required.*colour/),
      details: { issues: expect.any(Array) },
    })
  })

  it.each([
    ['{"name":', 'application/json'],
    ['name=x', 'application/x-www-form-urlencoded'],
    ['', 'application/json'],
  ])('refuse the body %s as %s', async (body, type) => {
    const headers = { authorization: `Bearer ${gateway().adminToken}`, 'content-type': type }
    const answer = await send(`${gateway().baseUrl}/api/organizations`, { method: 'POST', headers, body })
    expect(answer.status).toBe(400)
    expect(jsonOf(answer)).toMatchObject({ error: 'Bad Request', message: expect.stringMatching(/JSON/) })
  })

  it('refuse a filter with what no column can be compared with', async () => {
    const { base } = await createTenant(gateway(), { credits: 0, models: [] })
    const filters = ['grants?model_id=', 'integrations?slug=', 'integration-grants?integration=']
    for (const filter of filters) {
      const answer = await api().call('GET', `${base}/${filter}a%00b`)
      expect([filter, answer.status]).toEqual([filter, 400])
      expect((await api().call('GET', `${base}/${filter}a`)).status).toBe(200)
    }
  })

  it('refuse a parameter nobody knows, and a cursor that no list gave out', async () => {
    for (const query of ['?colour=red', '?cursor=x', '?limit=0', '?limit=1000']) {
      const answer = await api().call('GET', `/organizations${query}`)
      expect(answer.status, query).toBe(400)
      expect(jsonOf(answer)).toMatchObject({ error: 'Bad Request' })
    }
  })

  it('tell names that are taken', async () => {
    const tenant = await createTenant(gateway())
    const { slug } = await api().ask('GET', tenant.base)
    const answer = await api().call('POST', '/organizations', { name: 'Second', slug })
    expect(answer.status).toBe(422)
    expect(jsonOf(answer)).toEqual({ error: 'Unprocessable Entity', message: `The slug ${slug} is taken.` })
  })

  it('tell nothing apart that belongs to another organization from what does not exist', async () => {
    const [mine, other] = await Promise.all([createTenant(gateway()), createTenant(gateway())])
    for (const [method, path] of [
      ['GET', `/users/${other.userId}`],
      ['PUT', `/users/${other.userId}`],
      ['DELETE', `/users/${other.userId}`],
      ['GET', `/keys/${other.keyId}`],
      ['DELETE', `/keys/${other.keyId}`],
    ] as const) {
      const foreign = await api().call(method, mine.base + path, method === 'PUT' ? { name: 'x' } : undefined)
      expect(foreign.status, `${method} ${path}`).toBe(404)
      expect(jsonOf(foreign)).toMatchObject({
        error: 'Not found',
        message: expect.stringMatching(/ not found\.$/),
      })
    }
    const list = await send(`${gateway().baseUrl}/v1/models`, { headers: bearer(other.key) })
    expect(list.status).toBe(200)
  })
})

describe('checkpoints over all chains', () => {
  it('can be made and verify', async () => {
    const tenant = await createTenant(gateway())
    await flush(gateway(), tenant)
    const made = await api().ask<{ id: string; chains: number }>('POST', '/audit/checkpoints')
    expect(made.chains).toBeGreaterThan(0)
    expect(await api().ask('GET', '/audit/checkpoints/verify')).toMatchObject({
      ok: true,
      first_broken: null,
    })
  })
})

describe('what is open to everybody', () => {
  it('answers whether anybody is there', async () => {
    for (const method of ['GET', 'HEAD']) {
      const answer = await send(`${gateway().baseUrl}/api/hello`, { method })
      expect([answer.status, answer.text]).toEqual([200, ''])
      expect(answer.headers['x-request-id']).toBeDefined()
    }
    expect(jsonOf(await send(`${gateway().baseUrl}/health`))).toEqual({ status: 'ok' })
  })
})
