import { and, eq, sql } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { auditRecords, usageEvents } from '../../../schema/governance.ts'
import { groups } from '../../../schema/identity.ts'
import type { CallOpening, CallOutcome } from '../../../src/governance/audit-record.ts'
import { NO_USAGE } from '../../../src/governance/credits.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from '../../../src/governance/principal.ts'
import {
  create,
  type Harness,
  seedTenant,
  someModel,
  someProvider,
  startManagement,
  type Tenant,
  uniqueName,
} from './harness.ts'

let harness: Harness
let tenant: Tenant

beforeAll(async () => {
  harness = await startManagement()
  tenant = await seedTenant(harness)
}, 60_000)
afterEach(() => {
  harness.ledgers.away = false
})
afterAll(() => harness.close())

const NOON = Date.UTC(2026, 10, 20, 12)
const DAY = 86_400_000

interface Call {
  at: number
  model?: string
  keyId?: string | null
  status?: number
  cost?: number
}

/** Makes the ledger of a tenant record calls, as the gateway would. */
async function recordCalls(of: Tenant, calls: Call[]): Promise<void> {
  const ledger = harness.ledgers.of(of.organization.id)
  for (const { at, model = 'small', keyId = of.key.id, status = 200, cost = 10 } of calls) {
    const opening: CallOpening = {
      callId: `call_${crypto.randomUUID()}`,
      requestId: 'req_1',
      organizationId: of.organization.id,
      at,
      actor: { userId: keyId === null ? null : of.user.id, keyId, administrator: null, ip: null },
      surface: model === 'small' ? 'messages' : 'chat_completions',
      action: 'POST /v1/messages',
      modelId: model,
    }
    const outcome: CallOutcome = {
      status,
      errorCode: null,
      provider: 'acme',
      attempts: [],
      usage: { ...NO_USAGE, input: 100, output: 7 },
      provenance: 'reported',
      cost,
      durationMilliseconds: 5,
      request: null,
      response: null,
      dlp: null,
      connectionId: null,
      flags: [],
    }
    await ledger.record(opening, outcome)
  }
  await ledger.flush()
}

/** Reads a list to its end. @param between what happens after each page. */
async function readAll(path: string, limit: number, between: () => Promise<unknown> = async () => {}) {
  const items = []
  let cursor: string | null = null
  do {
    const query = `limit=${limit}${cursor === null ? '' : `&cursor=${cursor}`}`
    const answer = await harness.request('GET', `${path}${path.includes('?') ? '&' : '?'}${query}`)
    expect(answer.status, answer.text).toBe(200)
    expect(answer.json.has_more).toBe(answer.json.next_cursor !== null)
    expect(answer.json.data.length).toBeLessThanOrEqual(limit)
    items.push(...answer.json.data)
    cursor = answer.json.next_cursor
    await between()
  } while (cursor !== null && items.length < 100)
  return items
}

describe('lists', () => {
  const add = {
    users: (base: string) =>
      create(harness, `${base}/users`, { email: `${uniqueName('x')}@example.com`, name: 'X' }),
    groups: (base: string) => create(harness, `${base}/groups`, { name: uniqueName('x') }),
    keys: async (base: string, of: Tenant) =>
      create(harness, `${base}/keys`, { user_id: of.user.id, label: 'x' }),
    grants: (base: string, of: Tenant) => grantOnNewGroup(base, of),
  }

  async function grantOnNewGroup(base: string, _of: Tenant) {
    const group = await create(harness, `${base}/groups`, { name: uniqueName('x') })
    return create(harness, `${base}/grants`, { subject_type: 'group', subject_id: group.id, model_id: '*' })
  }

  it.each(Object.keys(add) as Array<keyof typeof add>)(
    '%s: every row that was there is shown once while rows are added',
    async (name) => {
      const own = await seedTenant(harness)
      for (let made = 0; made < 4; made += 1) await add[name](own.base, own)
      const before = await readAll(`${own.base}/${name}`, 200)
      const paged = await readAll(`${own.base}/${name}`, 2, () => add[name](own.base, own))
      expect(paged).toEqual(before)
      expect(before.length).toBe(5)
    },
  )

  it('rows of one instant, to the microsecond, keep their order', async () => {
    const own = await seedTenant(harness)
    const instants = ['2026-01-01T00:00:00.000001Z', '2026-01-01T00:00:00.000002Z']
    for (const instant of instants) {
      const rows = Array.from({ length: 3 }, () => ({
        organizationId: own.organization.id,
        name: uniqueName('same'),
        createdAt: sql`${instant}::timestamptz`,
      }))
      await harness.database.insert(groups).values(rows)
    }
    const all = await readAll(`${own.base}/groups`, 200)
    expect(all.length).toBe(7)
    for (const limit of [1, 2, 3]) expect(await readAll(`${own.base}/groups`, limit)).toEqual(all)
  })

  it('organizations are found by slug, users by address, keys by user, grants by model', async () => {
    const own = await seedTenant(harness)
    const found = async (path: string) => (await harness.request('GET', path)).json.data
    const { slug, id } = own.organization
    expect(await found(`/organizations?slug=${slug}`)).toMatchObject([{ id }])
    expect(await found('/organizations?slug=nobody')).toEqual([])
    expect(await found(`${own.base}/users?email=${own.user.email.toUpperCase()}`)).toMatchObject([
      { id: own.user.id },
    ])
    expect(await found(`${own.base}/keys?user_id=${crypto.randomUUID()}`)).toEqual([])
    expect(await found(`${own.base}/keys?user_id=${own.user.id}`)).toHaveLength(1)
    expect(await found(`${own.base}/grants?model_id=*`)).toHaveLength(1)
    expect(await found(`${own.base}/grants?model_id=other`)).toEqual([])
  })

  it('models come in order of their ids, with slashes and routes', async () => {
    const provider = await create(harness, '/providers', someProvider())
    const ids = ['page/a', 'page/b/c', 'page/d', 'page/e']
    for (const id of ids) {
      expect((await harness.request('PUT', `/models/${id}`, someModel(provider.id))).status).toBe(201)
    }
    const paged = await readAll('/models', 2)
    expect(paged.map(({ id }) => id)).toEqual(ids)
    expect(paged[1]).toMatchObject({
      prices: { input: 1_000_000, cache_read: 1_000_000, cache_write_1_hour: 1_000_000 },
      routes: [{ provider_id: provider.id, provider: provider.name, upstream_model: 'upstream-model' }],
    })
    expect((await harness.request('GET', '/models/page%2Fb%2Fc')).json.id).toBe('page/b/c')
    const unknown = await harness.request('PUT', '/models/page/f', someModel(crypto.randomUUID()))
    expect(unknown.status).toBe(404)
    await harness.request('DELETE', '/models/page/a')
    expect((await harness.request('GET', '/models/page/a')).json.disabled_at).toEqual(expect.any(String))
    const again = await harness.request('PUT', '/models/page/a', someModel(provider.id))
    expect(again).toMatchObject({ status: 200, json: { disabled_at: null } })
  })
})

describe('credits', () => {
  it('are granted once for each id, in whole micro-credits', async () => {
    const own = await seedTenant(harness)
    const path = `${own.base}/credits`
    const grant = { amount: 1_000, reason: 'start', id: 'order-1' }
    expect(await create(harness, path, grant)).toMatchObject({ ...grant, balance: 1_000, available: 1_000 })
    expect(await create(harness, path, grant)).toMatchObject({ balance: 1_000 })
    expect(await create(harness, path, { amount: -300, reason: 'correction' })).toMatchObject({
      id: expect.stringMatching(/^grant_/),
      balance: 700,
    })
    await recordCalls(own, [{ at: NOON, cost: 50 }])
    const shown = await harness.request('GET', `${path}?limit=200`)
    expect(shown.json).toMatchObject({ balance: 650, reserved: 0, available: 650 })
    expect(
      shown.json.data.map(({ kind, amount }: { kind: string; amount: number }) => [kind, amount]),
    ).toEqual([
      ['grant', -300],
      ['grant', 1_000],
      ['settlement', -50],
    ])
    expect(await readAll(path, 1)).toEqual(shown.json.data)
    const otherAmount = await harness.request('POST', path, { ...grant, amount: 2_000 })
    expect(otherAmount.status).toBe(422)
    const granted = harness.ledgers.changes.filter(
      ({ organizationId }) => organizationId === own.organization.id,
    )
    expect(granted.filter(({ action }) => action === 'credits.granted')).toMatchObject([
      { resource: 'credits/order-1', detail: { amount: 1_000, reason: 'start' } },
      { detail: { amount: -300 } },
    ])
  })

  it('tell the id to repeat with when the ledger does not answer', async () => {
    harness.ledgers.away = true
    const answer = await harness.request('POST', `${tenant.base}/credits`, { amount: 1, reason: 'x' })
    expect(answer).toMatchObject({
      status: 500,
      json: { details: { id: expect.stringMatching(/^grant_/) } },
    })
  })
})

describe('usage', () => {
  it('is summed by model, key, user or day, within a period', async () => {
    const own = await seedTenant(harness)
    await recordCalls(own, [
      { at: NOON - DAY, model: 'large', cost: 100 },
      { at: NOON, model: 'small' },
      { at: NOON, model: 'small', keyId: null },
      { at: NOON + DAY, model: 'small', cost: 11 },
    ])
    const totals = async (query: string) =>
      (await harness.request('GET', `${own.base}/usage?${query}`)).json.data
    const all = await totals('group_by=model')
    expect(all).toMatchObject([
      { model: 'large', calls: 1, input_tokens: 100, output_tokens: 7, cost: 100 },
      { model: 'small', calls: 3, input_tokens: 300, output_tokens: 21, cost: 31 },
    ])
    expect(await readAll(`${own.base}/usage?group_by=model`, 1)).toEqual(all)
    expect(await totals('group_by=key')).toMatchObject([
      { key: null, calls: 1 },
      { key: own.key.id, calls: 3 },
    ])
    expect(await totals('group_by=user')).toMatchObject([{ user: null }, { user: own.user.id }])
    expect(await totals('group_by=day')).toMatchObject([
      { day: '2026-11-19', cost: 100 },
      { day: '2026-11-20', cost: 20 },
      { day: '2026-11-21', cost: 11 },
    ])
    expect(await totals('from=2026-11-20&to=2026-11-21')).toMatchObject([{ model: 'small', calls: 2 }])
    const events = await readAll(`${own.base}/usage/events`, 2)
    expect(events).toHaveLength(4)
    expect(events[0]).toMatchObject({ model: 'small', cost: 11, provenance: 'reported', provider: 'acme' })
    const one = await harness.request('GET', `${own.base}/usage/events?to=2026-11-20T00:00:00Z`)
    expect(one.json.data).toMatchObject([{ model: 'large' }])
  })

  it('sums beyond 32 bits', async () => {
    const own = await seedTenant(harness)
    await recordCalls(own, [
      { at: NOON, cost: 3_000_000_000 },
      { at: NOON, cost: 3_000_000_000 },
    ])
    const answer = await harness.request('GET', `${own.base}/usage`)
    expect(answer.json.data).toMatchObject([{ cost: 6_000_000_000 }])
  })
})

describe('audit', () => {
  it('is filtered, paged and shown with the whole record', async () => {
    const own = await seedTenant(harness)
    await recordCalls(own, [
      { at: NOON, model: 'small' },
      { at: NOON, model: 'large', status: 403 },
      { at: NOON + 1, model: 'small', keyId: null },
    ])
    const found = async (query: string) =>
      (await harness.request('GET', `${own.base}/audit?${query}`)).json.data
    expect(await found('model=large')).toMatchObject([
      {
        kind: 'call',
        model: 'large',
        status: 403,
        record: { provider: 'acme', action: 'POST /v1/messages' },
      },
    ])
    expect(await found('status=403')).toHaveLength(1)
    expect(await found('surface=messages')).toHaveLength(2)
    expect(await found(`key_id=${own.key.id}`)).toHaveLength(2)
    expect(await found(`user_id=${own.user.id}`)).toHaveLength(2)
    expect(await found('from=2026-11-20T12:00:00.001Z&to=2026-11-20T13:00:00Z')).toHaveLength(1)
    const changes = await found('surface=management&limit=200')
    expect(changes.map(({ action }: { action: string }) => action)).toContain('grant.created')
    const calls = await found('to=2026-11-20T13:00:00Z')
    expect(await readAll(`${own.base}/audit?to=2026-11-20T13:00:00Z`, 1)).toEqual(calls)
  })

  it('records who looked, and shows nothing when it cannot', async () => {
    const own = await seedTenant(harness)
    await harness.request('GET', `${own.base}/audit?model=small`)
    expect(harness.ledgers.changes.at(-1)).toMatchObject({
      organizationId: own.organization.id,
      action: 'audit.viewed',
      detail: { filter: { model: 'small' }, limit: 50 },
    })
    harness.ledgers.away = true
    const answer = await harness.request('GET', `${own.base}/audit`)
    expect(answer).toMatchObject({
      status: 500,
      json: { message: expect.stringContaining('nothing is shown') },
    })
  })

  it('shows a record that was altered, whatever it is now', async () => {
    const own = await seedTenant(harness)
    await harness.ledgers.of(own.organization.id).flush()
    const altered = { body: 'no JSON' }
    const first = and(eq(auditRecords.organizationId, own.organization.id), eq(auditRecords.sequence, 1))
    await harness.database.update(auditRecords).set(altered).where(first)
    const shown = await harness.request('GET', `${own.base}/audit`)
    expect(shown.json.data.at(-1)).toMatchObject({ sequence: 1, record: 'no JSON' })
  })

  it('shows the changes to the deployment apart', async () => {
    await create(harness, '/providers', someProvider())
    await harness.request('POST', '/ledger/flush')
    const shown = await harness.request('GET', '/audit?limit=200')
    expect(shown.json.data.length).toBeGreaterThan(0)
    for (const { record } of shown.json.data) expect(record.organizationId).toBe(DEPLOYMENT_ORGANIZATION_ID)
  })
})

describe('verification', () => {
  const verify = async (of: Tenant, query = '') =>
    (await harness.request('GET', `${of.base}/audit/verify${query}`)).json

  async function tenantWithCalls(): Promise<Tenant> {
    const own = await seedTenant(harness)
    await recordCalls(own, [{ at: NOON }, { at: NOON }, { at: NOON }])
    return own
  }

  it('walks a chain page by page', async () => {
    const own = await tenantWithCalls()
    const { sequence } = (await harness.request('GET', `${own.base}/audit/chains`)).json.data[0]
    expect(sequence).toBeGreaterThan(6)
    expect(await verify(own)).toMatchObject({
      ok: true,
      verified: sequence,
      has_more: false,
      first_broken: null,
    })
    let after = 0
    for (let more = true; more; ) {
      const page = await verify(own, `?limit=2&after_sequence=${after}`)
      expect(page).toMatchObject({ ok: true, after_sequence: after, first_broken: null })
      expect(page.to_sequence).toBeGreaterThan(after)
      after = page.to_sequence
      more = page.has_more
    }
    expect(after).toBe(sequence)
    expect(await verify(own, `?after_sequence=${sequence}`)).toMatchObject({ ok: true, verified: 0 })
    expect(await verify(own, `?after_sequence=${sequence + 5}`)).toMatchObject({
      ok: false,
      first_broken: { sequence: sequence + 5, reason: 'missing' },
    })
    expect(await verify(own, '?shard=7')).toMatchObject({ ok: true, verified: 0 })
  })

  it('names the first broken record', async () => {
    const where = (of: Tenant, sequence: number) =>
      and(eq(auditRecords.organizationId, of.organization.id), eq(auditRecords.sequence, sequence))
    const altered = await tenantWithCalls()
    await harness.database.update(auditRecords).set({ status: 500 }).where(where(altered, 4))
    expect(await verify(altered)).toMatchObject({
      ok: false,
      verified: 3,
      first_broken: { sequence: 4, reason: 'columns_differ' },
    })
    const deleted = await tenantWithCalls()
    await harness.database.delete(auditRecords).where(where(deleted, 2))
    expect(await verify(deleted)).toMatchObject({
      ok: false,
      first_broken: { sequence: 2, reason: 'missing' },
    })
    const byDeployment = await harness.request(
      'GET',
      `/audit/verify?organization_id=${deleted.organization.id}`,
    )
    expect(byDeployment.json).toMatchObject({ ok: false, organization_id: deleted.organization.id })
  })

  it('looks into the deployment itself, and into checkpoints', async () => {
    await create(harness, '/providers', someProvider())
    await harness.request('POST', '/ledger/flush')
    const deployment = await harness.request('GET', '/audit/verify')
    expect(deployment.json).toMatchObject({ ok: true, organization_id: DEPLOYMENT_ORGANIZATION_ID })
    const own = await tenantWithCalls()
    const checkpoint = await create(harness, '/audit/checkpoints', undefined)
    expect(checkpoint.chains).toBeGreaterThan(1)
    expect(harness.ledgers.changes.at(-1)).toMatchObject({ action: 'audit_checkpoint.created' })
    const check = async () => (await harness.request('GET', '/audit/checkpoints/verify')).json
    expect(await check()).toMatchObject({ ok: true, checkpoints: 1 })
    const { sequence } = (await harness.request('GET', `${own.base}/audit/chains`)).json.data[0]
    const last = and(
      eq(auditRecords.organizationId, own.organization.id),
      eq(auditRecords.sequence, sequence),
    )
    await harness.database.delete(auditRecords).where(last)
    expect(await check()).toMatchObject({ ok: false, first_broken: { reason: 'chain_differs' } })
  })

  it('needs no usage to be there', async () => {
    const own = await seedTenant(harness)
    await harness.request('POST', `${own.base}/ledger/flush`)
    const rows = harness.database.select().from(usageEvents)
    expect(await rows.where(eq(usageEvents.organizationId, own.organization.id))).toEqual([])
    expect(await verify(own)).toMatchObject({ ok: true })
  })
})
