import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { readCrons } from '../../scripts/node/wrangler-settings.ts'
import { listTools } from '../../src/integrations/catalogue/tool-catalogue.ts'
import { createConnection } from '../harness/connections.ts'
import { ConsoleBrowser, setupLink, signedInBrowser } from '../harness/console-browser.ts'
import { query } from '../harness/gateway.ts'
import {
  createIntegration,
  type IntegrationItem,
  mcpTool,
  principalOf,
  startMcpServer,
  toolCatalogueDeps,
} from '../harness/integrations.ts'
import { auditEntries } from '../harness/records.ts'
import { answered, inTurn } from '../harness/routed-model.ts'
import { jsonOf } from '../harness/send.ts'
import { type StartedGateway, startGateway, WRANGLER_FILE } from '../harness/start-gateway.ts'
import { addMember, createTenant, type Tenant } from '../harness/tenant.ts'
import { createAgent, definitionOf, endedRun, readRun, resultText, trigger } from './support/agents.ts'
import { ask } from './support/response-calls.ts'

const FREQUENT = '*/5 * * * *'

// A system of its own: the jobs publish the messages, delete the runs and refresh the catalogues of every organization in
// the database.
let address: StartedGateway
let tenant: Tenant
beforeAll(async () => {
  const variables = { INTEGRATION_LIST_TIMEOUT_MS: '3000' }
  address = await startGateway({ bundleDirectory: inject('bundleDirectory'), variables, isBrief: true })
  tenant = await createTenant(address)
}, 60_000)
afterAll(() => address.stop())

const says = (text: string) => inTurn(address, answered('chat', text, true))
const ended = (runId: string) => endedRun(tenant, runId, { baseUrl: address.baseUrl })
const runTrigger = (cron: string) => address.workerd.runScheduled(cron)
const hourly = () => readCrons(WRANGLER_FILE).find((cron) => cron !== FREQUENT) ?? ''

/** Moves the time at which the message of a run has to be delivered. */
const dueIn = (runId: string, interval: string) =>
  query(address, 'update run_outbox set due_at = now() + $2::interval where run_id = $1', [runId, interval])

async function schedulesOf(agentId: string): Promise<Array<{ cron: string }>> {
  const { QSTASH_TOKEN: token } = address.variables
  const answer = await fetch(`${address.standIns.qstash}/v2/schedules`, {
    headers: { authorization: `Bearer ${token}` },
  })
  const schedules = (await answer.json()) as Array<{ cron: string; scheduleId: string }>
  return schedules.filter(({ scheduleId }) => scheduleId.includes(agentId)).map(({ cron }) => ({ cron }))
}

const namesOf = async (tenant: Tenant) =>
  (await listTools(toolCatalogueDeps(address), await principalOf(address, tenant), null)).map(
    ({ name }) => name,
  )

/** Moves the time of the next refresh to now. */
const makeDue = ({ id }: IntegrationItem) =>
  query(address, 'update tool_catalogues set next_refresh_at = now() where integration_id = $1', [id])

describe('for agents, the triggers of the Worker, as wrangler.toml has them,', () => {
  it('publish the message of a run that QStash never got', async () => {
    const agentId = await createAgent(tenant, definitionOf([{ instructions: await says('Late.') }]), address)
    await address.killStandIn('qstash')
    const { runId } = await trigger(tenant, agentId, {}, address)
    await address.startStandIn('qstash')
    // A message that is not due is none of the sweep's.
    await dueIn(runId, '1 hour')
    await runTrigger(FREQUENT)
    expect((await readRun(tenant, runId, address)).status).toBe('in_progress')
    await dueIn(runId, '-1 minute')
    await runTrigger(FREQUENT)
    expect(resultText(await ended(runId))).toBe('Late.')
  })

  it('publish a schedule that QStash did not take, and remove one', async () => {
    await address.killStandIn('qstash')
    const triggers = [{ kind: 'schedule', name: 'daily', cron: '0 6 * * *' }]
    const agentId = await createAgent(tenant, definitionOf([{ instructions: 'x' }], { triggers }), address)
    await address.startStandIn('qstash')
    expect(await schedulesOf(agentId)).toEqual([])
    await runTrigger(FREQUENT)
    expect(await schedulesOf(agentId)).toEqual([{ cron: '0 6 * * *' }])
    await query(
      address,
      'update agent_triggers set removed_at = now(), published_at = null where agent_id = $1',
      [agentId],
    )
    await runTrigger(FREQUENT)
    expect(await schedulesOf(agentId)).toEqual([])
  })

  it('delete runs after their retention every hour, and none before', async () => {
    const agentId = await createAgent(tenant, definitionOf([{ instructions: await says('Old.') }]), address)
    const [old, young] = [
      await trigger(tenant, agentId, {}, address),
      await trigger(tenant, agentId, {}, address),
    ]
    await Promise.all([ended(old.runId), ended(young.runId)])
    const age = (runId: string, days: number) =>
      query(address, 'update runs set ended_at = now() - make_interval(days => $2::int) where id = $1', [
        runId,
        days,
      ])
    await age(old.runId, 91)
    await age(young.runId, 89)
    await runTrigger(FREQUENT)
    await readRun(tenant, old.runId, address)
    await runTrigger(hourly())
    const answer = await ask(tenant.key, 'GET', `/v1/runs/${old.runId}`, address)
    expect([answer.status, jsonOf(answer).message]).toEqual([404, `Run ${old.runId} not found.`])
    expect((await readRun(tenant, young.runId, address)).status).toBe('success')
  })

  it('delete expired sessions and setup links every hour, and what goes on stays', async () => {
    const [old, young] = [await addMember(address, tenant.base), await addMember(address, tenant.base)]
    const browser = await signedInBrowser(address, tenant.base, young)
    await signedInBrowser(address, tenant.base, old)
    const token = await setupLink(address, tenant.base, await addMember(address, tenant.base))
    await query(address, 'update sessions set expires_at = now() where user_id = $1', [old])
    await query(address, 'update setup_links set expires_at = now() where user_id = $1', [old])
    const users = async (table: string) =>
      (
        await query(address, `select user_id from ${table} where organization_id = $1`, [
          tenant.organizationId,
        ])
      ).map(({ user_id: userId }) => userId)
    await runTrigger(FREQUENT)
    expect(await users('sessions')).toContain(old)
    await runTrigger(hourly())
    expect(await users('sessions')).toEqual([young])
    const left = await users('setup_links')
    expect(left).not.toContain(old)
    expect(left).toHaveLength(2)
    expect((await browser.call('GET', '/me')).status).toBe(200)
    expect((await new ConsoleBrowser(address).setUp(token)).status).toBe(200)
    // That it has signed in outlives its session: an administrator makes it no setup link.
    const admin = await addMember(address, tenant.base, { role: 'admin' })
    const { call } = await signedInBrowser(address, tenant.base, admin).then((of) => ({
      call: (userId: string) => of.call('POST', `${tenant.base}/users/${userId}/setup-link`),
    }))
    expect((await call(old)).status).toBe(403)
  })

  it('leave the session of a start token, which else could be used again', async () => {
    const user = await addMember(address, tenant.base)
    await query(
      address,
      `insert into sessions (id, organization_id, user_id, digest, pepper_id, method, ceremony_id, user_agent,
         signed_in_at, last_seen_at, expires_at, ended_at)
       select name, $1, $2, name, 'one', 'local', name, '', now(), now(), now(), now()
       from unnest(array['start_of_a_token', 'ceremony_of_a_switch']) as name`,
      [tenant.organizationId, user],
    )
    await runTrigger(hourly())
    const left = await query(address, 'select id from sessions where user_id = $1', [user])
    expect(left).toEqual([{ id: 'start_of_a_token' }])
  })

  it('delete more sessions than one statement takes', async () => {
    await query(
      address,
      `insert into sessions (id, organization_id, user_id, digest, pepper_id, method, ceremony_id, user_agent,
         signed_in_at, last_seen_at, expires_at, ended_at)
       select 'many' || n, $1, gen_random_uuid(), 'many' || n, 'one', 'passkey', 'many' || n, '', now(), now(), now(), now()
       from generate_series(1, 2500) as n`,
      [tenant.organizationId],
    )
    await runTrigger(hourly())
    expect(await query(address, `select id from sessions where id like 'many%'`)).toEqual([])
  })
})

describe('for integrations, the trigger of every five minutes', () => {
  it('is one of wrangler.toml', () => {
    expect(readCrons(WRANGLER_FILE)).toContain(FREQUENT)
  })

  it('lists new integrations, hides what changes, and records what it did', async () => {
    const tenant = await createTenant(address)
    const server = await startMcpServer(address, { tools: [mcpTool('echo'), mcpTool('add')] })
    const integration = await createIntegration(address, tenant, { url: server.url, refresh: false })
    expect(await namesOf(tenant)).toEqual([])
    await runTrigger(FREQUENT)
    expect(await namesOf(tenant)).toEqual([`${integration.slug}_add`, `${integration.slug}_echo`])

    await server.set({ tools: [mcpTool('echo', { description: 'Other.' }), mcpTool('more')] })
    const before = (await server.requests()).length
    await runTrigger(FREQUENT)
    expect((await server.requests()).length).toBe(before)
    await makeDue(integration)
    await runTrigger(FREQUENT)
    expect(await namesOf(tenant)).toEqual([])
    const changes = (await auditEntries(address, tenant)).filter(
      ({ action }) => action === 'integration.tools_changed',
    )
    expect(changes[0]?.record).toMatchObject({
      actor: { administrator: 'catalogue_refresh' },
      detail: {
        added: 1,
        changed: 1,
        removed: 1,
        new_definitions: 'pending',
        names: { added: ['more'], changed: ['echo'], removed: ['add'] },
      },
    })
    expect(changes).toHaveLength(2)
  })

  it('lists for each connection, with its credential', async () => {
    const tenant = await createTenant(address)
    const requires = { header: 'authorization', value: 'Bearer right-token-of-the-account' }
    const server = await startMcpServer(address, { tools: [mcpTool('echo')], requires })
    const integration = await createIntegration(address, tenant, {
      url: server.url,
      authorization: { kind: 'bearer' },
    })
    const connect = (secret: string) =>
      createConnection(address, tenant, integration.slug, { user_id: tenant.userId, credential: { secret } })
    const wrong = await connect('wrong-token-of-the-account')
    await runTrigger(FREQUENT)
    expect(await namesOf(tenant)).toEqual([])
    const [row] = await query(address, 'select status from connections where id = $1', [wrong.id])
    expect(row).toEqual({ status: 'needs_reauth' })

    await connect('right-token-of-the-account')
    await runTrigger(FREQUENT)
    expect(await namesOf(tenant)).toEqual([`${integration.slug}_echo`])
    const other = await createTenant(address)
    expect(await namesOf(other)).toEqual([])
  })

  it('does not let two runs refresh the same catalogue', async () => {
    const tenant = await createTenant(address)
    const slow = { kind: 'slow', milliseconds: 300 }
    const server = await startMcpServer(address, { tools: [mcpTool('echo')], faults: { 'tools/list': slow } })
    await createIntegration(address, tenant, { url: server.url, refresh: false })
    await Promise.all([runTrigger(FREQUENT), runTrigger(FREQUENT)])
    const lists = (await server.requests()).filter(({ method }) => method === 'tools/list')
    expect(lists).toHaveLength(1)
  })
})
