import { BenchFailure } from '../measure.ts'
import type { Call } from '../scenarios.ts'
import type { BenchSystem } from '../system.ts'

/** A scripted server with many tools, and an organization that has it as an integration. */
export interface BenchServer {
  /** Sends a request of the modern era to the server itself. @returns the answer. */
  direct(method: string, params?: object): Promise<string>
  /** Sends the same request through the gateway. */
  gateway(method: string, params?: object): Promise<string>
  /** The same request through the gateway, for a load. */
  call(method: string, params: object): Call
  toolName(tool: string): string
}

const SLUG = 'bench'
const VERSION = '2026-07-28'
const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': VERSION,
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** @throws BenchFailure when the integration cannot be prepared. */
export async function prepareServer(
  { gateway, upstream, variables }: Pick<BenchSystem, 'gateway' | 'upstream' | 'variables'>,
  tools: number,
  name = 'bench-mcp',
): Promise<BenchServer> {
  const server = `${upstream}/mcp/${name}`
  const script = { generated: tools, pageSize: tools }
  await sent(`${upstream}/control/mcp/${name}`, 'PUT', {}, script)
  const admin = { authorization: `Bearer ${variables.ADMIN_TOKEN}` }
  const manage = async (method: string, path: string, body?: object): Promise<Record<string, string>> =>
    JSON.parse(await sent(`${gateway.url}/api/organizations${path}`, method, admin, body))
  const { id } = await manage('POST', '', { name: 'Bench', slug: name })
  const { id: userId } = await manage('POST', `/${id}/users`, {
    email: `${name}@example.com`,
    name: 'Bench',
  })
  await manage('PUT', `/${id}/users/${userId}/entitlements/personal_api_key_access`)
  const { key } = await manage('POST', `/${id}/keys`, { user_id: userId, label: 'bench' })
  const integration = await manage('POST', `/${id}/integrations`, { kind: 'mcp', slug: SLUG, url: server })
  await manage('POST', `/${id}/integration-grants`, { subject_type: 'organization', integration: SLUG })
  await manage('POST', `/${id}/integrations/${integration.id}/refresh`, {})
  return {
    direct: (method, params = {}) => request(server, method, params, {}),
    gateway: (method, params = {}) =>
      request(`${gateway.url}/v1/mcp`, method, params, { authorization: `Bearer ${key}` }),
    call: (method, params) => ({
      path: '/v1/mcp',
      headers: {
        ...headersOf(method, params),
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
      },
      body: bodyOf(method, params),
      ending: '}',
    }),
    toolName: (tool) => `${SLUG}_${tool}`,
  }
}

const bodyOf = (method: string, params: object): string =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: ENVELOPE } })

function headersOf(method: string, params: object): Record<string, string> {
  const { name } = params as { name?: string }
  return {
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': VERSION,
    'mcp-method': method,
    ...(name !== undefined && { 'mcp-name': name }),
  }
}

async function request(
  url: string,
  method: string,
  params: object,
  headers: Record<string, string>,
): Promise<string> {
  const text = await sent(
    url,
    'POST',
    { ...headersOf(method, params), ...headers },
    JSON.parse(bodyOf(method, params)),
  )
  if (!text.includes('"result"')) throw new BenchFailure(`${method}: ${text.slice(0, 300)}`)
  return text
}

async function sent(
  url: string,
  method: string,
  headers: Record<string, string>,
  body?: object,
): Promise<string> {
  const response = await fetch(url, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok)
    throw new BenchFailure(`${method} ${url}: status ${response.status} ${text.slice(0, 300)}`)
  return text
}
