import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { readCrons } from '../../scripts/local/wrangler-settings.ts'
import { listTools } from '../../src/integrations/catalog/tool-catalog.ts'
import { createConnection } from '../harness/connections.ts'
import { query } from '../harness/gateway.ts'
import {
  catalogDeps,
  createIntegration,
  type IntegrationItem,
  mcpTool,
  principalOf,
  startMcpServer,
} from '../harness/integrations.ts'
import { auditEntries } from '../harness/records.ts'
import { type StartedGateway, startGateway, WRANGLER_FILE } from '../harness/start-gateway.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'

const FREQUENT = '*/5 * * * *'

// A system of its own: the job refreshes the catalogues of every organization in the database.
let worker: StartedGateway
beforeAll(async () => {
  const variables = { INTEGRATION_LIST_TIMEOUT_MS: '3000' }
  worker = await startGateway({ bundleDirectory: inject('bundleDirectory'), isBrief: true, variables })
}, 60_000)
afterAll(() => worker.stop())

const namesOf = async (tenant: Tenant) =>
  (await listTools(catalogDeps(worker), await principalOf(worker, tenant), null)).map(({ name }) => name)

/** Moves the time of the next refresh to now. */
const makeDue = ({ id }: IntegrationItem) =>
  query(worker, 'update tool_catalogues set next_refresh_at = now() where integration_id = $1', [id])

describe('the trigger of every five minutes', () => {
  it('is one of wrangler.toml', () => {
    expect(readCrons(WRANGLER_FILE)).toContain(FREQUENT)
  })

  it('lists new integrations, hides what changes, and records what it did', async () => {
    const tenant = await createTenant(worker)
    const server = await startMcpServer(worker, { tools: [mcpTool('echo'), mcpTool('add')] })
    const integration = await createIntegration(worker, tenant, { url: server.url, refresh: false })
    expect(await namesOf(tenant)).toEqual([])
    await worker.workerd.runScheduled(FREQUENT)
    expect(await namesOf(tenant)).toEqual([`${integration.slug}_add`, `${integration.slug}_echo`])

    await server.set({ tools: [mcpTool('echo', { description: 'Other.' }), mcpTool('more')] })
    const before = (await server.requests()).length
    await worker.workerd.runScheduled(FREQUENT)
    expect((await server.requests()).length).toBe(before)
    await makeDue(integration)
    await worker.workerd.runScheduled(FREQUENT)
    expect(await namesOf(tenant)).toEqual([])
    const changes = (await auditEntries(worker, tenant)).filter(
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
    const tenant = await createTenant(worker)
    const requires = { header: 'authorization', value: 'Bearer right-token-of-the-account' }
    const server = await startMcpServer(worker, { tools: [mcpTool('echo')], requires })
    const integration = await createIntegration(worker, tenant, {
      url: server.url,
      authorization: { kind: 'bearer' },
    })
    const connect = (secret: string) =>
      createConnection(worker, tenant, integration.slug, { user_id: tenant.userId, credential: { secret } })
    const wrong = await connect('wrong-token-of-the-account')
    await worker.workerd.runScheduled(FREQUENT)
    expect(await namesOf(tenant)).toEqual([])
    const [row] = await query(worker, 'select status from connections where id = $1', [wrong.id])
    expect(row).toEqual({ status: 'needs_reauth' })

    await connect('right-token-of-the-account')
    await worker.workerd.runScheduled(FREQUENT)
    expect(await namesOf(tenant)).toEqual([`${integration.slug}_echo`])
    const other = await createTenant(worker)
    expect(await namesOf(other)).toEqual([])
  })

  it('does not let two runs refresh the same catalogue', async () => {
    const tenant = await createTenant(worker)
    const slow = { kind: 'slow', milliseconds: 300 }
    const server = await startMcpServer(worker, { tools: [mcpTool('echo')], faults: { 'tools/list': slow } })
    await createIntegration(worker, tenant, { url: server.url, refresh: false })
    await Promise.all([worker.workerd.runScheduled(FREQUENT), worker.workerd.runScheduled(FREQUENT)])
    const lists = (await server.requests()).filter(({ method }) => method === 'tools/list')
    expect(lists).toHaveLength(1)
  })
})
