import { beforeAll, describe, expect, it, vi } from 'vitest'
import { signedInBrowser } from '../harness/console-browser.ts'
import { gateway } from '../harness/gateway.ts'
import { auditEntries, flush } from '../harness/records.ts'
import { jsonOf, send } from '../harness/send.ts'
import { addKey, addMember, administrator, bearer, createTenant, type Tenant } from '../harness/tenant.ts'

interface Key {
  id: string
  user_id: string
  label: string
  scopes: string[]
  compatibility: string
  expires_at: string | null
  last_used_at: string | null
  created_at: string
}
type NewKey = Key & { key: string; replaces: string }

const DAY = 24 * 60 * 60 * 1_000

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const api = () => administrator(gateway())
const pathOf = (keyId: string) => `${tenant.base}/keys/${keyId}`
const show = (keyId: string) => api().ask<Key>('GET', pathOf(keyId))
const rotate = (keyId: string, body: object = {}) =>
  api().ask<NewKey>('POST', `${pathOf(keyId)}/rotate`, body)

const statusOf = async (key: string) =>
  (await send(`${gateway().baseUrl}/v1/models`, { headers: bearer(key) })).status

/** Milliseconds between a time of the API and another one. */
const apart = (time: string | null, other: number) => Math.abs(Date.parse(String(time)) - other)

describe('a key that is rotated', () => {
  it('works on for a day, beside one with its user, label, scopes and compatibility', async () => {
    const more = { label: 'build server', scopes: ['models', 'mcp'], compatibility: 'open_responses' }
    const old = await addKey(gateway(), tenant.base, tenant.userId, more)
    const next = await rotate(old.id)
    expect(next).toMatchObject({ ...more, user_id: tenant.userId, replaces: old.id, expires_at: null })
    expect(next.id).not.toBe(old.id)
    expect(await statusOf(next.key)).toBe(200)
    expect(await statusOf(old.key)).toBe(200)
    expect(apart((await show(old.id)).expires_at, Date.now() + DAY)).toBeLessThan(60_000)
    const entry = (await auditEntries(gateway(), tenant)).find(({ action }) => action === 'api_key.rotated')
    expect(entry?.record).toMatchObject({ resource: `keys/${next.id}`, detail: { replaces: old.id } })
    expect(JSON.stringify(entry)).not.toContain(next.key)
  })

  it('fails from the next call on where no overlap is wanted', async () => {
    const old = await addKey(gateway(), tenant.base, tenant.userId)
    expect(await statusOf(old.key)).toBe(200)
    const next = await rotate(old.id, { ends_in_seconds: 0 })
    expect(await statusOf(old.key)).toBe(401)
    expect(await statusOf(next.key)).toBe(200)
  })

  it('passes on the length of its life, unless another one is given', async () => {
    const expiry = new Date(Date.now() + 90 * DAY).toISOString()
    const old = await addKey(gateway(), tenant.base, tenant.userId, { expires_at: expiry })
    expect(apart((await rotate(old.id)).expires_at, Date.now() + 90 * DAY)).toBeLessThan(60_000)
    const another = await addKey(gateway(), tenant.base, tenant.userId, { expires_at: expiry })
    expect((await rotate(another.id, { expires_at: null })).expires_at).toBeNull()
  })

  it('does not live longer than it would have', async () => {
    const expiry = new Date(Date.now() + 60_000).toISOString()
    const old = await addKey(gateway(), tenant.base, tenant.userId, { expires_at: expiry })
    await rotate(old.id)
    expect((await show(old.id)).expires_at).toBe(expiry)
  })

  it('is replaced once, also by two at once', async () => {
    const old = await addKey(gateway(), tenant.base, tenant.userId)
    const answers = await Promise.all([1, 2, 3].map(() => api().call('POST', `${pathOf(old.id)}/rotate`, {})))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 422, 422])
    const next = jsonOf(answers.find(({ status }) => status === 201) ?? expect.fail('none'))
    expect(await show(old.id)).toMatchObject({ replaced_by: next.id })
    const entries = await auditEntries(gateway(), tenant)
    expect(entries.filter(({ action }) => action === 'change.failed').length).toBeGreaterThanOrEqual(2)
  })

  it('must be active, and of the organization', async () => {
    const old = await addKey(gateway(), tenant.base, tenant.userId)
    await api().ask('DELETE', pathOf(old.id))
    const other = await createTenant(gateway())
    const refused = await api().call('POST', `${pathOf(old.id)}/rotate`, {})
    expect(refused.status, refused.text).toBe(422)
    expect((await api().call('POST', `${pathOf(other.keyId)}/rotate`, {})).status).toBe(404)
    const expired = await addKey(gateway(), tenant.base, tenant.userId)
    await rotate(expired.id, { ends_in_seconds: 0 })
    expect((await api().call('POST', `${pathOf(expired.id)}/rotate`, {})).status).toBe(422)
    const past = { expires_at: '2020-01-01T00:00:00Z' }
    const live = await addKey(gateway(), tenant.base, tenant.userId)
    expect((await api().call('POST', `${pathOf(live.id)}/rotate`, past)).status).toBe(422)
    const later = (await show(live.id)).expires_at
    expect(later).toBeNull()
  })

  it('belongs to whoever rotates it, or to a service account', async () => {
    const [admin, member] = await Promise.all([
      addMember(gateway(), tenant.base, { role: 'admin' }),
      addMember(gateway(), tenant.base),
    ])
    const service = await addMember(gateway(), tenant.base, { kind: 'service' })
    const [ofMember, ofService] = await Promise.all([
      addKey(gateway(), tenant.base, member),
      addKey(gateway(), tenant.base, service),
    ])
    const [asAdmin, asMember] = await Promise.all([
      signedInBrowser(gateway(), tenant.base, admin),
      signedInBrowser(gateway(), tenant.base, member),
    ])
    const rotateBy = (browser: typeof asAdmin, { id }: { id: string }) =>
      browser.call('POST', `${pathOf(id)}/rotate`, {})
    expect((await rotateBy(asAdmin, ofMember)).status).toBe(403)
    expect((await rotateBy(asMember, ofService)).status).toBe(404)
    const own = await rotateBy(asMember, ofMember)
    expect(own.status, own.text).toBe(201)
    expect(await statusOf(String(jsonOf(own).key))).toBe(200)
    expect((await rotateBy(asAdmin, ofService)).status).toBe(201)
  })
})

describe('the label of a key', () => {
  it('can be changed alone', async () => {
    const key = await addKey(gateway(), tenant.base, tenant.userId, { compatibility: 'open_responses' })
    const changed = await api().ask<Key>('PUT', pathOf(key.id), { label: 'laptop' })
    expect(changed).toMatchObject({ label: 'laptop', compatibility: 'open_responses' })
    expect((await api().call('PUT', pathOf(key.id), {})).status).toBe(400)
  })

  it('is in no record, which the erasure of a person leaves', async () => {
    const key = await addKey(gateway(), tenant.base, tenant.userId, { label: 'the laptop of Ada Lovelace' })
    await api().ask('PUT', pathOf(key.id), { label: 'the phone of Ada Lovelace' })
    const next = await rotate(key.id)
    await api().ask('DELETE', pathOf(next.id))
    const records = (await auditEntries(gateway(), tenant)).filter(({ record }) =>
      [key.id, next.id].some((id) => record.resource === `keys/${id}`),
    )
    expect(records.map(({ action }) => action).sort()).toEqual([
      'api_key.created',
      'api_key.revoked',
      'api_key.rotated',
      'api_key.updated',
    ])
    expect(JSON.stringify(records)).not.toContain('Lovelace')
    expect(records.find(({ action }) => action === 'api_key.updated')?.record).toMatchObject({
      detail: { user_id: tenant.userId, label_changed: true },
    })
  })
})

describe('the last use of a key', () => {
  it('is that of a call with it, once its record is in Postgres', async () => {
    const [used, unused] = await Promise.all([
      addKey(gateway(), tenant.base, tenant.userId),
      addKey(gateway(), tenant.base, tenant.userId),
    ])
    expect(await statusOf(used.key)).toBe(200)
    // The call's record may come after its answer.
    const first = await vi.waitFor(async () => {
      await flush(gateway(), tenant)
      const { last_used_at: at } = await show(used.id)
      expect(apart(at, Date.now())).toBeLessThan(60_000)
      return at
    })
    expect((await show(unused.id)).last_used_at).toBeNull()
    const revoked = await addKey(gateway(), tenant.base, tenant.userId)
    await api().ask('DELETE', pathOf(revoked.id))
    expect(await statusOf(revoked.key)).toBe(401)
    // A second call within the minute writes nothing.
    expect(await statusOf(used.key)).toBe(200)
    await flush(gateway(), tenant)
    expect((await show(used.id)).last_used_at).toBe(first)
    expect((await show(revoked.id)).last_used_at).toBeNull()
  })
})
