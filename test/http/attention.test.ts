import { beforeAll, describe, expect, it } from 'vitest'
import { createConnection, createUnreadIntegration } from '../harness/connections.ts'
import { type ConsoleBrowser, signedInBrowser } from '../harness/console-browser.ts'
import { gateway, query } from '../harness/gateway.ts'
import { addKey, addMember, administrator, createTenant, type Tenant } from '../harness/tenant.ts'
import { createAgent, definitionOf } from './support/agents.ts'

interface Item {
  kind: string
  id: string
  name: string
  count: number
  at: string | null
}

const DAY = 24 * 60 * 60_000
const inDays = (days: number) => new Date(Date.now() + days * DAY).toISOString()

let tenant: Tenant
let ada: { userId: string; browser: ConsoleBrowser }
let auditor: ConsoleBrowser
let connection: { id: string }
let expiring: { own: string; other: string }
let agentId: string
let integrationId: string

/** A run that has failed, as the agent's object would have stored it. */
const failedRun = (hoursAgo: number, status = 'failure') =>
  query(
    gateway(),
    `INSERT INTO runs (id, organization_id, user_id, agent_id, agent_version, conversation_id, origin, sealed_inputs,
       status, rev, step, attempt, created_at, deadline_at)
     SELECT gen_random_uuid(), $1, $2, $3, 1, 'conv_x', 'api', '', $4, 1, 1, 1, at, at
     FROM (SELECT now() - $5::int * interval '1 hour') AS moment(at)`,
    [tenant.organizationId, tenant.userId, agentId, status, hoursAgo],
  )

beforeAll(async () => {
  tenant = await createTenant(gateway())
  const userId = await addMember(gateway(), tenant.base)
  ada = { userId, browser: await signedInBrowser(gateway(), tenant.base, userId) }
  const admin = await addMember(gateway(), tenant.base, { role: 'admin' })
  auditor = await signedInBrowser(gateway(), tenant.base, admin)
  const keyOf = async (id: string, days: number) =>
    (await addKey(gateway(), tenant.base, id, { label: `in ${days}`, expires_at: inDays(days) })).id
  expiring = { own: await keyOf(userId, 6), other: await keyOf(tenant.userId, 2) }
  await keyOf(userId, 8)
  const { ask } = administrator(gateway())
  await ask('DELETE', `${tenant.base}/keys/${await keyOf(userId, 1)}`)
  await ask('POST', `${tenant.base}/keys/${await keyOf(userId, 3)}/rotate`, { expires_at: null })
  const integration = await createUnreadIntegration(gateway(), tenant)
  connection = await createConnection(gateway(), tenant, integration, {
    user_id: userId,
    display_name: 'Tickets',
  })
  await createConnection(gateway(), tenant, integration, { user_id: userId })
  const refused = `UPDATE connections SET status = 'needs_reauth' WHERE id = $1`
  await query(gateway(), refused, [connection.id])
  const [row] = await query(gateway(), 'SELECT integration_id FROM connections WHERE id = $1', [
    connection.id,
  ])
  integrationId = String(row?.integration_id)
  await query(
    gateway(),
    `INSERT INTO tool_definitions (integration_id, organization_id, name, hash, definition, state)
     SELECT $1, $2, 'tool', number::text, '{}', CASE WHEN number < 4 THEN 'pending' ELSE 'approved' END
     FROM generate_series(1, 5) AS number`,
    [integrationId, tenant.organizationId],
  )
  agentId = await createAgent(tenant, definitionOf([{ instructions: 'Hello.' }], { name: 'Nightly report' }))
  for (const hours of [2, 1, 30]) await failedRun(hours)
  await failedRun(1, 'success')
})

const read = async (browser: Pick<ConsoleBrowser, 'ask'>) =>
  (await browser.ask<{ data: Item[] }>('GET', `${tenant.base}/attention`)).data
const keysOf = (items: Item[]) => items.filter(({ kind }) => kind === 'key_expires').map(({ id }) => id)

describe('what needs somebody', () => {
  it('is for administrators what is of the organization', async () => {
    const items = await read(auditor)
    const of = (wanted: string) => items.filter(({ kind }) => kind === wanted)
    expect(of('failed_runs')).toEqual([
      { kind: 'failed_runs', id: agentId, name: 'Nightly report', count: 2, at: expect.any(String) },
    ])
    expect(Math.abs(Date.parse(String(of('failed_runs')[0]?.at)) + 60 * 60_000 - Date.now())).toBeLessThan(
      60_000,
    )
    expect(of('connection_refused')).toMatchObject([{ id: connection.id, name: 'Tickets', count: 1 }])
    expect(keysOf(items)).toEqual([expiring.other, expiring.own])
    expect(of('tools_pending')).toMatchObject([{ id: integrationId, count: 3 }])
    expect(of('credits_used_up')).toEqual([])
    expect(await read(administrator(gateway()))).toEqual(items)
  })

  it('is for members their own', async () => {
    const items = await read(ada.browser)
    expect(items.map(({ kind, id }) => ({ kind, id }))).toEqual([
      { kind: 'connection_refused', id: connection.id },
      { kind: 'key_expires', id: expiring.own },
    ])
    const other = await addMember(gateway(), tenant.base)
    expect(await read(await signedInBrowser(gateway(), tenant.base, other))).toEqual([])
  })

  it('is in no other organization', async () => {
    const stranger = await createTenant(gateway())
    const path = `${stranger.base}/attention`
    expect((await administrator(gateway()).ask<{ data: Item[] }>('GET', path)).data).toEqual([])
  })

  it('is said of credits that are used up', async () => {
    const poor = await createTenant(gateway(), { credits: 0 })
    const { data } = await administrator(gateway()).ask<{ data: Item[] }>('GET', `${poor.base}/attention`)
    expect(data).toEqual([
      { kind: 'credits_used_up', id: poor.organizationId, name: 'credits', count: 1, at: null },
    ])
  })
})
