import { sql } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { groups } from '../../../schema/identity.ts'
import {
  create,
  type Harness,
  type Organization,
  seedOrganization,
  someModel,
  someProvider,
  startManagement,
  uniqueName,
} from './harness.ts'
import { DAY, NOON, readAll, recordCalls } from './reading.ts'

let harness: Harness
let tenant: Organization

beforeAll(async () => {
  harness = await startManagement()
  tenant = await seedOrganization(harness)
}, 60_000)
afterEach(() => {
  harness.ledgers.away = false
})
afterAll(() => harness.close())

describe('lists', () => {
  const add = {
    users: (base: string) =>
      create(harness, `${base}/users`, { email: `${uniqueName('x')}@example.com`, name: 'X' }),
    groups: (base: string) => create(harness, `${base}/groups`, { name: uniqueName('x') }),
    keys: async (base: string, of: Organization) =>
      create(harness, `${base}/keys`, { user_id: of.user.id, label: 'x' }),
    grants: (base: string, of: Organization) => grantOnNewGroup(base, of),
  }

  async function grantOnNewGroup(base: string, _of: Organization) {
    const group = await create(harness, `${base}/groups`, { name: uniqueName('x') })
    return create(harness, `${base}/grants`, { subject_type: 'group', subject_id: group.id, model_id: '*' })
  }

  it.each(Object.keys(add) as Array<keyof typeof add>)(
    '%s: every row that was there is shown once while rows are added',
    async (name) => {
      const own = await seedOrganization(harness)
      for (let made = 0; made < 4; made += 1) await add[name](own.base, own)
      const before = await readAll(harness, `${own.base}/${name}`, 200)
      const paged = await readAll(harness, `${own.base}/${name}`, 2, () => add[name](own.base, own))
      expect(paged).toEqual(before)
      expect(before.length).toBe(5)
    },
  )

  it('rows of one instant, to the microsecond, keep their order', async () => {
    const own = await seedOrganization(harness)
    const instants = ['2026-01-01T00:00:00.000001Z', '2026-01-01T00:00:00.000002Z']
    for (const instant of instants) {
      const rows = Array.from({ length: 3 }, () => ({
        organizationId: own.organization.id,
        name: uniqueName('same'),
        createdAt: sql`${instant}::timestamptz`,
      }))
      await harness.database.insert(groups).values(rows)
    }
    const all = await readAll(harness, `${own.base}/groups`, 200)
    expect(all.length).toBe(7)
    for (const limit of [1, 2, 3]) expect(await readAll(harness, `${own.base}/groups`, limit)).toEqual(all)
  })

  it('organizations are found by slug, users by address, keys by user, grants by model', async () => {
    const own = await seedOrganization(harness)
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
    const paged = await readAll(harness, '/models', 2)
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
    const own = await seedOrganization(harness)
    const path = `${own.base}/credits`
    const grant = { amount: 1_000, reason: 'start', id: 'order-1' }
    expect(await create(harness, path, grant)).toMatchObject({ ...grant, balance: 1_000, available: 1_000 })
    expect(await create(harness, path, grant)).toMatchObject({ balance: 1_000 })
    expect(await create(harness, path, { amount: -300, reason: 'correction' })).toMatchObject({
      id: expect.stringMatching(/^grant_/),
      balance: 700,
    })
    await recordCalls(harness, own, [{ at: NOON, cost: 50 }])
    const shown = await harness.request('GET', `${path}?limit=200`)
    expect(shown.json).toMatchObject({ balance: 650, reserved: 0, available: 650 })
    expect(
      shown.json.data.map(({ kind, amount }: { kind: string; amount: number }) => [kind, amount]),
    ).toEqual([
      ['grant', -300],
      ['grant', 1_000],
      ['settlement', -50],
    ])
    expect(await readAll(harness, path, 1)).toEqual(shown.json.data)
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
    const own = await seedOrganization(harness)
    await recordCalls(harness, own, [
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
    expect(await readAll(harness, `${own.base}/usage?group_by=model`, 1)).toEqual(all)
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
    const events = await readAll(harness, `${own.base}/usage/events`, 2)
    expect(events).toHaveLength(4)
    expect(events[0]).toMatchObject({ model: 'small', cost: 11, provenance: 'reported', provider: 'acme' })
    const one = await harness.request('GET', `${own.base}/usage/events?to=2026-11-20T00:00:00Z`)
    expect(one.json.data).toMatchObject([{ model: 'large' }])
  })

  it('sums beyond 32 bits', async () => {
    const own = await seedOrganization(harness)
    await recordCalls(harness, own, [
      { at: NOON, cost: 3_000_000_000 },
      { at: NOON, cost: 3_000_000_000 },
    ])
    const answer = await harness.request('GET', `${own.base}/usage`)
    expect(answer.json.data).toMatchObject([{ cost: 6_000_000_000 }])
  })
})
