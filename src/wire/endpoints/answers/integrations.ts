import * as z from 'zod'
import { connectionStatus, sharePermission } from '../../connections.ts'
import { approval } from '../../integrations.ts'
import { uuid } from '../../management-fields.ts'
import { count, deleted, list, time } from './parts.ts'

/** Schemas of the endpoints for integrations, their tools, the rights to use them, and connections. */

const integration = z
  .strictObject({
    id: uuid,
    slug: z.string(),
    display_name: z.string(),
    description: z.string(),
    kind: z.enum(['mcp', 'openapi']),
    url: z.string(),
    /** The secret of an OAuth client is write-only. */
    authorization: z.strictObject({
      kind: z.enum(['none', 'bearer', 'basic', 'header', 'oauth']),
      header: z.string().optional(),
      authorization_server: z.string().optional(),
      client_id: z.string().optional(),
      client_secret_set: z.literal(true).optional(),
      scopes: z.array(z.string()).optional(),
    }),
    approval,
    price: count,
    disabled_tools: z.array(z.string()),
    disabled_at: time.nullable(),
    created_at: time,
  })
  .meta({ id: 'Integration' })

const catalogue = z
  .strictObject({
    connection_id: z.string().nullable(),
    state: z.enum(['ok', 'stale', 'empty']),
    tools: count,
    protocol: z.string().nullable(),
    refreshed_at: time.nullable(),
    stale_since: time.nullable(),
    failures: count,
    error: z.string().nullable(),
    next_refresh_at: time,
  })
  .meta({ id: 'ToolCatalogue' })

const ofConnection = { connection_id: z.string().nullable() }

const refreshed = z
  .discriminatedUnion('kind', [
    z.strictObject({
      ...ofConnection,
      kind: z.literal('refreshed'),
      tools: count,
      added: count,
      changed: count,
      removed: count,
      pending: count,
    }),
    z.strictObject({ ...ofConnection, kind: z.literal('failed'), error: z.string() }),
    z.strictObject({ ...ofConnection, kind: z.literal('busy') }),
  ])
  .meta({ id: 'CatalogueRefresh' })

/** Definitions are the upstream's: any JSON. */
const tool = z
  .strictObject({
    name: z.string(),
    exposed_name: z.string(),
    state: z.enum(['approved', 'pending', 'changed', 'rejected', 'disabled', 'removed']),
    hash: z.string(),
    definition: z.unknown(),
    approved_definition: z.unknown(),
    changes: z.array(z.strictObject({ member: z.string(), before: z.unknown(), after: z.unknown() })),
    decided_by: z.string().nullable(),
    decided_at: time.nullable(),
    seen_at: time,
  })
  .meta({ id: 'IntegrationTool' })

const toolNames = z.array(z.string())

const integrationGrant = z
  .strictObject({
    id: uuid,
    subject_type: z.enum(['organization', 'group', 'user', 'role']),
    subject_id: z.string(),
    integration: z.string(),
    tools: toolNames.nullable(),
    created_at: time,
  })
  .meta({ id: 'IntegrationGrant' })

const connection = z
  .strictObject({
    id: z.string(),
    integration: z.string(),
    display_name: z.string(),
    user_id: uuid.nullable(),
    owner_disabled: z.boolean(),
    broker: z.enum(['local', 'nango']),
    upstream_connection_id: z.string(),
    status: connectionStatus,
    hint: z.string().nullable(),
    shares: z.array(z.strictObject({ group_id: uuid, permission: sharePermission })),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'Connection' })

const connectAttempt = z.strictObject({
  status: z.enum(['pending', 'completed', 'failed', 'expired']),
  failure: z.string().nullable(),
  expires_at: time,
})

export const integrationAnswers = {
  'integrations.list': list(integration),
  'integrations.create': integration,
  'integrations.show': integration.extend({ catalogues: z.array(catalogue) }),
  'integrations.change': integration,
  'integrations.remove': deleted,
  'integrations.refresh': z.strictObject({ id: uuid, catalogues: z.array(refreshed) }),
  'integration-tools.list': list(tool),
  'integration-tools.approve': z.strictObject({ id: uuid, approved: toolNames }),
  'integration-tools.reject': z.strictObject({ id: uuid, rejected: toolNames }),
  'integration-tools.enable': z.strictObject({ id: uuid, disabled_tools: toolNames }),
  'integration-tools.disable': z.strictObject({ id: uuid, disabled_tools: toolNames }),
  'integration-grants.list': list(integrationGrant),
  'integration-grants.create': integrationGrant,
  'integration-grants.remove': deleted,
  'connections.list': list(connection),
  'connections.create': connection,
  'connections.show': connection.extend({ connect: connectAttempt.nullable() }),
  'connections.change': connection,
  // The id of the account that stays at a broker which could not be told.
  'connections.remove': deleted.extend({ left_at_broker: z.string().nullable() }),
  'connections.connect': z.strictObject({ url: z.string(), expires_at: time }),
  'connections.share': connection,
  'connections.unshare': connection,
}
