import * as z from 'zod'
import type { Database } from '../../../schema/database.ts'
import type { Principal } from '../../identity/principal.ts'
import { encodeJsonCursor, jsonCursor } from '../../wire/page-cursor.ts'
import { listIntegrations, listTools, type ToolCatalogueDeps } from '../catalogue/tool-catalogue.ts'
import { connectHint } from '../connections/connect-url.ts'
import {
  type PreferredConnection,
  presentConnection,
  visibleConnections,
} from '../connections/visible-connections.ts'
import type { Integration } from '../types.ts'
import { output, outputOrError, platformError, platformTool, READS } from './platform-tool.ts'

export type ConnectionToolDeps = ToolCatalogueDeps & {
  database: Database
  /** Makes a connection the default of the caller, as the interface's default-setter does. @throws ApiError */
  setDefaultConnection: (
    principal: Principal,
    slug: string,
    connectionId: string,
  ) => Promise<{ integration_config_id: string; connection_id: string }>
  /** Begins to connect an account of the caller, which a person finishes at `url`. @throws ApiError */
  connectAccount: (
    principal: Principal,
    integration: Integration,
  ) => Promise<{ url: string; expiresAt: Date }>
}

const slug = z.string().min(1).max(100)

const listInput = z.strictObject({
  query: z.string().min(1).max(200).optional().describe('Part of an id or a name.'),
  connected_only: z.boolean().default(false),
  limit: z.int().min(1).max(100).default(50),
  cursor: z.string().max(1_000).optional(),
})

/** The last integration of a page. */
const cursorSchema = jsonCursor(z.tuple([z.literal('after'), slug]))

const status = z.enum(['connected', 'needs_reauth', 'not_connected', 'no_connection_needed'])

const listIntegrationsTool = platformTool<ConnectionToolDeps, typeof listInput>({
  name: 'platform_list_integrations',
  title: 'List integrations',
  description:
    'Lists the services whose tools you may use, and whether an account of yours is connected to them.',
  input: listInput,
  output: z.object({
    items: z.array(
      z.object({
        integration_id: z.string(),
        name: z.string(),
        description: z.string(),
        tool_count: z.int(),
        connections: z.int(),
        status,
      }),
    ),
    next_cursor: z.string().nullable(),
  }),
  hints: READS,
  async run(deps, principal, { query, connected_only: connectedOnly, limit, cursor }) {
    const after = cursor === undefined ? null : cursorSchema.safeParse(cursor)
    if (after?.success === false) return platformError('invalid_input', 'The cursor is not one of this list.')
    const wanted = query?.toLowerCase()
    const [integrations, tools, connections] = await Promise.all([
      listIntegrations(deps, principal),
      listTools(deps, principal, null),
      visibleConnections(deps, principal),
    ])
    const items = integrations
      .filter((integration) => wanted === undefined || isMeant(integration, wanted))
      .map((integration) => {
        const own = connections.filter(({ slug: of }) => of === integration.slug)
        return {
          integration_id: integration.slug,
          name: integration.displayName,
          description: integration.description,
          tool_count: tools.filter((tool) => tool.integration.id === integration.id).length,
          connections: own.length,
          status: statusOf(integration, own),
        }
      })
      .filter((item) => !connectedOnly || ['connected', 'no_connection_needed'].includes(item.status))
    const rest = after === null ? items : items.filter(({ integration_id: id }) => id > after.data[1])
    const page = rest.slice(0, limit)
    const last = page.at(-1)
    const hasMore = last !== undefined && rest.length > limit
    return output({
      items: page,
      next_cursor: hasMore ? encodeJsonCursor(['after', last.integration_id]) : null,
    })
  },
})

const isMeant = ({ slug: id, displayName, description }: Integration, wanted: string) =>
  [id, displayName, description].some((text) => text.toLowerCase().includes(wanted))

function statusOf(
  { authorization }: Integration,
  connections: readonly PreferredConnection[],
): z.output<typeof status> {
  if (authorization.kind === 'none') return 'no_connection_needed'
  if (connections.some((connection) => connection.status === 'active')) return 'connected'
  return connections.length > 0 ? 'needs_reauth' : 'not_connected'
}

const connectionsInput = z.strictObject({
  integration_id: slug.optional(),
  include_shared: z.boolean().default(true).describe('Also those of groups and of the organization.'),
})

const listConnectionsTool = platformTool<ConnectionToolDeps, typeof connectionsInput>({
  name: 'platform_list_connections',
  title: 'List connections',
  description: 'Lists the accounts that calls of tools can use.',
  input: connectionsInput,
  output: z.object({
    data: z.array(
      z.object({
        id: z.string(),
        display_name: z.string(),
        integration_config_id: z.string(),
        upstream_connection_id: z.string(),
        is_preferred: z.boolean(),
        created_at: z.string(),
        is_shared: z.boolean(),
        status: z.enum(['active', 'needs_reauth']),
      }),
    ),
  }),
  hints: READS,
  async run(deps, principal, { integration_id: wanted, include_shared: includesShared }) {
    const connections = await visibleConnections(deps, principal)
    const isShared = ({ ownerUserId }: PreferredConnection) => ownerUserId !== principal.userId
    return output({
      data: connections
        .filter((connection) => wanted === undefined || connection.slug === wanted)
        .filter((connection) => includesShared || !isShared(connection))
        .map((connection) => ({
          ...presentConnection(connection),
          is_shared: isShared(connection),
          status: connection.status,
        })),
    })
  },
})

const defaultInput = z.strictObject({ integration_id: slug, connection_id: z.string().min(1).max(200) })

const setDefaultTool = platformTool<ConnectionToolDeps, typeof defaultInput>({
  name: 'platform_set_default_connection',
  title: 'Set the default connection',
  description:
    'Makes one account the only active one for an integration, in place of all that were. It also changes your defaults for ' +
    'chats and agents.',
  input: defaultInput,
  output: z.object({ integration_config_id: z.string(), connection_id: z.string() }),
  hints: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  async run(deps, principal, { integration_id: integration, connection_id: connectionId }) {
    return outputOrError(deps.setDefaultConnection(principal, integration, connectionId))
  },
})

const connectInput = z.strictObject({ integration_id: slug })

const connectTool = platformTool<ConnectionToolDeps, typeof connectInput>({
  name: 'platform_connect_integration',
  title: 'Connect an account',
  description:
    'Returns a link at which a person connects an account to an integration. No password or key belongs into the chat.',
  input: connectInput,
  output: z.object({ url: z.string(), expires_at: z.string() }),
  hints: { readOnlyHint: false, destructiveHint: false, openWorldHint: true },
  async run(deps, principal, { integration_id: wanted }) {
    const integrations = await listIntegrations(deps, principal)
    const integration = integrations.find(({ slug: of }) => of === wanted)
    if (!integration) return platformError('not_found', `There is no integration named ${wanted}.`)
    // Other credentials are given by an administrator; there is no link at which a person could enter them.
    if (integration.authorization.kind !== 'oauth')
      return platformError('conflict', connectHint(integration, null))
    const connecting = deps.connectAccount(principal, integration)
    return outputOrError(
      connecting.then(({ url, expiresAt }) => ({ url, expires_at: expiresAt.toISOString() })),
    )
  },
})

export const connectionTools = [listIntegrationsTool, listConnectionsTool, setDefaultTool, connectTool]
