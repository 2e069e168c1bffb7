import { describe, expect, it } from 'vitest'
import { createConnection } from '../harness/connections.ts'
import { gateway, query } from '../harness/gateway.ts'
import {
  createIntegration,
  type McpServer,
  mcpTool,
  refreshIntegration,
  startMcpServer,
} from '../harness/integrations.ts'
import { callMcpTool, createMcpTenant, sendMcp } from '../harness/mcp.ts'
import { auditEntryOf } from '../harness/records.ts'

type Script = Parameters<McpServer['set']>[0]
const onCall = (fault: Record<string, unknown>): Script => ({ faults: { 'tools/call': fault } })
const answer = (body: string, contentType = 'application/json', status = 200) =>
  onCall({ kind: 'answer', status, headers: { 'content-type': contentType }, body })

const HUGE = `{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"${'x'.repeat(5_000_000)}"}]}}`

/** Each is answered, says why, and reaches the upstream once. */
const FAULTS: Array<[what: string, script: Script, message: RegExp]> = [
  ['fails', answer('<b>boom</b>', 'text/html', 500), /answered with status 500/],
  ['sends half of JSON', answer('{"jsonrpc":"2.0",'), /not valid MCP/],
  ['sends a page of HTML', answer('<html>Sign in</html>', 'text/html'), /not valid MCP/],
  [
    'sends a result that is none',
    answer('{"jsonrpc":"2.0","id":$ID,"result":{"content":7}}'),
    /not valid MCP/,
  ],
  ['sends too much', answer(HUGE), /more than 4194304 bytes/],
  ['sends a small answer that is large', onCall({ kind: 'gzip', megabytes: 40 }), /more than 4194304 bytes/],
  ['closes the connection', onCall({ kind: 'destroy' }), /cannot be reached/],
  ['closes it in the middle', onCall({ kind: 'destroy', late: true }), /broke off|not valid MCP/],
  [
    'redirects to the metadata service',
    onCall({ kind: 'answer', status: 302, headers: { location: 'http://169.254.169.254/latest/' } }),
    /Redirects are not followed/,
  ],
]

const ERAS = ['modern', 'legacy'] as const

describe.concurrent.each(ERAS)('a tool of a %s server that', (era) => {
  it.each(FAULTS)('%s', async (_what, script, message) => {
    const tenant = await createMcpTenant(gateway())
    const server = await startMcpServer(gateway(), { era, tools: [mcpTool('act')] })
    const { slug } = await createIntegration(gateway(), tenant, { url: server.url })
    await server.set({ era, tools: [mcpTool('act')], ...script })
    const called = await sendMcp(gateway(), tenant.key, 'tools/call', { name: `${slug}_act`, arguments: {} })
    expect(called.status).toBe(200)
    expect(called.text).toMatch(message)
    expect(called.text).not.toMatch(/boom|Sign in|169\.254/)
    expect(await server.calls('act')).toBe(1)
    const entry = await auditEntryOf(gateway(), tenant, called.headers['x-request-id'])
    expect(entry.status).toBeGreaterThanOrEqual(400)
  })
})

describe('what an upstream gets and gives', () => {
  it('has no key of the caller, and nothing of the credential in its results', async () => {
    const tenant = await createMcpTenant(gateway())
    const secret = 'secret-of-the-account-0123456789'
    const leaky = { content: [{ type: 'text', text: `You are ${secret}, ${btoa(`Bearer ${secret}`)}.` }] }
    const requires = { header: 'authorization', value: `Bearer ${secret}` }
    const tools = [mcpTool('whoami')]
    const server = await startMcpServer(gateway(), { tools, requires, results: { whoami: leaky } })
    const { id, slug } = await createIntegration(gateway(), tenant, {
      url: server.url,
      authorization: { kind: 'bearer' },
    })
    const connection = await createConnection(gateway(), tenant, slug, { credential: { secret } })
    expect(await refreshIntegration(gateway(), tenant, { id })).toMatchObject([{ kind: 'refreshed' }])
    const result = await callMcpTool(gateway(), tenant.key, `${slug}_whoami`)
    expect(JSON.stringify(result)).toMatch(/You are \[redacted\]/)
    expect(JSON.stringify(result)).not.toContain(secret)
    expect(JSON.stringify(await server.requests())).not.toContain(tenant.key.split('_')[2])

    await server.set({ tools, requires: { ...requires, value: 'another' } })
    const refused = await sendMcp(gateway(), tenant.key, 'tools/call', { name: `${slug}_whoami` })
    expect(refused.text).toContain('credentials_unavailable')
    const [row] = await query(gateway(), 'select status from connections where id = $1', [connection.id])
    expect(row).toEqual({ status: 'needs_reauth' })
  })

  it('passes an error that the upstream states as a result, for the model to read', async () => {
    const tenant = await createMcpTenant(gateway())
    const error = { code: -32602, message: 'text: must not be empty' }
    const server = await startMcpServer(gateway(), { tools: [mcpTool('act')], results: { act: { error } } })
    const { slug } = await createIntegration(gateway(), tenant, { url: server.url })
    expect(await callMcpTool(gateway(), tenant.key, `${slug}_act`)).toMatchObject({
      isError: true,
      content: [{ text: 'The upstream refused the call (-32602): text: must not be empty' }],
    })
  })
})
