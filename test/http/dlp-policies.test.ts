import { describe, expect, it } from 'vitest'
import { gateway, query } from '../harness/gateway.ts'
import { auditEntries, readList } from '../harness/records.ts'
import { jsonOf } from '../harness/send.ts'
import { administrator, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'

const api = () => administrator(gateway())
const ADDRESS = 'ada.lovelace@example.com'

const somePolicy = (values: Record<string, unknown> = {}) => ({
  name: uniqueName('policy'),
  directions: ['request', 'response'],
  rules: [{ detector: 'email', action: 'redact' }],
  ...values,
})

const epochOf = async ({ organizationId }: Tenant) => {
  const [row] = await query(gateway(), 'select epoch from organizations where id = $1', [organizationId])
  return Number(row?.epoch)
}

describe('policies of data-loss prevention', () => {
  it('are made, changed, looked up in every version and taken out of use, on record', async () => {
    const tenant = await createTenant(gateway())
    const policies = `${tenant.base}/dlp/policies`
    const { ask, call } = api()
    const started = await epochOf(tenant)
    const made = await ask<{ id: string; version: number }>('POST', policies, somePolicy())
    expect(made).toMatchObject({ version: 1, enabled: true, scope: {} })
    const path = `${policies}/${made.id}`
    const scope = { user_ids: [tenant.userId], model_ids: ['scripted-chat'] }
    expect(await ask('PUT', path, { version: 1, scope })).toMatchObject({ version: 2, scope })
    const late = await call('PUT', path, { version: 1, enabled: false })
    expect(late.status).toBe(422)
    expect(jsonOf(late)).toEqual({
      error: 'Unprocessable Entity',
      message: expect.stringContaining('its version is 2'),
    })
    expect(await ask('PUT', path, { version: 2, enabled: false })).toMatchObject({ version: 3, scope })
    expect(await ask('DELETE', path)).toEqual({ id: made.id, deleted: true })
    expect((await call('GET', path)).status).toBe(404)
    expect(await epochOf(tenant)).toBe(started + 4)

    const versions = await readList<{ version: number }>(gateway(), `${path}/versions`)
    expect(versions.map(({ version }) => version)).toEqual([3, 2, 1])
    expect(await ask('GET', `${path}/versions/1`)).toMatchObject({ version: 1, enabled: true, scope: {} })
    expect(await ask('GET', `${path}/versions/2`)).toMatchObject({ version: 2, enabled: true, scope })
    const entries = await auditEntries(gateway(), tenant)
    expect(entries.map(({ action }) => action).slice(0, 4)).toEqual([
      'dlp_policy.deleted',
      'dlp_policy.updated',
      'dlp_policy.updated',
      'dlp_policy.created',
    ])
    expect(await ask('GET', `${tenant.base}/audit/verify`)).toMatchObject({ ok: true })
  })

  it('belong to one organization', async () => {
    const [mine, theirs] = await Promise.all([createTenant(gateway()), createTenant(gateway())])
    const { id } = await api().ask('POST', `${theirs.base}/dlp/policies`, somePolicy())
    for (const [method, path, body] of [
      ['GET', `/dlp/policies/${id}`, undefined],
      ['PUT', `/dlp/policies/${id}`, { version: 1, enabled: false }],
      ['DELETE', `/dlp/policies/${id}`, undefined],
      ['GET', `/dlp/policies/${id}/versions`, undefined],
      ['GET', `/dlp/policies/${id}/versions/1`, undefined],
      ['POST', '/dlp/test', { policy_id: id, text: 'x' }],
      ['POST', '/dlp/dry-run', { policy_id: id, samples: ['x'] }],
    ] as const) {
      const answer = await api().call(method, mine.base + path, body)
      expect(answer.status, `${method} ${path}`).toBe(404)
    }
    const foreign = somePolicy({ scope: { user_ids: [theirs.userId] } })
    expect((await api().call('POST', `${mine.base}/dlp/policies`, foreign)).status).toBe(422)
    expect(await readList(gateway(), `${mine.base}/dlp/policies`)).toEqual([])
    expect(await readList(gateway(), `${theirs.base}/dlp/policies`)).toMatchObject([{ id, version: 1 }])
  })

  it('show what they would do to a text and to many', async () => {
    const tenant = await createTenant(gateway())
    const { name: _name, ...policy } = somePolicy()
    const text = `Write to ${ADDRESS}.`
    expect(await api().ask('POST', `${tenant.base}/dlp/test`, { policy, text })).toMatchObject({
      direction: 'request',
      spans: [{ start: 9, end: 33, detector: 'email', category: 'contact', action: 'redact' }],
      blocked: false,
      text: 'Write to [REDACTED:EMAIL].',
    })
    const samples = [text, 'nothing', `${text} ${text}`]
    expect(await api().ask('POST', `${tenant.base}/dlp/dry-run`, { policy, samples })).toEqual({
      direction: 'request',
      samples: 3,
      with_findings: 2,
      blocked: 0,
      findings: [{ detector: 'email', category: 'contact', action: 'redact', count: 3 }],
    })
  })

  it('name detectors that the engine has', async () => {
    const list = await api().ask<{ data: Array<{ id: string }> }>('GET', '/dlp/detectors')
    expect(list.data.map(({ id }) => id)).toEqual(expect.arrayContaining(['card', 'email', 'iban', 'phone']))
    expect(new Set(list.data.map(({ id }) => id)).size).toBe(list.data.length)
  })
})
