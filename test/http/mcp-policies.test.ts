import { describe, expect, it } from 'vitest'
import { gateway, query } from '../harness/gateway.ts'
import {
  createIntegration,
  mcpTool,
  type ScriptedServerInput,
  startMcpServer,
} from '../harness/integrations.ts'
import { callMcpTool, createMcpTenant, resultOf, rpcErrorOf, sendMcp } from '../harness/mcp.ts'
import { auditEntryOf, settledCredits } from '../harness/records.ts'
import type { Tenant } from '../harness/tenant.ts'
import { addPolicy, codePolicy, someCode } from './support/dlp.ts'

type Json = Record<string, unknown>

const textOf = (result: Json) => (result.content as Array<{ text: string }>)[0]?.text ?? ''

describe.concurrent('policies on calls of tools', () => {
  /** A tenant whose integration needs no account, under a policy. */
  async function governed(policy: Json, script: Partial<ScriptedServerInput> = {}) {
    const tenant = await createMcpTenant(gateway())
    await addPolicy(tenant, policy)
    const server = await startMcpServer(gateway(), { tools: [mcpTool('echo')], ...script })
    const { slug } = await createIntegration(gateway(), tenant, { url: server.url })
    return { tenant, server, slug, name: `${slug}_echo` }
  }

  it('redact arguments before they are sent, and results before they are returned', async () => {
    const { tenant, server, name } = await governed(codePolicy('redact'))
    const [sent, returned] = [someCode(), someCode()]
    await callMcpTool(gateway(), tenant.key, name, { text: `a ${sent} b`, [`key ${sent}`]: 1 })
    expect(JSON.stringify(await server.requests())).not.toContain(sent)
    await server.set({
      tools: [mcpTool('echo')],
      results: {
        echo: {
          content: [{ type: 'text', text: `c ${returned} d` }],
          structuredContent: { deep: [{ code: returned }] },
        },
      },
    })
    const answer = await sendMcp(gateway(), tenant.key, 'tools/call', { name })
    expect(answer.text).not.toContain(returned)
    const result = await resultOf(Promise.resolve(answer))
    expect(textOf(result)).toMatch(/^c .+ d$/)
    const entry = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
    expect(entry.record).toMatchObject({ dlp: { findings: { code: 2 } } })
  })

  it('restore values in the result that the upstream got as tokens', async () => {
    const tokenised = codePolicy('tokenise', { directions: ['tool_arguments', 'tool_result'] })
    const { tenant, server, name } = await governed(tokenised)
    const [sent, of] = [someCode(), someCode()]
    await callMcpTool(gateway(), tenant.key, name, { text: sent })
    const [token = ''] = JSON.stringify(await server.requests()).match(/\[\[CODE_[0-9a-f]{12}\]\]/) ?? []
    const foreign = '[[CODE_000000000000]]'
    const told = (value: string) => ({
      content: [{ type: 'text', text: `${value}, ${foreign}, ${of}` }],
      structuredContent: { deep: [{ [`of ${value}`]: value }] },
    })
    await server.set({ tools: [mcpTool('echo')], results: { echo: told(token) } })
    const result = await callMcpTool(gateway(), tenant.key, name, { text: sent })
    expect(JSON.stringify(await server.requests())).not.toContain(sent)
    // A value that is the upstream's own becomes a token by the policy for results.
    expect(JSON.stringify(result)).not.toContain(of)
    expect(result).toMatchObject({ structuredContent: told(sent).structuredContent })
    expect(textOf(result)).toMatch(
      new RegExp(`^${sent}, \\[\\[CODE_0{12}\\]\\], \\[\\[CODE_[0-9a-f]{12}\\]\\]$`),
    )
    // A call that did not send the value does not get it for its token.
    expect(textOf(await callMcpTool(gateway(), tenant.key, name, {}))).toMatch(/^\[\[CODE/)
  })

  it('block arguments, and nothing is sent', async () => {
    const { tenant, server, name } = await governed(codePolicy('block', { directions: ['tool_arguments'] }))
    const params = { name, arguments: { text: someCode() } }
    expect(await rpcErrorOf(sendMcp(gateway(), tenant.key, 'tools/call', params))).toMatchObject({
      status: 200,
      code: -32000,
      data: { reason: 'dlp_blocked' },
    })
    expect(await server.calls()).toBe(0)
  })

  it('block results', async () => {
    const code = someCode()
    const results = { echo: { content: [{ type: 'text', text: code }] } }
    const { tenant, name } = await governed(codePolicy('block', { directions: ['tool_result'] }), { results })
    const answer = await sendMcp(gateway(), tenant.key, 'tools/call', { name })
    expect(answer.text).not.toContain(code)
    expect(await rpcErrorOf(Promise.resolve(answer))).toMatchObject({
      code: -32000,
      data: { reason: 'dlp_blocked' },
    })
  })

  const data = Buffer.from('an image').toString('base64')
  it.each([
    ['image', { type: 'image', data, mimeType: 'image/png' }],
    ['audio', { type: 'audio', data, mimeType: 'audio/wav' }],
    ['blob', { type: 'resource', resource: { uri: 'file:///x', blob: data } }],
  ])('withhold content that cannot be inspected (%s), unless they allow it', async (contentKind, block) => {
    const results = { echo: { content: [{ type: 'text', text: 'x' }, block] } }
    const policy = codePolicy('redact', { directions: ['tool_result'] })
    const blocking = await governed(policy, { results })
    const call = ({ tenant, name }: { tenant: Tenant; name: string }) =>
      sendMcp(gateway(), tenant.key, 'tools/call', { name })
    const answer = await call(blocking)
    expect(answer.text).not.toContain(data)
    expect(await rpcErrorOf(Promise.resolve(answer))).toMatchObject({
      status: 200,
      code: -32000,
      data: { reason: 'dlp_uninspectable_content', contentKind },
    })
    const entry = await auditEntryOf(gateway(), blocking.tenant, answer.headers['x-request-id'])
    expect(entry.record.errorCode).toBe('dlp_uninspectable_content')
    const allowing = await governed(
      codePolicy('redact', { directions: ['tool_result'], uninspectable: { tool_result: 'allow' } }),
      { results },
    )
    expect((await resultOf(call(allowing))).content).toEqual(results.echo.content)
  })

  const BROKEN: Array<[name: string, change: string]> = [
    ['names an unknown detector', `jsonb_set(body, '{rules}', '[{"detector":"no-such","action":"block"}]')`],
    ['has a pattern that does not compile', `jsonb_set(body, '{patterns,0,pattern}', '"(?=x)"')`],
    ['has an unknown action', `jsonb_set(body, '{rules,0,action}', '"vanish"')`],
  ]
  const WAYS: Array<[way: string, request: (name: string) => Json]> = [
    ['a tool', (name) => ({ name, arguments: { text: 'a' } })],
    ['a tool by its name', (name) => ({ name: 'platform_execute_tool', arguments: { name } })],
    ['a tool of the gateway', () => ({ name: 'platform_whoami' })],
  ]
  it.each(BROKEN)(
    'that cannot be applied, since one %s, stop every call before it is sent',
    async (_, change) => {
      // Every direction by itself: a result that cannot be inspected must not be caused.
      for (const direction of ['tool_arguments', 'tool_result']) {
        const tenant = await createMcpTenant(gateway())
        const server = await startMcpServer(gateway(), { tools: [mcpTool('echo')] })
        const { slug } = await createIntegration(gateway(), tenant, { url: server.url, price: 1_000 })
        const { balance } = await settledCredits(gateway(), tenant)
        const { id } = await addPolicy(tenant, codePolicy('redact', { directions: [direction] }))
        await query(gateway(), `update dlp_policy_versions set body = ${change} where policy_id = $1`, [id])
        for (const [, request] of WAYS) {
          const answer = await sendMcp(gateway(), tenant.key, 'tools/call', request(`${slug}_echo`))
          expect(await rpcErrorOf(Promise.resolve(answer))).toEqual({
            status: 200,
            code: -32000,
            message: 'The data-loss prevention policy could not be applied.',
            data: { reason: 'dlp_unavailable' },
          })
          const { record } = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
          expect(record).toMatchObject({ errorCode: 'dlp_unavailable', tool: expect.any(String) })
        }
        expect(await server.calls()).toBe(0)
        expect(await settledCredits(gateway(), tenant)).toMatchObject({ balance, available: balance })
      }
    },
  )
})
