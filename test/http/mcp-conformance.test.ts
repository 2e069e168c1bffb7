import { spawn } from 'node:child_process'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { createIntegration, mcpTool, startMcpServer } from '../harness/integrations.ts'
import { createMcpTenant } from '../harness/mcp.ts'

/**
 * The conformance suite of the protocol (@modelcontextprotocol/conformance) in both eras. Its fixture tools are those of an
 * integration: `test_simple_text` is the tool `simple_text` of the integration `test`. So it also checks that results pass
 * the gateway unchanged.
 */
const expectedFailures = (revision: string) =>
  join(import.meta.dirname, `support/mcp-expected-failures-${revision}.yml`)
const PROGRAM = join(
  import.meta.dirname,
  '../../node_modules/@modelcontextprotocol/conformance/dist/index.js',
)

const data = Buffer.from('fixture').toString('base64')
const image = { type: 'image', data, mimeType: 'image/png' }
const resource = (uri: string) => ({
  type: 'resource',
  resource: { uri, mimeType: 'text/plain', text: 'text' },
})
const text = (value: string) => ({ type: 'text', text: value })

const RESULTS = {
  simple_text: { content: [text('This is a simple text response for testing.')] },
  image_content: { content: [image] },
  audio_content: { content: [{ type: 'audio', data, mimeType: 'audio/wav' }] },
  embedded_resource: { content: [resource('test://embedded-resource')] },
  multiple_content_types: { content: [text('Multiple:'), image, resource('test://mixed')] },
  error_handling: { content: [text('This tool intentionally returns an error for testing')], isError: true },
}

const SCHEMA_2020_12 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
}

/** The suite sends no key: this adds it, as a client that is configured with one does. Its origin is the gateway's. */
function addingKey(key: string): Server {
  return createServer((incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { host, origin } = incoming.headers
    const isOwn = origin === `http://${host}` && /^(localhost|127\.0\.0\.1):\d+$/.test(host ?? '')
    const headers = {
      ...incoming.headers,
      ...(isOwn && { origin: gateway().baseUrl }),
      authorization: `Bearer ${key}`,
      host: new URL(gateway().baseUrl).host,
    }
    const target = `${gateway().baseUrl}${incoming.url}`
    const forwarded = request(target, { method: incoming.method ?? 'GET', headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    forwarded.on('error', () => outgoing.destroy())
    incoming.pipe(forwarded)
  })
}

let proxy: Server
let url: string

beforeAll(async () => {
  const tenant = await createMcpTenant(gateway(), {
    organization: { rate_limit_per_minute: 100_000, user_rate_limit_per_minute: 100_000 },
  })
  const tools = Object.keys(RESULTS).map((name) => mcpTool(name, { inputSchema: { type: 'object' } }))
  const server = await startMcpServer(gateway(), { tools, results: RESULTS })
  await createIntegration(gateway(), tenant, { url: server.url, slug: 'test' })
  const schemas = await startMcpServer(gateway(), {
    tools: [mcpTool('schema_2020_12_tool', { inputSchema: SCHEMA_2020_12 })],
  })
  await createIntegration(gateway(), tenant, { url: schemas.url, slug: 'json' })
  proxy = addingKey(tenant.key)
  await new Promise<void>((listening) => proxy.listen(0, '127.0.0.1', listening))
  url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/v1/mcp`
})

afterAll(() => proxy?.close())

interface Run {
  code: number | null
  printed: string
}

function runSuite(revision: string, options: string[]): Promise<Run> {
  const baseline = ['--expected-failures', expectedFailures(revision)]
  const parameters = [PROGRAM, 'server', '--url', url, ...baseline, ...options]
  const program = spawn(process.execPath, parameters, { stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  for (const stream of [program.stdout, program.stderr]) stream.on('data', (part) => (printed += part))
  return new Promise((resolve) => program.on('close', (code) => resolve({ code, printed })))
}

describe('the conformance suite of the protocol', () => {
  it.each([
    ['2025-11-25', ['--suite', 'all', '--spec-version', '2025-11-25']],
    ['2026-07-28', ['--requirements', '2026-07-28']],
  ])(
    'passes for %s, apart from what the interface does not have',
    async (revision, options) => {
      const { code, printed } = await runSuite(revision, options)
      expect(code, printed.slice(-6_000)).toBe(0)
      expect(printed).toContain('tools-list')
    },
    120_000,
  )
})
