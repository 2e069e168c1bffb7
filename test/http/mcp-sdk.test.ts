import {
  Client as ClientV2,
  StreamableHTTPClientTransport as TransportV2,
} from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { createIntegration, mcpTool, startMcpServer } from '../harness/integrations.ts'
import { createMcpTenant } from '../harness/mcp.ts'
import type { Tenant } from '../harness/tenant.ts'

/** Interface that the official clients of both versions have in common. */
interface OfficialClient {
  listTools(params?: { cursor?: string }): Promise<{ tools: Array<{ name: string }>; nextCursor?: string }>
  callTool(request: { name: string; arguments?: Record<string, unknown> }): Promise<Record<string, unknown>>
  close(): Promise<void>
}

const IMPLEMENTATION = { name: 'test', version: '1.0.0' }

const connectors: Array<[name: string, connect: (key: string, query?: string) => Promise<OfficialClient>]> = [
  [
    'v1',
    async (key, query = '') => {
      const client = new ClientV1(IMPLEMENTATION)
      await client.connect(new TransportV1(endpoint(query), { requestInit: withKey(key) }) as never)
      return client as unknown as OfficialClient
    },
  ],
  [
    'v2 that initializes',
    async (key, query = '') => {
      const client = new ClientV2(IMPLEMENTATION, { versionNegotiation: { mode: 'legacy' } })
      await client.connect(new TransportV2(endpoint(query), { requestInit: withKey(key) }))
      expect(client.getProtocolEra()).toBe('legacy')
      return client as unknown as OfficialClient
    },
  ],
  [
    'v2 that discovers',
    async (key, query = '') => {
      const client = new ClientV2(IMPLEMENTATION, { versionNegotiation: { mode: 'auto' } })
      await client.connect(new TransportV2(endpoint(query), { requestInit: withKey(key) }))
      expect(client.getProtocolEra()).toBe('modern')
      return client as unknown as OfficialClient
    },
  ],
]

const endpoint = (query: string) => new URL(`${gateway().baseUrl}/v1/mcp${query}`)
const withKey = (key: string) => ({ headers: { authorization: `Bearer ${key}` } })

let tenant: Tenant
let slug: string

beforeAll(async () => {
  tenant = await createMcpTenant(gateway())
  const schema = { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] }
  const server = await startMcpServer(gateway(), {
    tools: [mcpTool('add', { outputSchema: schema }), mcpTool('image'), mcpTool('dead')],
    generated: 300,
    results: {
      add: { content: [{ type: 'text', text: '3' }], structuredContent: { sum: 3 } },
      image: { content: [{ type: 'image', data: 'aGk=', mimeType: 'image/png' }] },
    },
  })
  slug = (await createIntegration(gateway(), tenant, { url: server.url })).slug
})

describe.each(connectors)('the official client %s', (_, connect) => {
  it('lists and calls tools', async () => {
    const client = await connect(tenant.key)
    const names: string[] = []
    let cursor: string | undefined
    do {
      const page = await client.listTools(cursor === undefined ? {} : { cursor })
      names.push(...page.tools.map(({ name }) => name))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(names).toContain('platform_whoami')
    expect(names.filter((name) => name.startsWith(`${slug}_`))).toHaveLength(303)
    const sum = await client.callTool({ name: `${slug}_add`, arguments: { text: 'a' } })
    expect(sum).toMatchObject({ structuredContent: { sum: 3 } })
    const image = await client.callTool({ name: `${slug}_image` })
    expect(image).toMatchObject({ content: [{ type: 'image', data: 'aGk=' }] })
    const wrong = await client.callTool({ name: 'platform_search_tools', arguments: { query: '' } })
    expect(wrong).toMatchObject({ isError: true, _meta: { 'service.dev/platform-tool-error': 1 } })
    await client.close()
  })

  it('narrows its list by the address', async () => {
    const client = await connect(tenant.key, '?integrations=platform')
    const { tools } = await client.listTools()
    expect(new Set(tools.map(({ name }) => name.split('_')[0]))).toEqual(new Set(['platform']))
    await client.close()
  })

  it('gets errors with their code and their data', async () => {
    const client = await connect(tenant.key)
    await expect(client.callTool({ name: 'no_such' })).rejects.toMatchObject({ code: -32602 })
    await client.close()
  })

  it('gets no further without a key', async () => {
    await expect(connect('hg_nothing')).rejects.toThrow()
  })
})
