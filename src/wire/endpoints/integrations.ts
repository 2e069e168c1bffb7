import * as z from 'zod'
import {
  connectionCreation,
  connectionListQuery,
  connectionStatus,
  connectionUpdate,
  connectStart,
  sharePermission,
  shareReplacement,
} from '../connections.ts'
import {
  approval,
  integrationCreation,
  integrationGrantCreation,
  integrationGrantListQuery,
  integrationListQuery,
  integrationRefresh,
  integrationUpdate,
  toolDecision,
  toolSwitch,
} from '../integrations.ts'
import { uuid } from '../management-fields.ts'
import { type Contract, count, deleted, list, time } from './contract.ts'

/** Schemas of the endpoints for integrations, their tools, the rights to use them, and connections. */

const integration = z.strictObject({
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

const catalogue = z.strictObject({
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

const ofConnection = { connection_id: z.string().nullable() }

const refreshed = z.discriminatedUnion('kind', [
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

/** Definitions are the upstream's: any JSON. */
const tool = z.strictObject({
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

const toolNames = z.array(z.string())

const integrationGrant = z.strictObject({
  id: uuid,
  subject_type: z.enum(['organization', 'group', 'user', 'role']),
  subject_id: z.string(),
  integration: z.string(),
  tools: toolNames.nullable(),
  created_at: time,
})

const connection = z.strictObject({
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

const connectAttempt = z.strictObject({
  status: z.enum(['pending', 'completed', 'failed', 'expired']),
  failure: z.string().nullable(),
  expires_at: time,
})

export const integrationContracts = {
  'integrations.list': { query: integrationListQuery, answer: list(integration) },
  'integrations.create': {
    body: integrationCreation,
    answer: integration,
    status: 201,
    errors: ['unprocessable', 'upstream'],
  },
  'integrations.show': { answer: integration.extend({ catalogues: z.array(catalogue) }) },
  'integrations.change': {
    body: integrationUpdate,
    answer: integration,
    errors: ['unprocessable', 'upstream'],
  },
  'integrations.remove': { answer: deleted },
  'integrations.refresh': {
    body: integrationRefresh,
    answer: z.strictObject({ id: uuid, catalogues: z.array(refreshed) }),
    errors: ['unprocessable'],
  },
  'integration-tools.list': { answer: list(tool) },
  'integration-tools.approve': {
    body: toolDecision,
    answer: z.strictObject({ id: uuid, approved: toolNames }),
    errors: ['unprocessable'],
  },
  'integration-tools.reject': {
    body: toolDecision,
    answer: z.strictObject({ id: uuid, rejected: toolNames }),
    errors: ['unprocessable'],
  },
  'integration-tools.enable': {
    body: toolSwitch,
    answer: z.strictObject({ id: uuid, disabled_tools: toolNames }),
  },
  'integration-tools.disable': {
    body: toolSwitch,
    answer: z.strictObject({ id: uuid, disabled_tools: toolNames }),
  },

  'integration-grants.list': { query: integrationGrantListQuery, answer: list(integrationGrant) },
  'integration-grants.create': {
    body: integrationGrantCreation,
    answer: integrationGrant,
    status: 201,
    errors: ['unprocessable'],
  },
  'integration-grants.remove': { answer: deleted },

  'connections.list': { query: connectionListQuery, answer: list(connection) },
  'connections.create': {
    body: connectionCreation,
    answer: connection,
    status: 201,
    errors: ['unprocessable', 'upstream'],
  },
  'connections.show': {
    answer: connection.extend({ connect: connectAttempt.nullable() }),
    errors: ['upstream'],
  },
  'connections.change': { body: connectionUpdate, answer: connection, errors: ['unprocessable', 'upstream'] },
  'connections.remove': { answer: deleted, errors: ['upstream'] },
  'connections.connect': {
    body: connectStart,
    answer: z.strictObject({ url: z.string(), expires_at: time }),
    status: 201,
    errors: ['unprocessable', 'upstream'],
    noStore: true,
  },
  'connections.share': { body: shareReplacement, answer: connection, errors: ['unprocessable'] },
  'connections.unshare': { answer: connection },
} satisfies Record<string, Contract>
