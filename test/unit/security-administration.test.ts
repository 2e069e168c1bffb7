import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createApiKey } from '../../src/identity/api-key.ts'
import {
  create,
  dumpDatabase,
  type Harness,
  seedTenant,
  someProvider,
  startManagement,
  type Tenant,
} from './management/harness.ts'

let harness: Harness
let tenant: Tenant

beforeAll(async () => {
  harness = await startManagement()
  tenant = await seedTenant(harness)
}, 60_000)
afterAll(() => harness.close())

describe('a whole key in the wrong place', () => {
  const pasted = createApiKey()
  const recorded = () => JSON.stringify(harness.ledgers.changes)

  it('does not stay in the audit record of who looked, and its public id does', async () => {
    for (const filter of ['key_id', 'user_id', 'model']) {
      const answer = await harness.request('GET', `${tenant.base}/audit?${filter}=${pasted.key}`)
      expect(answer.status, filter).toBe(200)
    }
    expect(recorded()).toContain(`hg_${pasted.id}_[redacted]`)
    expect(recorded()).not.toContain(pasted.key)
  })

  it('does not stay in records of names, reasons, addresses and resources', async () => {
    const named = await create(harness, `${tenant.base}/groups`, { name: `group of ${pasted.key}` })
    await create(harness, `${tenant.base}/credits`, { amount: 1, reason: `for ${pasted.key}` })
    await create(harness, '/providers', someProvider({ base_url: `https://example.com/${pasted.key}` }))
    expect((await harness.request('DELETE', `${tenant.base}/groups/${named.id}`)).status).toBe(200)
    const refused = await harness.request('PUT', `/models/${pasted.key}`, {})
    expect(refused.status).toBe(400)
    expect(recorded()).not.toContain(pasted.key)
  })

  it('is not in the reason that is stored', async () => {
    await create(harness, `${tenant.base}/credits`, { amount: 2, reason: `because of ${pasted.key}!` })
    await harness.ledgers.of(tenant.organization.id).flush()
    const stored = await dumpDatabase(harness.database)
    expect(stored).toContain(`because of hg_${pasted.id}_[redacted]!`)
  })

  it('leaves ids and words alone that only begin like one', async () => {
    const name = 'hg_team task-force-of-the-risk-department'
    await create(harness, `${tenant.base}/groups`, { name })
    expect(recorded()).toContain(name)
  })
})

describe('instants at the ends of time', () => {
  const list = (query: string) => harness.request('GET', `${tenant.base}/${query}`)

  it.each([
    'audit?from=0000-01-01',
    'audit?from=0001-01-01T00:00:00%2B14:00',
    'audit?to=9999-12-31T23:59:59-14:00',
    'usage?from=0000-01-01&to=9999-12-31T23:59:59-14:00',
  ])('bound a period: %s', async (query) => {
    expect((await list(query)).status).toBe(200)
  })

  it('do not turn a period around', async () => {
    const all = await list('audit?from=0000-01-01&to=9999-12-31T23:59:59-14:00')
    expect(all.json.data.length).toBeGreaterThan(0)
    expect((await list('audit?to=0000-01-01')).json.data).toEqual([])
    expect((await list('audit?from=9999-12-31T23:59:59-14:00')).json.data).toEqual([])
  })

  it('are refused as the expiry of a key', async () => {
    const body = { user_id: tenant.user.id, label: 'l', expires_at: '9999-12-31T23:59:59-14:00' }
    const answer = await harness.request('POST', `${tenant.base}/keys`, body)
    expect([answer.status, answer.json.message]).toEqual([422, 'expires_at: must be before the year 10000'])
    const last = await create(harness, `${tenant.base}/keys`, { ...body, expires_at: '9999-12-31T23:59:59Z' })
    expect(last.expires_at).toBe('9999-12-31T23:59:59.000Z')
  })
})

describe('a grant that no balance can hold', () => {
  const most = 1_000_000_000_000_000
  const grant = (amount: number, id: string) =>
    harness.request('POST', `${tenant.base}/credits`, { amount, reason: 'r', id })

  /** Fails as the real ledger does above its largest balance, and as an unavailable object does for every call. */
  const failOnce = (message: string) =>
    vi
      .spyOn(harness.ledgers.of(tenant.organization.id), 'grantCredits')
      .mockRejectedValueOnce(new Error(message))

  it.each([1, -1])('is refused for good (%i)', async (sign) => {
    tenant = await seedTenant(harness)
    for (let made = 0; made < 9; made++) {
      expect((await grant(sign * most, `grant-${made}`)).status).toBe(201)
    }
    failOnce('the balance would leave the range of integers')
    const answer = await grant(sign * most, 'grant-9')
    expect([answer.status, answer.json.message]).toEqual([
      422,
      'The balance would be more than can be counted.',
    ])
  })

  it('is not confused with a ledger that did not answer', async () => {
    tenant = await seedTenant(harness)
    failOnce('the object is away')
    const answer = await grant(5, 'unsure')
    expect([answer.status, answer.json.details]).toEqual([500, { id: 'unsure' }])
    expect((await grant(5, 'unsure')).status).toBe(201)
  })
})
