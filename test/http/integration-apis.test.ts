import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ticketDocument } from '../../scripts/local/integration-upstreams/ticket-document.ts'
import { TicketService } from '../../scripts/local/integration-upstreams/ticket-service.ts'
import { type LoopbackServer, listenOnLoopback } from '../../scripts/node/loopback-server.ts'
import { findTool, listTools } from '../../src/integrations/catalogue/tool-catalogue.ts'
import { CredentialsUnavailable, NO_CREDENTIAL } from '../../src/integrations/types.ts'
import { callUpstream } from '../../src/integrations/upstream/call-upstream.ts'
import { createConnection } from '../harness/connections.ts'
import { gateway } from '../harness/gateway.ts'
import { createIntegration, principalOf, toolCatalogueDeps } from '../harness/integrations.ts'
import { jsonOf } from '../harness/send.ts'
import { type StartedWorker, startWorker } from '../harness/start-worker.ts'
import { administrator, createTenant, type Tenant } from '../harness/tenant.ts'

const KEY = 'ticket-key-of-the-test-0123456789'
const CREDENTIAL = { headers: { 'x-api-key': KEY }, secrets: [KEY] }

let service: LoopbackServer
let worker: StartedWorker
const seen: string[] = []
beforeAll(async () => {
  const tickets = new TicketService(KEY)
  service = await listenOnLoopback(0, async (request, response) => {
    seen.push(`${request.method} ${request.url}`)
    if (request.url === '/v1/secret') response.end(`you sent ${request.headers['x-api-key']}`)
    else
      await tickets.handle((request.url ?? '').replace(/^\/v1/, ''), `${service.url}/v1`, request, response)
  })
  const allow = `${gateway().variables.EGRESS_ALLOW},127.0.0.1:${service.port}`
  worker = await startWorker({ EGRESS_ALLOW: allow })
}, 60_000)
afterAll(async () => {
  await worker.stop()
  await service.close()
})

async function addedApi(
  tenant: Tenant,
  document: Record<string, unknown> = ticketDocument(`${service.url}/v1`),
) {
  const integration = await createIntegration(worker, tenant, {
    kind: 'openapi',
    document,
    authorization: { kind: 'header', header: 'x-api-key' },
  })
  const call = async (name: string, given: Record<string, unknown>, credential = CREDENTIAL) => {
    const found = await findTool(
      toolCatalogueDeps(worker),
      await principalOf(worker, tenant),
      `${integration.slug}_${name}`,
    )
    if (found.kind !== 'tool') throw new Error(`${name} is ${found.kind}`)
    const { signal } = new AbortController()
    return callUpstream(toolCatalogueDeps(worker), { tool: found.tool, arguments: given, credential, signal })
  }
  return { integration, call }
}

describe('an API with an OpenAPI document', () => {
  it('has its operations as tools, for callers with a connection', async () => {
    const tenant = await createTenant(worker)
    const { integration } = await addedApi(tenant)
    const names = async () =>
      (await listTools(toolCatalogueDeps(worker), await principalOf(worker, tenant), null)).map(
        ({ name }) => name,
      )
    expect(await names()).toEqual([])
    await createConnection(worker, tenant, integration.slug)
    const operations = ['changeTicket', 'createTicket', 'deleteTicket', 'getTicket', 'listTickets']
    expect(await names()).toEqual(operations.map((name) => `${integration.slug}_${name}`))
  })

  it('gets path, query and body from the arguments, and answers with structure', async () => {
    const tenant = await createTenant(worker)
    const { call } = await addedApi(tenant)
    const created = await call('createTicket', { body: { title: 'Ünïcode & more', text: 'x' } })
    expect(created).toMatchObject({ structuredContent: { title: 'Ünïcode & more', status: 'open' } })
    const { id } = created.structuredContent as { id: string }
    await call('changeTicket', { ticketId: id, body: { status: 'waiting', assignee: null } })
    expect(await call('listTickets', { status: ['waiting', 'closed'], limit: 5 })).toMatchObject({
      structuredContent: { total: 1, tickets: [{ id, status: 'waiting' }] },
    })
    expect(seen).toContain('GET /v1/tickets?limit=5&status=waiting&status=closed')
    expect(await call('deleteTicket', { ticketId: id })).toEqual({
      content: [{ type: 'text', text: 'Status 204, without a body.' }],
    })
    expect(await call('getTicket', { ticketId: id })).toEqual({
      content: [
        { type: 'text', text: `The API answered with status 404. {"message":"Ticket ${id} not found."}` },
      ],
      isError: true,
    })
  })

  it('is reached under its own paths only', async () => {
    const tenant = await createTenant(worker)
    const { call } = await addedApi(tenant)
    const before = seen.length
    for (const ticketId of ['..', '.', '', null]) {
      expect(await call('getTicket', { ticketId })).toMatchObject({ isError: true })
    }
    expect(await call('getTicket', { ticketId: '1', admin: true })).toMatchObject({ isError: true })
    expect(seen.length).toBe(before)
    await call('getTicket', { ticketId: '../admin?x=1#y' })
    expect(seen.at(-1)).toBe('GET /v1/tickets/..%2Fadmin%3Fx%3D1%23y')
  })

  it('does not give the credential away', async () => {
    const tenant = await createTenant(worker)
    const document = {
      openapi: '3.0.3',
      info: { title: 'Leaky', version: '1' },
      servers: [{ url: `${service.url}/v1` }],
      paths: { '/secret': { get: { operationId: 'secret', responses: {} } } },
    }
    const { call } = await addedApi(tenant, document)
    expect(await call('secret', {})).toEqual({ content: [{ type: 'text', text: 'you sent [redacted]' }] })
    const tickets = await addedApi(tenant)
    await expect(tickets.call('listTickets', {}, NO_CREDENTIAL as never)).rejects.toThrow(
      CredentialsUnavailable,
    )
  })
})

const paths = { '/a': { get: { operationId: 'a', responses: {} } } }

describe('a document that cannot be used is refused with its reason', () => {
  it.each([
    ['Swagger 2', { swagger: '2.0', paths }, /is Swagger 2\.0; convert it/],
    ['another version', { openapi: '4.0.0', paths }, /must be an OpenAPI document of version 3\.0 or 3\.1/],
    ['no paths', { openapi: '3.0.0' }, /has no paths/],
    ['no server', { openapi: '3.0.0', paths }, /url: is required/],
    [
      'a private server',
      { openapi: '3.0.0', servers: [{ url: 'https://10.0.0.1/' }], paths },
      /private addresses/,
    ],
    [
      'no operation',
      { openapi: '3.0.0', servers: [{ url: 'https://a.example/' }], paths: {} },
      /no operation/,
    ],
    [
      'references to other documents',
      {
        openapi: '3.0.0',
        servers: [{ url: 'https://a.example/' }],
        paths: { '/a': { get: { parameters: [{ $ref: 'https://evil.example/#/a' }] } } },
      },
      /no operation that can be a tool \(get \/a: "https:\/\/evil\.example\/#\/a" refers to another document/,
    ],
    [
      'references in a circle',
      {
        openapi: '3.0.0',
        servers: [{ url: 'https://a.example/' }],
        paths: { '/a': { get: { parameters: [{ $ref: '#/components/parameters/A' }] } } },
        components: { parameters: { A: { $ref: '#/components/parameters/A' } } },
      },
      /references that refer to each other/,
    ],
  ])('%s', async (_what, document, message) => {
    const tenant = await createTenant(worker)
    const answer = await administrator(worker).call('POST', `${tenant.base}/integrations`, {
      kind: 'openapi',
      slug: 'api',
      document,
    })
    expect(answer.status).toBe(422)
    expect((jsonOf(answer) as { message: string }).message ?? answer.text).toMatch(message)
  })
})
