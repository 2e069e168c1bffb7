import { sql } from 'drizzle-orm'
import {
  boolean,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core'
import { createdAt, instant } from './columns.ts'
import { groups, organizations, users } from './identity.ts'

/** An upstream service of an organization whose tools callers can use: an MCP server, or an HTTP API with an OpenAPI document. */
export const integrations = pgTable(
  'integrations',
  {
    id: uuid('id').primaryKey(),
    organizationId: uuid('organization_id')
      .notNull()
      .references(() => organizations.id),
    /** The public id (`integration_config_id`): lowercase words with hyphens. It begins the names of its tools. */
    slug: text('slug').notNull(),
    displayName: text('display_name').notNull(),
    description: text('description').notNull().default(''),
    kind: text('kind', { enum: ['mcp', 'openapi'] }).notNull(),
    /** For an MCP server: its endpoint. For an API: the server to which the paths of the document are appended. */
    url: text('url').notNull(),
    /** Only for an API: the OpenAPI document, with its references resolved. */
    document: jsonb('document').$type<Record<string, unknown>>(),
    /** The authorization of calls, without a secret (`AuthorizationMethod` in `src/integrations/types.ts`). */
    authorization: jsonb('authorization').$type<Record<string, unknown>>().notNull(),
    /** The secret of the OAuth client, sealed; null for a public client. */
    sealedClientSecret: text('sealed_client_secret'),
    /** Definitions that are approved automatically: those of the first catalogue, all, or none. */
    approval: text('approval', { enum: ['first', 'automatic', 'manual'] })
      .notNull()
      .default('first'),
    /** Micro-credits of a call that was executed. */
    price: integer('price').notNull().default(0),
    /** Names of tools, as the upstream has them, that are switched off. */
    disabledTools: jsonb('disabled_tools').$type<string[]>().notNull().default([]),
    disabledAt: instant('disabled_at'),
    createdAt: createdAt(),
    deletedAt: instant('deleted_at'),
  },
  (table) => [
    uniqueIndex('integrations_organization_slug')
      .on(table.organizationId, table.slug)
      .where(sql`${table.deletedAt} is null`),
  ],
)

/** Rights to use the tools of an integration. `subject_id` is a group id, a user id, a role name, or the organization id. */
export const integrationGrants = pgTable(
  'integration_grants',
  {
    id: uuid('id').primaryKey(),
    organizationId: uuid('organization_id')
      .notNull()
      .references(() => organizations.id),
    subjectType: text('subject_type', { enum: ['organization', 'group', 'role', 'user'] }).notNull(),
    subjectId: text('subject_id').notNull(),
    /** The slug of an integration, or `*` for every one of the organization. */
    integration: text('integration').notNull(),
    /** Names of tools, as the upstream has them; null for every tool. */
    tools: jsonb('tools').$type<string[]>(),
    createdAt: createdAt(),
  },
  (table) => [
    uniqueIndex('integration_grants_unique').on(
      table.organizationId,
      table.subjectType,
      table.subjectId,
      table.integration,
    ),
  ],
)

/**
 * Every definition of a tool that an upstream has had, by hash. A definition that changes is another row, which is hidden
 * until it is approved.
 */
export const toolDefinitions = pgTable(
  'tool_definitions',
  {
    integrationId: uuid('integration_id')
      .notNull()
      .references(() => integrations.id, { onDelete: 'cascade' }),
    organizationId: uuid('organization_id').notNull(),
    /** The tool's name, as the upstream has it. */
    name: text('name').notNull(),
    /** SHA-256 of the canonical definition, hex. */
    hash: text('hash').notNull(),
    /** `ToolDefinition` in `src/integrations/types.ts`. */
    definition: jsonb('definition').$type<Record<string, unknown>>().notNull(),
    /** Only for an API: the conversion of arguments into a request (`OperationBinding`); null for an MCP server. */
    binding: jsonb('binding').$type<Record<string, unknown>>(),
    state: text('state', { enum: ['pending', 'approved', 'rejected'] }).notNull(),
    /** `first_catalogue`, `automatic`, `admin_token` or a user's id; null while pending. */
    decidedBy: text('decided_by'),
    decidedAt: instant('decided_at'),
    createdAt: createdAt(),
  },
  (table) => [
    primaryKey({ columns: [table.integrationId, table.name, table.hash] }),
    index('tool_definitions_organization').on(table.organizationId, table.integrationId),
    index('tool_definitions_pending')
      .on(table.organizationId, table.integrationId)
      .where(sql`${table.state} = 'pending'`),
  ],
)

/** An account at an upstream, owned by a user or by the organization. Its secrets are sealed, and never shown. */
export const connections = pgTable(
  'connections',
  {
    id: text('id').primaryKey(),
    organizationId: uuid('organization_id')
      .notNull()
      .references(() => organizations.id),
    integrationId: uuid('integration_id')
      .notNull()
      .references(() => integrations.id, { onDelete: 'cascade' }),
    /** The user that owns it; null for one of the organization. */
    ownerUserId: uuid('owner_user_id').references(() => users.id),
    displayName: text('display_name').notNull(),
    broker: text('broker', { enum: ['local', 'nango'] }).notNull(),
    /** The id of the account at the broker. */
    upstreamConnectionId: text('upstream_connection_id').notNull(),
    /** The credential, sealed under a data key of its own, which is sealed under a key of the vault; null where the broker has it. */
    sealedCredential: text('sealed_credential'),
    /** Id of the vault's key that seals the data key, for rotation. */
    vaultKeyId: text('vault_key_id'),
    /** Raised by each write of the credential, so that a refresh cannot overwrite a newer one. */
    credentialVersion: integer('credential_version').notNull().default(1),
    /** Last characters of a static secret, for people to recognize it. */
    hint: text('hint'),
    status: text('status', { enum: ['pending', 'active', 'needs_reauth', 'revoked'] }).notNull(),
    createdAt: createdAt(),
    updatedAt: instant('updated_at').notNull().defaultNow(),
  },
  (table) => [
    index('connections_organization').on(table.organizationId, table.integrationId),
    index('connections_created').on(table.organizationId, table.createdAt),
    index('connections_owner').on(table.organizationId, table.ownerUserId),
    index('connections_to_renew')
      .on(table.organizationId, table.updatedAt)
      .where(sql`${table.status} = 'needs_reauth'`),
  ],
)

export const connectionShares = pgTable(
  'connection_shares',
  {
    organizationId: uuid('organization_id').notNull(),
    connectionId: text('connection_id')
      .notNull()
      .references(() => connections.id, { onDelete: 'cascade' }),
    groupId: uuid('group_id')
      .notNull()
      .references(() => groups.id, { onDelete: 'cascade' }),
    permission: text('permission', { enum: ['use', 'manage'] }).notNull(),
    createdAt: createdAt(),
  },
  (table) => [
    primaryKey({ columns: [table.connectionId, table.groupId] }),
    index('connection_shares_group').on(table.groupId),
  ],
)

/** The active set of a user for an integration: the connections that its calls prefer. */
export const connectionPreferences = pgTable(
  'connection_preferences',
  {
    organizationId: uuid('organization_id').notNull(),
    userId: uuid('user_id')
      .notNull()
      .references(() => users.id),
    integrationId: uuid('integration_id')
      .notNull()
      .references(() => integrations.id, { onDelete: 'cascade' }),
    connectionId: text('connection_id')
      .notNull()
      .references(() => connections.id, { onDelete: 'cascade' }),
    /** Set by the default-setter, which makes it the only one of the set. */
    isDefault: boolean('is_default').notNull().default(false),
    setAt: instant('set_at').notNull().defaultNow(),
  },
  (table) => [
    primaryKey({ columns: [table.organizationId, table.userId, table.integrationId, table.connectionId] }),
    // A connection that is deleted takes its rows along.
    index('connection_preferences_connection').on(table.connectionId),
  ],
)

/** A person's attempt to connect an account, from the authorization link to the return of the browser. */
export const connectSessions = pgTable(
  'connect_sessions',
  {
    /** Digest of the random state in the link, hex, so that no row discloses a link. */
    id: text('id').primaryKey(),
    organizationId: uuid('organization_id').notNull(),
    connectionId: text('connection_id')
      .notNull()
      .references(() => connections.id, { onDelete: 'cascade' }),
    /** The user that may finish it. */
    userId: uuid('user_id').notNull(),
    /** PKCE verifier and what the exchange of the code needs, sealed. */
    sealedState: text('sealed_state'),
    status: text('status', { enum: ['pending', 'completed', 'failed', 'expired'] }).notNull(),
    /** Why it failed, for its user; never a value of the upstream's. */
    failure: text('failure'),
    expiresAt: instant('expires_at').notNull(),
    createdAt: createdAt(),
  },
  (table) => [
    index('connect_sessions_connection').on(table.connectionId, table.createdAt),
    // As an expression, like `ofOrganization` of `responses.ts`: otherwise it would serve the searches of a connection.
    index('connect_sessions_created').on(sql`(organization_id::text)`, table.createdAt),
    index('connect_sessions_user').on(table.userId),
  ],
)

/**
 * The tools that an upstream listed for one connection, or for an integration that needs none. A job refreshes the
 * list; when a refresh fails, the last good list stays.
 */
export const toolCatalogues = pgTable(
  'tool_catalogues',
  {
    integrationId: uuid('integration_id')
      .notNull()
      .references(() => integrations.id, { onDelete: 'cascade' }),
    /** Empty for an integration without connections. */
    connectionId: text('connection_id').notNull().default(''),
    organizationId: uuid('organization_id').notNull(),
    /** Name and hash of each definition, in the upstream's order; null before the first good refresh. */
    tools: jsonb('tools').$type<Array<{ name: string; hash: string }>>(),
    /** Protocol revision and era of the upstream, found by the refresh; null for an API. */
    protocol: jsonb('protocol').$type<Record<string, unknown>>(),
    refreshedAt: instant('refreshed_at'),
    /** When the first of the current failures happened; null while refreshes succeed. */
    staleSince: instant('stale_since'),
    failures: integer('failures').notNull().default(0),
    /** Why the last refresh failed; never a secret. */
    error: text('error'),
    nextRefreshAt: instant('next_refresh_at').notNull().defaultNow(),
    /** End of the lease of the job that refreshes the list. */
    leasedUntil: instant('leased_until'),
  },
  (table) => [
    primaryKey({ columns: [table.integrationId, table.connectionId] }),
    index('tool_catalogues_due').on(table.nextRefreshAt),
    index('tool_catalogues_organization').on(table.organizationId),
  ],
)
