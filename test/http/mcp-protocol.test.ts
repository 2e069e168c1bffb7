import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import {
  callMcpTool,
  createMcpTenant,
  ERAS,
  type Era,
  listMcpTools,
  postMcp,
  resultOf,
  rpcErrorOf,
  sendMcp,
} from '../harness/mcp.ts'
import { auditEntryOf } from '../harness/records.ts'
import { jsonOf } from '../harness/send.ts'
import type { Tenant } from '../harness/tenant.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createMcpTenant(gateway())
})

const request = (method: string, params = {}, era: Era = 'legacy', more = {}) =>
  sendMcp(gateway(), tenant.key, method, params, { era, ...more })

const post = (message: unknown, headers = {}) =>
  postMcp(gateway(), tenant.key, typeof message === 'string' ? message : JSON.stringify(message), { headers })

describe('the era of initialize', () => {
  it.each(['2025-11-25', '2025-06-18', '2025-03-26'])('negotiates %s', async (protocolVersion) => {
    const result = await resultOf(
      request('initialize', { protocolVersion, capabilities: {}, clientInfo: { name: 'c', version: '1' } }),
    )
    expect(result).toMatchObject({ protocolVersion, capabilities: { tools: {} } })
    expect(result.serverInfo).toMatchObject({ name: 'headgate' })
    expect(result.capabilities).not.toHaveProperty('resources')
  })

  it('answers an unknown revision with its newest', async () => {
    const params = {
      protocolVersion: '2031-01-01',
      capabilities: {},
      clientInfo: { name: 'c', version: '1' },
    }
    expect(await resultOf(request('initialize', params))).toMatchObject({ protocolVersion: '2025-11-25' })
  })

  it('accepts notifications and answers to requests that it never sent', async () => {
    for (const message of [
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
      { jsonrpc: '2.0', id: 5, result: {} },
    ]) {
      const answer = await post(message)
      expect([answer.status, answer.text]).toEqual([202, ''])
      const entry = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
      expect(entry.status).toBe(202)
    }
  })

  it('refuses a revision that it does not know in the header', async () => {
    const answer = request('tools/list', {}, 'legacy', { headers: { 'mcp-protocol-version': '1999-01-01' } })
    expect(await rpcErrorOf(answer)).toMatchObject({ status: 400, code: -32022 })
  })
})

describe('the era of 2026-07-28', () => {
  it('describes itself', async () => {
    expect(await resultOf(request('server/discover', {}, 'modern'))).toMatchObject({
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: {} },
      resultType: 'complete',
      _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'headgate' } },
    })
  })

  it('states how long a list may be used', async () => {
    const page = await resultOf(request('tools/list', {}, 'modern'))
    expect(page).toMatchObject({ ttlMs: 60_000, cacheScope: 'private', resultType: 'complete' })
    expect(await resultOf(request('tools/list'))).not.toHaveProperty('ttlMs')
  })

  it('has no ping and no initialize', async () => {
    for (const method of ['ping', 'initialize', 'logging/setLevel']) {
      expect(await rpcErrorOf(request(method, {}, 'modern'))).toMatchObject({ status: 404, code: -32601 })
    }
  })

  it.each([
    ['another method', { 'mcp-method': 'tools/call' }],
    ['no method', { 'mcp-method': undefined }],
    ['another revision', { 'mcp-protocol-version': '2025-11-25' }],
    ['no revision', { 'mcp-protocol-version': undefined }],
  ])('refuses headers with %s', async (_, headers) => {
    expect(await rpcErrorOf(request('tools/list', {}, 'modern', { headers }))).toMatchObject({
      status: 400,
      code: -32020,
    })
  })

  it('compares the name of the tool with its header', async () => {
    const call = (name: string | undefined) =>
      request('tools/call', { name: 'platform_whoami' }, 'modern', { headers: { 'mcp-name': name } })
    for (const name of ['platform_list_models', undefined, '=?base64?!?=', '=?base64?cGxhdGZvcm0=?=']) {
      expect(await rpcErrorOf(call(name))).toMatchObject({ status: 400, code: -32020 })
    }
    const encoded = `=?base64?${Buffer.from('platform_whoami').toString('base64')}?=`
    for (const name of ['platform_whoami', encoded]) expect((await call(name)).status).toBe(200)
  })

  it('lists the revisions that it knows to a client of another', async () => {
    const meta = { 'io.modelcontextprotocol/protocolVersion': '2031-01-01' }
    const params = { _meta: { ...meta, 'io.modelcontextprotocol/clientCapabilities': {} } }
    const headers = { 'mcp-protocol-version': '2031-01-01', 'mcp-method': 'tools/list' }
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params }
    const error = await rpcErrorOf(post(message, headers))
    expect(error).toMatchObject({ status: 400, code: -32022, data: { requested: '2031-01-01' } })
    expect(error.data?.supported).toContain('2026-07-28')
  })
})

describe('messages that cannot be served', () => {
  it.each([
    ['no JSON', '{"jsonrpc"', -32700],
    ['nothing', '', -32700],
    ['invalid UTF-8', Buffer.from([0x22, 0xff, 0x22]).toString('latin1'), -32700],
    ['a batch', JSON.stringify([{ jsonrpc: '2.0', id: 1, method: 'ping' }]), -32600],
    ['an empty batch', '[]', -32600],
    ['a string', '"ping"', -32600],
    ['null', 'null', -32600],
    ['no version', JSON.stringify({ id: 1, method: 'ping' }), -32600],
    ['no method', JSON.stringify({ jsonrpc: '2.0', id: 1 }), -32600],
    ['an id that is an object', JSON.stringify({ jsonrpc: '2.0', id: {}, method: 'ping' }), -32600],
  ])('refuses %s', async (_, body, code) => {
    const answer = await postMcp(gateway(), tenant.key, Buffer.from(body, 'latin1'))
    expect(answer.status).toBe(400)
    expect(jsonOf(answer)).toMatchObject({ jsonrpc: '2.0', error: { code } })
    expect([null, 1]).toContain(jsonOf(answer).id)
    const entry = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
    expect(entry).toMatchObject({ status: 400, record: { errorCode: 'invalid_message' } })
  })

  it.each(ERAS)('does not know resources, prompts and others (%s)', async (era) => {
    for (const method of ['resources/list', 'resources/read', 'prompts/list', 'subscriptions/listen', 'x']) {
      const error = await rpcErrorOf(request(method, {}, era))
      expect(error).toMatchObject({ status: era === 'legacy' ? 200 : 404, code: -32601 })
    }
  })

  it.each(ERAS)('refuses unknown tools and parameters (%s)', async (era) => {
    for (const params of [
      { name: 'no-such_tool' },
      { name: 'platform_no_such_tool' },
      { name: '__proto__' },
      {},
      { name: 7 },
      { name: '' },
      { name: 'platform_whoami', arguments: [] },
      { name: 'platform_whoami', arguments: 'x' },
      { name: 'platform_whoami', arguments: null },
    ]) {
      const answer = request('tools/call', params, era)
      expect(await rpcErrorOf(answer)).toMatchObject({ status: 200, code: -32602 })
      const entry = await auditEntryOf(gateway(), tenant, (await answer).headers['x-request-id'])
      expect(entry.record.errorCode).toMatch(/^(unknown_tool|invalid_params)$/)
    }
    expect(await rpcErrorOf(request('tools/list', { cursor: 'x' }, era))).toMatchObject({ code: -32602 })
  })
})

describe('tools of the platform', () => {
  it.each(ERAS)('are listed with their schemas (%s)', async (era) => {
    const tools = await listMcpTools(gateway(), tenant.key, { era })
    const names = tools.map(({ name }) => name)
    expect(names).toEqual([...names].sort())
    expect(names).toContain('platform_whoami')
    for (const tool of tools) {
      expect(tool).toMatchObject({
        inputSchema: { type: 'object', additionalProperties: false },
        annotations: { readOnlyHint: expect.any(Boolean) },
      })
    }
  })

  it('names the caller', async () => {
    const result = await callMcpTool(gateway(), tenant.key, 'platform_whoami')
    const [content] = result.content as Array<{ type: string; text: string }>
    expect(JSON.parse(content?.text ?? '')).toEqual(result.structuredContent)
    expect(result.structuredContent).toMatchObject({
      user: { id: tenant.userId },
      organization: { id: tenant.organizationId },
      entitlements: ['personal_api_key_access'],
      key: { id: tenant.keyId, label: 'test' },
    })
    expect(result).not.toHaveProperty('_meta')
  })

  it('record one call, with the tool', async () => {
    const answer = await request('tools/call', {
      name: 'platform_list_models',
      arguments: { query: 'scripted-chat' },
    })
    const entry = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
    expect(entry).toMatchObject({ surface: 'mcp', status: 200, record: { tool: 'platform_list_models' } })
  })

  it('answer arguments that violate their schema in the form of the interface', async () => {
    for (const input of [{ x: 1 }, { query: '' }, { query: 7 }]) {
      const result = await callMcpTool(gateway(), tenant.key, 'platform_list_models', input)
      expect(result).toMatchObject({ isError: true, _meta: { 'service.dev/platform-tool-error': 1 } })
      const content = result.content as Array<{ type: string; text: string }>
      expect(content).toHaveLength(1)
      expect(JSON.parse(content[0]?.text ?? '')).toEqual({
        code: 'invalid_input',
        message: expect.any(String),
        retryable: false,
      })
    }
  })
})
