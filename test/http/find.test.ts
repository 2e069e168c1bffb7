import { beforeAll, describe, expect, it } from 'vitest'
import { createConnection, createUnreadIntegration } from '../harness/connections.ts'
import { type ConsoleBrowser, signedInBrowser } from '../harness/console-browser.ts'
import { gateway } from '../harness/gateway.ts'
import { callEntries } from '../harness/records.ts'
import { send } from '../harness/send.ts'
import { addKey, addMember, administrator, bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { createAgent, definitionOf, trigger } from './support/agents.ts'

interface Found {
  kind: string
  id: string
  label: string
}

let tenant: Tenant
let ada: string
let browser: ConsoleBrowser
const ids: Record<string, string> = {}
const api = () => administrator(gateway())
const find = async (q: string, by: Pick<ConsoleBrowser, 'ask'> = api(), base = tenant.base) =>
  (await by.ask<{ data: Found[] }>('GET', `${base}/find?q=${encodeURIComponent(q)}`)).data
const found = (items: Found[]) => items.map(({ kind, id }) => `${kind} ${id}`)

beforeAll(async () => {
  tenant = await createTenant(gateway(), { models: ['scripted-chat'] })
  ada = await addMember(gateway(), tenant.base, { name: 'Ada Zephyr' })
  browser = await signedInBrowser(gateway(), tenant.base, ada)
  const make = async (path: string, body: object) =>
    (await api().ask<{ id: string }>('POST', tenant.base + path, body)).id
  ids.user = ada
  ids.key = (await addKey(gateway(), tenant.base, tenant.userId, { label: 'zephyr laptop' })).id
  ids.group = await make('/groups', { name: 'Zephyr group' })
  const rules = [{ detector: 'card', action: 'warn' }]
  ids.policy = await make('/dlp/policies', { name: 'zephyr 100% policy', directions: ['request'], rules })
  const removed = await make('/dlp/policies', { name: 'zephyr removed', directions: ['request'], rules })
  await api().ask('DELETE', `${tenant.base}/dlp/policies/${removed}`)
  ids.agent = await createAgent(tenant, definitionOf([{ instructions: 'Hello.' }], { name: 'zephyr agent' }))
  const slug = await createUnreadIntegration(gateway(), tenant)
  ids.connection = (await createConnection(gateway(), tenant, slug, { display_name: 'zephyr account' })).id
  ids.run = (await trigger(tenant, ids.agent)).runId
  const body = JSON.stringify({ model: 'scripted-chat', input: 'Hello', max_output_tokens: 50 })
  const answer = await send(`${gateway().baseUrl}/v1/responses`, {
    method: 'POST',
    headers: bearer(tenant.key),
    body,
  })
  ids.response = JSON.parse(answer.text).id
  const [call] = await callEntries(gateway(), tenant, 1, ({ record }) => record.responseId === ids.response)
  ids.call = String(call?.id)
  ids.request = String(call?.request_id)
})

describe('a text', () => {
  it('finds what has it in its name', async () => {
    const kinds = ['key', 'user', 'group', 'policy', 'agent', 'connection']
    expect(found(await find('ZEPHYR')).sort()).toEqual(kinds.map((kind) => `${kind} ${ids[kind]}`).sort())
    expect(found(await find('100%'))).toEqual([`policy ${ids.policy}`])
    expect(await find('1_0')).toEqual([])
    expect((await find('scripted-ch')).map(({ id }) => id)).toContain('scripted-chat')
  })

  it.each(['call', 'run', 'response', 'key', 'user', 'group', 'policy', 'agent', 'connection'])(
    'finds a %s by its id',
    async (kind) => {
      expect(found(await find(String(ids[kind])))).toContain(`${kind} ${ids[kind]}`)
    },
  )

  it('finds a call by the id of its request', async () => {
    expect(found(await find(String(ids.request)))).toEqual([`call ${ids.call}`])
  })

  it('finds for a member what it may read', async () => {
    expect(found(await find('zephyr', browser))).toEqual([`user ${ada}`])
    for (const id of [ids.call, ids.request, ids.response, ids.run, ids.key, tenant.userId]) {
      expect(await find(String(id), browser), id).toEqual([])
    }
    expect((await find('scripted', browser)).map(({ id }) => id)).toEqual(['scripted-chat'])
  })

  it('finds nothing of another organization', async () => {
    const stranger = await createTenant(gateway(), { models: [] })
    for (const id of ['zephyr', ...Object.values(ids)]) {
      expect(await find(id, api(), stranger.base), id).toEqual([])
    }
  })

  it.each(['', 'a', ' a '])('of %j is too short', async (q) => {
    expect((await api().call('GET', `${tenant.base}/find?q=${encodeURIComponent(q)}`)).status).toBe(400)
  })
})
