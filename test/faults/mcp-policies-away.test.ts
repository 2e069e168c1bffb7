import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createIntegration, mcpTool, startMcpServer } from '../harness/integrations.ts'
import { callMcpTool, createMcpTenant, listMcpTools, rpcErrorOf, sendMcp } from '../harness/mcp.ts'
import type { FaultMode } from './support/fault-proxy.ts'
import { type FaultyGateway, startFaultyGateway } from './support/faulty-gateway.ts'

const MODES: FaultMode[] = ['refuse', 'hang', 'error', 'lose_answers']

let faulty: FaultyGateway
beforeAll(async () => {
  faulty = await startFaultyGateway()
})
afterAll(() => faulty?.stop())
afterEach(() => faulty.postgres.become('pass'))

describe('while Postgres fails', () => {
  it.each(MODES)('(%s), a call whose policies this isolate has not read is not made', async (mode) => {
    const { gateway, postgres } = faulty
    const tenant = await createMcpTenant(gateway)
    const server = await startMcpServer(gateway, { tools: [mcpTool('echo')] })
    const { slug } = await createIntegration(gateway, tenant, { url: server.url })
    const name = `${slug}_echo`
    // Key, rights and catalogue are cached by it; the policies are not.
    expect((await listMcpTools(gateway, tenant.key)).map((tool) => tool.name)).toContain(name)
    await postgres.become(mode)
    for (const tool of [name, 'platform_whoami']) {
      const error = await rpcErrorOf(sendMcp(gateway, tenant.key, 'tools/call', { name: tool }))
      expect(error).toMatchObject({ status: 200, code: -32000, data: { reason: 'dlp_unavailable' } })
    }
    expect(await server.calls()).toBe(0)
    await postgres.become('pass')
    expect(await callMcpTool(gateway, tenant.key, name)).not.toHaveProperty('isError')

    // Now they are cached: nothing of such a call needs Postgres.
    await postgres.become(mode)
    expect(await callMcpTool(gateway, tenant.key, name)).not.toHaveProperty('isError')
    expect(await server.calls()).toBe(2)
  })
})
