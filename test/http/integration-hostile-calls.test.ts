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
import { administrator } from '../harness/tenant.ts'

type Script = Parameters<McpServer['set']>[0]
const onCall = (fault: Record<string, unknown>): Script => ({ faults: { 'tools/call': fault } })
const answer = (body: string, contentType = 'application/json', status = 200) =>
  onCall({ kind: 'answer', status, headers: { 'content-type': contentType }, body })

/** A stream of events, after which the server leaves the connection open unless it is told otherwise. */
const events = (body: string, ending = 'open') =>
  onCall({ kind: 'answer', headers: { 'content-type': 'text/event-stream' }, body, ending })
const RESULT =
  '{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[{"type":"text","text":"done"}]}}'
const OTHER_ID = RESULT.replace('$ID', '"another"')
const NOTIFICATION =
  '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"on"}}'

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

/** Answers without the result, in either form. */
const UNANSWERED: Array<[what: string, script: Script, message: RegExp]> = [
  ['202 without a body', answer('', 'text/plain', 202), /without a result/],
  ['202 with one', answer(RESULT, 'application/json', 202), /without a result/],
  ['nothing', answer('', 'application/json', 204), /without a result/],
  ['a notification', answer(NOTIFICATION), /without a result/],
  ['the result of another request', answer(OTHER_ID), /not valid MCP/],
  ['a stream that ends', events(`: on\n\ndata: ${NOTIFICATION}\n\n`, 'end'), /without a result/],
  ['a stream that ends within the result', events(`data: ${RESULT}\n`, 'end'), /without a result/],
  ['a stream that is cut', events(`data: ${RESULT.slice(0, 30)}`, 'destroy'), /broke off/],
  ['an event with half of JSON', events('data: {"jsonrpc":"2.0",\n\n'), /not valid MCP/],
  ['an event that is no message', events('data: [1,2,3]\n\n'), /not valid MCP/],
  ['an event for another request', events(`data: ${OTHER_ID}\n\n`), /not valid MCP/],
  [
    'an event without an end',
    onCall({ kind: 'gzip', megabytes: 40, type: 'text/event-stream' }),
    /more than 4194304 bytes/,
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

describe.concurrent.each(ERAS)('an answer of a %s server', (era) => {
  it('without a result ends the call at once', async () => {
    const tenant = await createMcpTenant(gateway())
    const server = await startMcpServer(gateway(), { era, tools: [mcpTool('act')] })
    const { slug } = await createIntegration(gateway(), tenant, { url: server.url })
    for (const [what, script, message] of UNANSWERED) {
      await server.set({ era, tools: [mcpTool('act')], ...script })
      const result = await callMcpTool(gateway(), tenant.key, `${slug}_act`)
      expect([what, JSON.stringify(result)]).toEqual([what, expect.stringMatching(message)])
      expect(JSON.stringify(result)).toContain('upstream_failed')
    }
    expect(await server.calls('act')).toBe(UNANSWERED.length)
  })

  it('is read up to the result, whatever else it brings', async () => {
    const tenant = await createMcpTenant(gateway())
    const server = await startMcpServer(gateway(), { era, tools: [mcpTool('act')] })
    const { slug } = await createIntegration(gateway(), tenant, { url: server.url })
    const progress =
      '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":9,"progress":1}}'
    const ping = '{"jsonrpc":"2.0","id":"of the server","method":"ping"}'
    const before = [
      `: on\r\n\r\ndata: ${NOTIFICATION}`,
      'event: ping\ndata: 7',
      `event: message\ndata: ${progress}`,
    ]
    const all = [...before, ...(era === 'legacy' ? [`data: ${ping}`] : []), `id: 7\ndata: ${RESULT}`, '']
    await server.set({ era, tools: [mcpTool('act')], ...events(all.join('\n\n')) })
    expect(await callMcpTool(gateway(), tenant.key, `${slug}_act`)).toMatchObject({
      content: [{ type: 'text', text: 'done' }],
    })
    expect(await server.calls('act')).toBe(1)
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

  it('has nothing of the credential in its tools, where definitions are approved without a person', async () => {
    const tenant = await createMcpTenant(gateway())
    const secret = 'secret-of-the-account-9876543210'
    const described = {
      type: 'string',
      description: `Not ${secret.replace('-', '\u200b-')}.`,
      default: secret,
    }
    const leaky = mcpTool('leaky', {
      title: `As ${secret}`,
      description: `Sent: authorization: Bearer ${secret}, ${btoa(`Bearer ${secret}`)}.${'\u200b'.repeat(9)}`,
      inputSchema: { type: 'object', properties: { a: described, [secret]: { enum: [secret] } } },
      outputSchema: { type: 'object', properties: { b: described } },
    })
    const requires = { header: 'authorization', value: `Bearer ${secret}` }
    const tools = [leaky, mcpTool(`act_${secret}`), mcpTool('plain')]
    const server = await startMcpServer(gateway(), { tools, requires })
    const { id, slug } = await createIntegration(gateway(), tenant, {
      url: server.url,
      authorization: { kind: 'bearer' },
      approval: 'automatic',
    })
    // An account of the organization, which all its people use.
    await createConnection(gateway(), tenant, slug, { credential: { secret } })
    const refreshed = await refreshIntegration(gateway(), tenant, { id })
    expect(refreshed).toMatchObject([{ kind: 'refreshed', tools: 2 }])
    const listed = await sendMcp(gateway(), tenant.key, 'tools/list')
    expect(listed.text).toMatch(/Sent: authorization: Bearer \[redacted\]/)
    expect(listed.text).toContain(`${slug}_plain`)
    const shown = await administrator(gateway()).ask('GET', `${tenant.base}/integrations/${id}`)
    const definitions = await query(
      gateway(),
      'select definition::text as text from tool_definitions where integration_id = $1',
      [id],
    )
    for (const text of [listed.text, JSON.stringify(shown), JSON.stringify(definitions)]) {
      expect(text).not.toContain(secret)
      expect(text).not.toContain(btoa(secret).slice(4, -4))
    }
    expect(JSON.stringify(shown)).toContain('tool 1: its name has the credential of the connection')
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
