import type { ScriptedServer, ServerRequest } from '../../scripts/local/mcp-upstream/scripted-server.ts'
import { createDatabase } from '../../src/deps.ts'
import { parseConfiguration } from '../../src/env.ts'
import { renewPrincipal } from '../../src/identity/identify.ts'
import type { Principal } from '../../src/identity/principal.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { GatewayAddress } from './start-gateway.ts'
import { administrator, type Tenant, uniqueName } from './tenant.ts'

type Json = Record<string, unknown>
type Address = Pick<GatewayAddress, 'baseUrl' | 'adminToken' | 'standIns'>

/** A scripted MCP server: what it has is what was registered last. */
export interface McpServer {
  name: string
  url: string
  /** Registers it anew; sessions and seen requests stay. */
  set(script: Partial<ScriptedServerInput>): Promise<void>
  /** The requests that it saw, oldest first. */
  requests(): Promise<ServerRequest[]>
  /** How often a tool was called. */
  calls(tool?: string): Promise<number>
}

/** Body of `PUT /control/mcp/<name>`; members that are left out have defaults. */
export type ScriptedServerInput = {
  [Member in keyof ScriptedServer]: Member extends 'faults' ? Record<string, Json> : ScriptedServer[Member]
}

/** A tool as a server defines it. */
export const mcpTool = (name: string, more: Json = {}): Json => ({
  name,
  description: `The tool ${name}.`,
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
  ...more,
})

/** Registers a scripted MCP server. It speaks the modern revision unless `era` is `legacy`. */
export async function startMcpServer(
  address: Pick<GatewayAddress, 'standIns'>,
  script: Partial<ScriptedServerInput> = {},
): Promise<McpServer> {
  const name = uniqueName('server')
  const control = async (method: string, body?: unknown): Promise<Json> => {
    const answer = await fetch(`${address.standIns.modelUpstream}/control/mcp/${name}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const read = (await answer.json()) as Json
    if (!answer.ok) throw new Error(`scripted server: ${JSON.stringify(read)}`)
    return read
  }
  const requests = async () => (await control('GET')).requests as ServerRequest[]
  await control('PUT', script)
  return {
    name,
    url: `${address.standIns.modelUpstream}/mcp/${name}`,
    set: async (changed) => void (await control('PUT', changed)),
    requests,
    calls: async (tool) =>
      (await requests()).filter(
        ({ method, params }) =>
          method === 'tools/call' && (tool === undefined || (params as Json).name === tool),
      ).length,
  }
}

/** An integration as the management API shows it. */
export interface IntegrationItem extends Json {
  id: string
  slug: string
}

/** Adds an integration, refreshes its catalogue if it has one, and grants it to the organization unless `grant` is false. */
export async function createIntegration(
  address: Address,
  tenant: Pick<Tenant, 'base'>,
  { grant = true, refresh = true, ...body }: Json & { grant?: boolean; refresh?: boolean } = {},
): Promise<IntegrationItem> {
  const { ask } = administrator(address)
  const integration = await ask<IntegrationItem>('POST', `${tenant.base}/integrations`, {
    kind: 'mcp',
    slug: uniqueName('tools'),
    ...body,
  })
  if (grant) await grantIntegration(address, tenant, { integration: integration.slug })
  const authorization = body.authorization as Json | undefined
  const hasCatalogue = authorization === undefined || authorization.kind === 'none'
  if (refresh && hasCatalogue) await refreshIntegration(address, tenant, integration)
  return integration
}

/** Grants an integration, to the organization unless the grant names another subject. */
export function grantIntegration(
  address: Address,
  tenant: Pick<Tenant, 'base'>,
  grant: Json & { integration: string },
): Promise<Json & { id: string }> {
  return administrator(address).ask('POST', `${tenant.base}/integration-grants`, {
    subject_type: 'organization',
    ...grant,
  })
}

/** Refreshes the catalogues of an integration. @returns what the API tells of each. */
export async function refreshIntegration(
  address: Address,
  tenant: Pick<Tenant, 'base'>,
  { id }: Pick<IntegrationItem, 'id'>,
): Promise<Json[]> {
  const body = await administrator(address).ask('POST', `${tenant.base}/integrations/${id}/refresh`, {})
  return body.catalogues as Json[]
}

/**
 * Dependencies of the catalogue's functions, over the database of a gateway: for tests that read the catalogue
 * directly.
 */
export function toolCatalogueDeps(address: Pick<GatewayAddress, 'variables'>) {
  const configuration = parseConfiguration(address.variables)
  return { clock: systemClock, configuration, database: createDatabase(configuration), waitUntil: () => {} }
}

/** The rights of a user of an organization at this moment. */
export async function principalOf(
  address: Pick<GatewayAddress, 'variables'>,
  { organizationId, userId }: Pick<Tenant, 'organizationId' | 'userId'>,
): Promise<Principal> {
  const credential = { kind: 'session', sessionId: 'test' } as const
  const caller = { organizationId, userId, credential } as Principal
  const identification = await renewPrincipal(toolCatalogueDeps(address), caller)
  if (identification.kind !== 'known') throw new Error(`the user is ${identification.reason}`)
  return identification.principal
}
