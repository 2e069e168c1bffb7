import { type Answer, jsonOf, send } from './send.ts'
import type { GatewayAddress } from './start-gateway.ts'
import { administrator, createTenant, type Tenant, type TenantOptions } from './tenant.ts'

type Json = Record<string, unknown>

/** A tenant whose user may use the MCP gateway. */
export async function createMcpTenant(address: GatewayAddress, options: TenantOptions = {}): Promise<Tenant> {
  const tenant = await createTenant(address, options)
  await entitle(address, tenant.base, tenant.userId)
  return tenant
}

/** Gives a user the entitlement of the MCP gateway. */
export async function entitle(address: GatewayAddress, base: string, userId: string): Promise<void> {
  await administrator(address).ask('PUT', `${base}/users/${userId}/entitlements/personal_api_key_access`)
}

export const MCP_ACCEPT = 'application/json, text/event-stream'

const MODERN = '2026-07-28'
const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

export type Era = 'legacy' | 'modern'
export const ERAS: readonly Era[] = ['legacy', 'modern']

export interface McpOptions {
  era?: Era
  /** Appended to the path, such as `?integrations=a`. */
  query?: string
  /** Replaces or, by undefined, removes a header. */
  headers?: Record<string, string | undefined>
  id?: unknown
}

/** Sends one request of MCP as a client of its era does. */
export function sendMcp(
  address: GatewayAddress,
  key: string,
  method: string,
  params: Json = {},
  { era = 'legacy', query = '', headers = {}, id = 1 }: McpOptions = {},
): Promise<Answer> {
  const own = era === 'legacy' ? {} : modernHeaders(method, params)
  const message = era === 'legacy' ? { params } : { params: { ...params, _meta: ENVELOPE } }
  const body = JSON.stringify({ jsonrpc: '2.0', id, method, ...message })
  return postMcp(address, key, body, { query, headers: { ...own, ...headers } })
}

const modernHeaders = (method: string, { name }: Json): Record<string, string> => ({
  'mcp-protocol-version': MODERN,
  'mcp-method': method,
  ...(typeof name === 'string' && { 'mcp-name': name }),
})

/** Posts a body as it is. */
export function postMcp(
  address: GatewayAddress,
  key: string,
  body: string | Buffer,
  { query = '', headers = {} }: Pick<McpOptions, 'query' | 'headers'> = {},
): Promise<Answer> {
  const all = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    accept: MCP_ACCEPT,
    ...headers,
  }
  const present = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return send(`${address.baseUrl}/v1/mcp${query}`, {
    method: 'POST',
    headers: Object.fromEntries(present),
    body,
  })
}

/** @returns the result of a request. @throws unless it has one. */
export async function resultOf(answer: Promise<Answer>): Promise<Json> {
  const { status, text } = await answer
  const { result } = jsonOf({ status, text })
  if (status !== 200 || result === undefined) throw new Error(`${status} ${text.slice(0, 500)}`)
  return result as Json
}

export interface RpcError {
  code: number
  message: string
  data?: Json
}

/** @returns the error of the protocol that a request was answered with. @throws unless it has one. */
export async function rpcErrorOf(answer: Promise<Answer>): Promise<RpcError & { status: number }> {
  const { status, text } = await answer
  const { error } = jsonOf({ status, text })
  if (typeof error !== 'object' || error === null) throw new Error(`${status} ${text.slice(0, 500)}`)
  return { ...(error as RpcError), status }
}

/** Calls a tool. @returns its result. */
export const callMcpTool = (
  address: GatewayAddress,
  key: string,
  name: string,
  input: Json = {},
  options: McpOptions = {},
): Promise<Json> => resultOf(sendMcp(address, key, 'tools/call', { name, arguments: input }, options))

export interface ListedTool extends Json {
  name: string
  inputSchema: Json
}

/** Every tool, page after page. */
export async function listMcpTools(
  address: GatewayAddress,
  key: string,
  options: McpOptions = {},
): Promise<ListedTool[]> {
  const tools: ListedTool[] = []
  let cursor: string | undefined
  do {
    const params = cursor === undefined ? {} : { cursor }
    const page = await resultOf(sendMcp(address, key, 'tools/list', params, options))
    tools.push(...(page.tools as ListedTool[]))
    cursor = page.nextCursor as string | undefined
  } while (cursor !== undefined)
  return tools
}
