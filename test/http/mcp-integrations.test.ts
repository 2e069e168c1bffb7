import { describe, expect, it, vi } from 'vitest'
import { startEdge } from '../../scripts/local/edge.ts'
import { gateway } from '../harness/gateway.ts'
import {
  createIntegration,
  grantIntegration,
  type McpServer,
  mcpTool,
  type ScriptedServerInput,
  startMcpServer,
} from '../harness/integrations.ts'
import {
  callMcpTool,
  createMcpTenant,
  ERAS,
  entitle,
  listMcpTools,
  MCP_ACCEPT,
  resultOf,
  rpcErrorOf,
  sendMcp,
} from '../harness/mcp.ts'
import { beginRequest } from '../harness/open-stream.ts'
import { auditEntryOf, callEntries, settledCredits } from '../harness/records.ts'
import { addKey, addMember, administrator, bearer, type Tenant } from '../harness/tenant.ts'

type Json = Record<string, unknown>

interface World {
  tenant: Tenant
  server: McpServer
  slug: string
  id: string
}

/** A tenant with an integration that needs no account. */
async function createWorld(
  script: Partial<ScriptedServerInput> = {},
  integration: Json = {},
): Promise<World> {
  const tenant = await createMcpTenant(gateway())
  const server = await startMcpServer(gateway(), { tools: [mcpTool('echo'), mcpTool('add')], ...script })
  const { slug, id } = await createIntegration(gateway(), tenant, { url: server.url, ...integration })
  return { tenant, server, slug, id }
}

const namesOf = async (key: string, query = '', headers: Record<string, string> = {}) =>
  (await listMcpTools(gateway(), key, { query, headers })).map(({ name }) => name)

const textOf = (result: Json) => (result.content as Array<{ text: string }>)[0]?.text ?? ''

describe.concurrent('tools of an integration', () => {
  it.each(ERAS)('are listed and called (%s)', async (era) => {
    const { tenant, server, slug } = await createWorld()
    const tools = await listMcpTools(gateway(), tenant.key, { era })
    expect(tools.find(({ name }) => name === `${slug}_echo`)).toMatchObject({
      description: 'The tool echo.',
      inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
    })
    const params = { name: `${slug}_echo`, arguments: { text: 'Hello' } }
    const answer = await sendMcp(gateway(), tenant.key, 'tools/call', params, { era })
    const result = await resultOf(Promise.resolve(answer))
    expect(textOf(result)).toBe('{"name":"echo","arguments":{"text":"Hello"}}')
    expect(result.resultType).toBe(era === 'modern' ? 'complete' : undefined)
    const entry = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
    expect(entry).toMatchObject({ surface: 'mcp', action: 'POST /v1/mcp', status: 200 })
    expect(entry.record).toMatchObject({ tool: `${slug}_echo`, connectionId: null })
    expect(JSON.stringify(await server.requests())).not.toContain(tenant.key)
  })

  it('are listed in pages of 200, in the order of their names, with those of the platform', async () => {
    const { tenant, slug } = await createWorld({ generated: 450 })
    const first = await resultOf(sendMcp(gateway(), tenant.key, 'tools/list'))
    expect(first.tools).toHaveLength(200)
    const names = await namesOf(tenant.key)
    expect(names).toEqual([...new Set(names)].sort())
    expect(names.filter((name) => name.startsWith(`${slug}_`))).toHaveLength(452)
    expect(names).toContain('platform_search_tools')
    expect(await namesOf(tenant.key)).toEqual(names)
  })

  it('are charged once for a call that was executed', async () => {
    const { tenant, slug, server } = await createWorld({ results: {} }, { price: 700 })
    const before = await settledCredits(gateway(), tenant)
    await callMcpTool(gateway(), tenant.key, `${slug}_echo`)
    expect((await settledCredits(gateway(), tenant)).balance).toBe(before.balance - 700)
    await server.set({ tools: [mcpTool('echo')], results: { echo: { content: [], isError: true } } })
    await callMcpTool(gateway(), tenant.key, `${slug}_echo`)
    expect((await settledCredits(gateway(), tenant)).balance).toBe(before.balance - 700)
  })

  it('are not called without credits', async () => {
    const { tenant, slug, server } = await createWorld({}, { price: 2_000_000_000 })
    const answer = await sendMcp(gateway(), tenant.key, 'tools/call', { name: `${slug}_echo` })
    expect(answer.status).toBe(429)
    expect(answer.headers['x-headgate-limit']).toBe('credits')
    expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    expect(await server.calls()).toBe(0)
  })

  it('count once against the limits', async () => {
    const { tenant, slug } = await createWorld()
    const user = await addMember(gateway(), tenant.base, { rate_limit_per_minute: 3 })
    await entitle(gateway(), tenant.base, user)
    const { key } = await addKey(gateway(), tenant.base, user)
    const statuses = []
    for (let calls = 0; calls < 4; calls++) {
      const params = { name: `${slug}_echo` }
      statuses.push((await sendMcp(gateway(), key, 'tools/call', params)).status)
    }
    // A window may end between two calls, which lets one more pass.
    expect(statuses.slice(0, 3)).toEqual([200, 200, 200])
    expect(statuses).toContain(429)
  })

  it('pass members that are newer than the gateway, but not those of `_meta` that are its own', async () => {
    const result = {
      content: [{ type: 'text', text: 'x', annotations: { priority: 1 } }],
      structuredContent: { a: [null] },
      novel: { member: true },
      _meta: {
        'example.com/own': 1,
        'service.dev/platform-tool-error': 1,
        'service.dev/connection-id': 'forged',
        'io.modelcontextprotocol/serverInfo': { name: 'forged' },
      },
    }
    const { tenant, slug } = await createWorld({ results: { echo: result } })
    const { _meta, ...rest } = result
    const called = await callMcpTool(gateway(), tenant.key, `${slug}_echo`)
    expect(called).toEqual({ ...rest, _meta: { 'example.com/own': 1 } })
  })

  it('have results that are no objects for the clients that know them only', async () => {
    const tools = [mcpTool('list')]
    const structuredContent = [1, 2]
    const { tenant, slug } = await createWorld({
      tools,
      results: { list: { content: [], structuredContent } },
    })
    const name = `${slug}_list`
    for (const era of ERAS) {
      const result = await callMcpTool(gateway(), tenant.key, name, {}, { era })
      const isModern = era === 'modern'
      expect(result.structuredContent).toEqual(isModern ? structuredContent : undefined)
      expect(textOf(result)).toBe('[1,2]')
    }
  })
})

describe.concurrent('tools that are not the caller’s', () => {
  it('have one error, unknown or forbidden', async () => {
    const { tenant, slug, server } = await createWorld({}, { grant: false })
    const other = await createWorld()
    expect(await namesOf(tenant.key)).not.toContain(`${slug}_echo`)
    for (const name of [`${slug}_echo`, `${other.slug}_echo`, `${slug}_no_such`, 'x_y', 'x']) {
      for (const era of ERAS) {
        const error = await rpcErrorOf(sendMcp(gateway(), tenant.key, 'tools/call', { name }, { era }))
        expect(error).toEqual({ status: 200, code: -32602, message: `There is no tool named ${name}.` })
      }
      const delegated = await callMcpTool(gateway(), tenant.key, 'platform_execute_tool', { name })
      expect(JSON.parse(textOf(delegated))).toMatchObject({ code: 'not_found' })
    }
    expect(await server.calls()).toBe(0)
    expect(await other.server.calls()).toBe(0)
    await grantIntegration(gateway(), tenant, { integration: slug, tools: ['echo'] })
    await callMcpTool(gateway(), tenant.key, `${slug}_echo`)
    const name = `${slug}_add`
    expect(await rpcErrorOf(sendMcp(gateway(), tenant.key, 'tools/call', { name }))).toMatchObject({
      code: -32602,
    })
  })

  it('have another error if they are switched off', async () => {
    const { tenant, slug, id, server } = await createWorld()
    const { ask } = administrator(gateway())
    await callMcpTool(gateway(), tenant.key, `${slug}_echo`)
    await ask('PUT', `${tenant.base}/integrations/${id}`, { disabled: true })
    const call = () => sendMcp(gateway(), tenant.key, 'tools/call', { name: `${slug}_echo` })
    expect(await rpcErrorOf(call())).toMatchObject({ status: 200, code: -32601 })
    expect(await namesOf(tenant.key)).not.toContain(`${slug}_echo`)
    const [entry] = await callEntries(
      gateway(),
      tenant,
      1,
      ({ record }) => record.errorCode === 'tool_disabled',
    )
    expect(entry).toMatchObject({ surface: 'mcp', record: { tool: `${slug}_echo` } })
    await ask('PUT', `${tenant.base}/integrations/${id}`, { disabled: false })
    expect((await call()).status).toBe(200)
    expect(await server.calls()).toBe(2)
  })
})

describe.concurrent('the filter of integrations', () => {
  it('narrows the list, by the query or the header', async () => {
    const { tenant, slug } = await createWorld()
    const server = await startMcpServer(gateway(), { tools: [mcpTool('sum')] })
    const other = await createIntegration(gateway(), tenant, { url: server.url })
    const foreign = await createWorld()
    const [own, second] = [[`${slug}_add`, `${slug}_echo`], [`${other.slug}_sum`]]
    const both = [...own, ...second].sort()
    const header = (value: string) => ({ 'x-service-integrations': value })
    const lists: Array<[query: string, headers: Record<string, string>, names: string[]]> = [
      [`?integrations=${slug}`, {}, own],
      [`?integrations=${slug},${other.slug}`, {}, both],
      [`?integrations=${slug}&integrations=${other.slug}`, {}, both],
      [`?integrations=${slug}&integrations=,${other.slug},,`, {}, both],
      [`?integrations=%20${slug}%20,no-such,${foreign.slug}`, {}, own],
      ['', header(`${slug} , ${other.slug}`), both],
      [`?integrations=${slug}`, header(other.slug), own],
      ['?integrations=', header(slug), []],
      ['?integrations=no-such', {}, []],
      [`?integrations=${foreign.slug}`, {}, []],
      ['', header('no-such'), []],
      [`?other=${slug}`, header(slug), own],
    ]
    for (const [query, headers, names] of lists)
      expect(await namesOf(tenant.key, query, headers)).toEqual(names)
    const platform = await namesOf(tenant.key, `?integrations=platform,${slug}`)
    expect(platform).toContain('platform_whoami')
    expect(platform).toContain(`${slug}_echo`)
  })

  it('does not apply to calls', async () => {
    const { tenant, slug } = await createWorld()
    const query = '?integrations=no-such'
    const result = await callMcpTool(gateway(), tenant.key, `${slug}_echo`, {}, { query })
    expect(textOf(result)).toContain('echo')
  })
})

describe.concurrent('tools of the platform', () => {
  it('find tools by their words, and call what they find', async () => {
    const { tenant, slug, server } = await createWorld({
      tools: [
        mcpTool('list_pull_requests', { description: 'Lists the open pull requests of a repository.' }),
        mcpTool('create_issue', { description: 'Creates an issue in a repository.' }),
        mcpTool('send_mail', { title: 'Send a mail', description: 'Sends a mail to a person.' }),
      ],
    })
    const search = async (query: string, more: Json = {}) => {
      const found = await callMcpTool(gateway(), tenant.key, 'platform_search_tools', { query, ...more })
      return (found.structuredContent as { matches: Json[] }).matches
    }
    expect((await search('pull request'))[0]).toMatchObject({
      name: `${slug}_list_pull_requests`,
      integration_id: slug,
      connected: true,
    })
    expect((await search('mails', { detail: 'schema' }))[0]).toMatchObject({
      name: `${slug}_send_mail`,
      title: 'Send a mail',
      input_schema: { type: 'object' },
    })
    expect(await search('repository', { limit: 1, detail: 'name' })).toEqual([
      { name: expect.any(String), integration_id: slug, connected: true },
    ])
    expect(await search('zebra')).toEqual([])
    expect(await search('mail', { integrations: ['no-such'] })).toEqual([])
    const name = `${slug}_send_mail`
    const result = await callMcpTool(gateway(), tenant.key, 'platform_execute_tool', {
      name,
      arguments: { a: 1 },
    })
    expect(textOf(result)).toBe('{"name":"send_mail","arguments":{"a":1}}')
    expect(await server.calls('send_mail')).toBe(1)
    const schemas = await callMcpTool(gateway(), tenant.key, 'platform_get_tool_schemas', {
      names: [name, 'x_y'],
    })
    expect(schemas.structuredContent).toMatchObject({ tools: [{ name }], missing: ['x_y'] })
  })

  it('are governed as the tool that they call: one record, of that tool', async () => {
    const { tenant, slug } = await createWorld({}, { price: 500 })
    const name = `${slug}_echo`
    const params = { name: 'platform_execute_tool', arguments: { name } }
    const answer = await sendMcp(gateway(), tenant.key, 'tools/call', params)
    const entry = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
    expect(entry).toMatchObject({ credits_settled: 500, record: { tool: name } })
  })

  it('call other tools of the platform, except themselves', async () => {
    const tenant = await createMcpTenant(gateway())
    const execute = (name: string) => callMcpTool(gateway(), tenant.key, 'platform_execute_tool', { name })
    expect((await execute('platform_whoami')).structuredContent).toMatchObject({
      user: { id: tenant.userId },
    })
    expect(JSON.parse(textOf(await execute('platform_execute_tool')))).toMatchObject({ code: 'not_found' })
  })

  it('list integrations and connections', async () => {
    const { tenant, slug } = await createWorld()
    const list = await callMcpTool(gateway(), tenant.key, 'platform_list_integrations')
    expect(list.structuredContent).toMatchObject({
      items: [{ integration_id: slug, tool_count: 2, connections: 0, status: 'no_connection_needed' }],
      next_cursor: null,
    })
    const connections = await callMcpTool(gateway(), tenant.key, 'platform_list_connections')
    expect(connections.structuredContent).toEqual({ data: [] })
  })

  it('can be switched off', async () => {
    const { tenant, slug } = await createWorld()
    await administrator(gateway()).ask('PUT', `${tenant.base}/tools`, {
      off: [{ subject_type: 'organization', tools: ['platform'] }],
    })
    expect(await namesOf(tenant.key)).toEqual([`${slug}_add`, `${slug}_echo`])
    for (const name of ['platform_whoami', 'platform_execute_tool']) {
      const params = { name, arguments: { name: `${slug}_echo` } }
      expect(await rpcErrorOf(sendMcp(gateway(), tenant.key, 'tools/call', params))).toMatchObject({
        code: -32602,
      })
    }
    await callMcpTool(gateway(), tenant.key, `${slug}_echo`)
  })
})

describe.concurrent('an upstream that fails', () => {
  it.each([
    ['closes the connection', { kind: 'destroy' }],
    ['breaks off its answer', { kind: 'destroy', late: true }],
    [
      'sends no MCP',
      { kind: 'answer', body: '{"ok":true}', headers: { 'content-type': 'application/json' } },
    ],
    ['answers 500', { kind: 'answer', status: 500 }],
    ['redirects', { kind: 'answer', status: 302, headers: { location: 'http://127.0.0.1:1/' } }],
  ])('%s: the error is one of the tool, and the call is not repeated', async (_, fault) => {
    const { tenant, slug, server } = await createWorld({ faults: { 'tools/call': fault } })
    const answer = await sendMcp(gateway(), tenant.key, 'tools/call', { name: `${slug}_echo` })
    const result = await resultOf(Promise.resolve(answer))
    expect(result.isError).toBe(true)
    expect(result).not.toHaveProperty('_meta')
    expect(JSON.parse(textOf(result))).toMatchObject({ code: 'upstream_failed', message: expect.any(String) })
    expect(await server.calls()).toBe(1)
    const entry = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
    expect(entry.record).toMatchObject({ errorCode: 'upstream_failed', cost: 0 })
  })

  it('states an error: the model reads it', async () => {
    const { tenant, slug } = await createWorld({
      results: { echo: { error: { code: -32602, message: 'no x' } } },
    })
    const result = await callMcpTool(gateway(), tenant.key, `${slug}_echo`)
    expect(result.isError).toBe(true)
    expect(textOf(result)).toContain('no x')
  })

  it('hangs: a caller that leaves ends the call, which is recorded', async () => {
    const { tenant, slug, server } = await createWorld({ faults: { 'tools/call': { kind: 'hang' } } })
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: `${slug}_echo` } }
    const headers = { ...bearer(tenant.key), accept: MCP_ACCEPT }
    const edge = await startEdge(gateway().baseUrl)
    const { leave } = beginRequest(`${edge.url}/v1/mcp`, headers, JSON.stringify(body))
    await vi.waitFor(async () => expect(await server.calls()).toBe(1), { timeout: 10_000, interval: 20 })
    leave()
    const [entry] = await callEntries(gateway(), tenant, 1, ({ record }) => record.tool === `${slug}_echo`)
    expect(entry).toMatchObject({ status: 499, record: { errorCode: 'client_left' } })
    expect(await server.calls()).toBe(1)
    await edge.close()
  })
})
