import type pg from 'pg'
import type { AuthorizationServer } from '../../harness/authorization-server.ts'
import type { IdentityProvider } from '../../harness/identity-provider.ts'
import {
  createIntegration,
  type IntegrationItem,
  type McpServer,
  mcpTool,
  startMcpServer,
} from '../../harness/integrations.ts'
import { createMcpTenant } from '../../harness/mcp.ts'
import type { StartedGateway } from '../../harness/start-gateway.ts'
import { addKey, type Tenant } from '../../harness/tenant.ts'
import { callTool, say } from '../../http/support/dlp-answers.ts'
import { turnsScript } from '../../http/support/response-streams.ts'
import { Surfaces } from './surfaces.ts'

/** The organization whose tables grow, and what its surfaces are driven with. */
export interface World {
  surfaces: Surfaces
  /** For what a test changes itself: nothing of it is measured. */
  postgres: pg.Client
  tenant: Tenant
  server: McpServer
  integration: IntegrationItem
  authorizationServer: AuthorizationServer
  identityProvider: IdentityProvider
  /** Models that call a tool of the integration, and then answer. */
  toolTurn: () => Promise<string>
  /** A turn with a tool whose calls wait for an approval. */
  effectTurn: () => Promise<string>
  /** A round's own names. */
  unique: (prefix: string) => string
  round: number
}

export const TOOL = 'find'
const EFFECT = 'add'

export async function createWorld(
  address: StartedGateway,
  postgres: pg.Client,
  authorizationServer: AuthorizationServer,
  identityProvider: IdentityProvider,
): Promise<World> {
  const tenant = await createMcpTenant(address)
  const { key } = await addKey(address, tenant.base, tenant.userId, { scopes: ['models', 'agents', 'mcp'] })
  const server = await startMcpServer(address, {
    tools: [mcpTool(TOOL, { annotations: { readOnlyHint: true } }), mcpTool(EFFECT)],
    results: { [TOOL]: { content: [{ type: 'text', text: 'Ada, 36' }] } },
  })
  const integration = await createIntegration(address, tenant, { url: server.url })
  const turnWith = (tool: string) =>
    turnsScript('chat', [[callTool(`${integration.slug}_${tool}`, { text: 'Ada' })], [say('Done.')]], address)
  const world: World = {
    surfaces: new Surfaces(address),
    postgres,
    tenant: { ...tenant, key },
    server,
    integration,
    authorizationServer,
    identityProvider,
    toolTurn: () => turnWith(TOOL),
    effectTurn: () => turnWith(EFFECT),
    unique: (prefix) => `${prefix}-${world.round}-${Math.random().toString(36).slice(2, 8)}`,
    round: 0,
  }
  return world
}
