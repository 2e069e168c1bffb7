import { beforeAll, describe, expect, it } from 'vitest'
import { type ConsoleBrowser, signedInBrowser } from '../harness/console-browser.ts'
import { gateway, query } from '../harness/gateway.ts'
import { auditEntries } from '../harness/records.ts'
import { jsonOf, send } from '../harness/send.ts'
import { addMember, administrator, bearer, createTenant, type Tenant } from '../harness/tenant.ts'

interface PlaygroundKey {
  id: string
  key: string
  scopes: string[]
  expires_at: string
}

let tenant: Tenant
let userId: string
let browser: ConsoleBrowser
beforeAll(async () => {
  tenant = await createTenant(gateway())
  userId = await addMember(gateway(), tenant.base)
  browser = await signedInBrowser(gateway(), tenant.base, userId)
})

const create = (page = browser) => page.ask<PlaygroundKey>('POST', `${tenant.base}/playground-keys`)

const another = async () => signedInBrowser(gateway(), tenant.base, await addMember(gateway(), tenant.base))

const statusOf = async (key: string, path = '/v1/chat/completions') => {
  const body = JSON.stringify({ model: 'scripted-chat', messages: [{ role: 'user', content: 'Hello' }] })
  const isRead = path !== '/v1/chat/completions'
  const sent = isRead ? { headers: bearer(key) } : { method: 'POST', headers: bearer(key), body }
  return (await send(gateway().baseUrl + path, sent)).status
}

describe('the key of a playground', () => {
  it('calls models as its user, for ten minutes', async () => {
    const { id, key, scopes, expires_at: expiresAt } = await create()
    expect(scopes).toEqual(['models'])
    expect(Math.abs(Date.parse(expiresAt) - Date.now() - 600_000)).toBeLessThan(60_000)
    expect(await statusOf(key)).toBe(200)
    expect(await statusOf(key, '/v1/agents')).toBe(404)
    const entries = await auditEntries(gateway(), tenant)
    const made = entries.find(({ action }) => action === 'playground_key.created')
    expect(made).toMatchObject({ user_id: userId, record: { resource: `keys/${id}` } })
    expect(JSON.stringify(entries)).not.toContain(key)
    await query(gateway(), `UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE id = '${id}'`)
    const { key: next } = await create()
    expect(await statusOf(next)).toBe(200)
    expect(await query(gateway(), `SELECT 1 FROM api_keys WHERE id = '${id}'`)).toEqual([])
  })

  it('is not among the keys that are managed', async () => {
    const { id } = await create()
    const keys = await browser.ask<{ data: unknown[] }>('GET', `${tenant.base}/keys`)
    expect(keys.data).toEqual([])
    for (const method of ['GET', 'DELETE']) {
      expect((await browser.call(method, `${tenant.base}/keys/${id}`)).status).toBe(404)
    }
    expect((await browser.call('POST', `${tenant.base}/keys/${id}/rotate`, {})).status).toBe(404)
  })

  it('ends with its session', async () => {
    const page = await another()
    const [ended, other] = [await create(page), await create()]
    await page.ask('POST', '/me/sign-out')
    expect(await statusOf(ended.key)).toBe(401)
    expect(await statusOf(other.key)).toBe(200)
  })

  it('ends with its user', async () => {
    const disabled = await addMember(gateway(), tenant.base)
    const page = await signedInBrowser(gateway(), tenant.base, disabled)
    const { key } = await create(page)
    expect(await statusOf(key)).toBe(200)
    await administrator(gateway()).ask('DELETE', `${tenant.base}/users/${disabled}`)
    expect(await statusOf(key)).toBe(401)
  })

  it('is one of at most 20 of a session', async () => {
    const page = await another()
    for (let count = 0; count < 20; count++) await create(page)
    const refused = await page.call('POST', `${tenant.base}/playground-keys`)
    expect(refused.status).toBe(422)
    await create()
  })

  it('is for sessions only', async () => {
    const { call } = administrator(gateway())
    const answer = await call('POST', `${tenant.base}/playground-keys`)
    expect(answer.status).toBe(404)
    expect(jsonOf(answer)).toMatchObject({ details: { code: 'no_user' } })
  })
})
