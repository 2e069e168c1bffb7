import { sql } from 'drizzle-orm'
import {
  bigint,
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

/** A tenant. Every resource that a caller can reach belongs to exactly one organization. */
export const organizations = pgTable(
  'organizations',
  {
    id: uuid('id').primaryKey().defaultRandom(),
    name: text('name').notNull(),
    slug: text('slug').notNull().unique(),
    /** Calls a minute over all users; null takes the deployment's default. */
    rateLimitPerMinute: integer('rate_limit_per_minute'),
    /** Calls a minute for each user that has no limit of its own; null takes the deployment's default. */
    userRateLimitPerMinute: integer('user_rate_limit_per_minute'),
    /** Shards of the organization's ledger, from 1 to 16: a user's calls go to one of them. */
    ledgerShards: integer('ledger_shards').notNull().default(1),
    /** Rules for hosted tools (`toolSettings` of the management API); null takes the defaults. */
    toolSettings: jsonb('tool_settings').$type<Record<string, unknown>>(),
    /** How long rows are kept (`wire/retention`); null takes the deployment's defaults. */
    retention: jsonb('retention').$type<Record<string, number | null>>(),
    /** MAC of these settings (`admin/retention/retention-seal`); null where none were ever set. */
    retentionSeal: jsonb('retention_seal').$type<Record<string, string>>(),
    /** When the sweep of retention last came to it, whether or not it finished; null before the first time. */
    retentionSweptAt: instant('retention_swept_at'),
    /** How far that sweep has searched for empty conversations (`admin/retention/empty-conversations`); null before the first time. */
    conversationSearch: jsonb('conversation_search').$type<unknown>(),
    /** Revocation epoch: raised by every change of rights. Cached rights of another epoch are stale. */
    epoch: bigint('epoch', { mode: 'number' }).notNull().default(1),
    disabledAt: instant('disabled_at'),
    createdAt: createdAt(),
  },
  (table) => [
    index('organizations_created').on(table.createdAt),
    // The different settings are found by walking along it.
    index('organizations_retention').on(table.retention),
    index('organizations_swept').on(table.retentionSweptAt.nullsFirst(), table.id),
  ],
)

/** A person or service account, member of organizations by `memberships`. */
export const users = pgTable('users', {
  id: uuid('id').primaryKey().defaultRandom(),
  email: text('email').notNull().unique(),
  name: text('name').notNull(),
  /** A service account cannot sign in: administrators make its keys. */
  kind: text('kind', { enum: ['person', 'service'] })
    .notNull()
    .default('person'),
  createdAt: createdAt(),
})

export const memberships = pgTable(
  'memberships',
  {
    organizationId: uuid('organization_id')
      .notNull()
      .references(() => organizations.id),
    userId: uuid('user_id')
      .notNull()
      .references(() => users.id),
    role: text('role', { enum: ['owner', 'admin', 'member'] }).notNull(),
    /** Calls a minute of this user; null takes the organization's. */
    rateLimitPerMinute: integer('rate_limit_per_minute'),
    /** Outlives the sessions, which are deleted. */
    lastSignedInAt: instant('last_signed_in_at'),
    disabledAt: instant('disabled_at'),
    createdAt: createdAt(),
  },
  (table) => [
    primaryKey({ columns: [table.organizationId, table.userId] }),
    index('memberships_user').on(table.userId),
    index('memberships_created').on(table.organizationId, table.createdAt),
  ],
)

export const groups = pgTable(
  'groups',
  {
    id: uuid('id').primaryKey().defaultRandom(),
    organizationId: uuid('organization_id')
      .notNull()
      .references(() => organizations.id),
    name: text('name').notNull(),
    createdAt: createdAt(),
  },
  (table) => [uniqueIndex('groups_organization_name').on(table.organizationId, table.name)],
)

export const groupMemberships = pgTable(
  'group_memberships',
  {
    organizationId: uuid('organization_id').notNull(),
    groupId: uuid('group_id')
      .notNull()
      .references(() => groups.id, { onDelete: 'cascade' }),
    userId: uuid('user_id')
      .notNull()
      .references(() => users.id),
    createdAt: createdAt(),
  },
  (table) => [
    primaryKey({ columns: [table.groupId, table.userId] }),
    index('group_memberships_user').on(table.organizationId, table.userId),
  ],
)

/**
 * A named right that is not a model grant: `personal_api_key_access` for the MCP gateway, others for the web terminal. `operator`
 * reaches all organizations.
 */
export const entitlements = pgTable(
  'entitlements',
  {
    organizationId: uuid('organization_id').notNull(),
    userId: uuid('user_id').notNull(),
    name: text('name', {
      enum: ['personal_api_key_access', 'auditor', 'billing', 'security', 'operator'],
    }).notNull(),
    createdAt: createdAt(),
  },
  (table) => [primaryKey({ columns: [table.organizationId, table.userId, table.name] })],
)

/** API keys. Only an HMAC digest under a named pepper is stored, so that no row discloses a key. */
export const apiKeys = pgTable(
  'api_keys',
  {
    id: text('id').primaryKey(),
    organizationId: uuid('organization_id')
      .notNull()
      .references(() => organizations.id),
    userId: uuid('user_id')
      .notNull()
      .references(() => users.id),
    label: text('label').notNull(),
    /** HMAC-SHA-256 of the whole key, hex. */
    digest: text('digest').notNull().unique(),
    /** The pepper that made the digest. */
    pepperId: text('pepper_id').notNull(),
    scopes: text('scopes').array().notNull(),
    /** Form in which the Responses surface answers calls with this key. */
    compatibility: text('compatibility', { enum: ['headgate', 'open_responses'] })
      .notNull()
      .default('headgate'),
    expiresAt: instant('expires_at'),
    revokedAt: instant('revoked_at'),
    /** The key that was made in its place; null while there is none. */
    replacedBy: text('replaced_by'),
    /** The session whose playground uses it, and with which it ends; null for any other key. */
    sessionId: text('session_id'),
    /** Beginning of a call with the key, at most a minute before that of its latest record; null before the first one. */
    lastUsedAt: instant('last_used_at'),
    createdAt: createdAt(),
  },
  (table) => [
    index('api_keys_organization').on(table.organizationId, table.createdAt),
    index('api_keys_user').on(table.userId),
    index('api_keys_managed_expiry')
      .on(table.organizationId, table.expiresAt)
      .where(sql`session_id IS NULL AND revoked_at IS NULL AND replaced_by IS NULL`),
    index('api_keys_session').on(table.sessionId, table.expiresAt).where(sql`session_id IS NOT NULL`),
    index('api_keys_playground_expiry').on(table.expiresAt).where(sql`session_id IS NOT NULL`),
  ],
)

/**
 * Links with which a member registers its first passkey, used once. Sign-in credentials belong to a membership: users are
 * shared between organizations, and an administrator of one must not enter another.
 */
export const setupLinks = pgTable(
  'setup_links',
  {
    id: text('id').primaryKey(),
    organizationId: uuid('organization_id').notNull(),
    userId: uuid('user_id').notNull(),
    /** HMAC-SHA-256 of the whole token, hex. */
    digest: text('digest').notNull().unique(),
    pepperId: text('pepper_id').notNull(),
    expiresAt: instant('expires_at').notNull(),
    usedAt: instant('used_at'),
    createdAt: createdAt(),
  },
  (table) => [
    index('setup_links_member').on(table.organizationId, table.userId),
    index('setup_links_expiry').on(table.expiresAt),
  ],
)

export const passkeys = pgTable(
  'passkeys',
  {
    id: uuid('id').primaryKey().defaultRandom(),
    organizationId: uuid('organization_id').notNull(),
    userId: uuid('user_id').notNull(),
    name: text('name').notNull(),
    /** The authenticator's id of the credential, base64url. */
    credentialId: text('credential_id').notNull().unique(),
    /** COSE key, base64url. */
    publicKey: text('public_key').notNull(),
    /** The authenticator's count of signatures; 0 where it counts none. */
    counter: bigint('counter', { mode: 'number' }).notNull(),
    transports: text('transports').array().notNull(),
    lastUsedAt: instant('last_used_at'),
    createdAt: createdAt(),
  },
  (table) => [index('passkeys_member').on(table.organizationId, table.userId)],
)

/** Sessions of the web terminal. Only a digest is stored, as of keys. */
export const sessions = pgTable(
  'sessions',
  {
    id: text('id').primaryKey(),
    organizationId: uuid('organization_id').notNull(),
    userId: uuid('user_id').notNull(),
    digest: text('digest').notNull().unique(),
    pepperId: text('pepper_id').notNull(),
    method: text('method', { enum: ['passkey', 'oidc', 'local'] }).notNull(),
    /** The challenge that was answered: each makes one session. */
    ceremonyId: text('ceremony_id').notNull().unique(),
    /** Of the browser, cut. */
    userAgent: text('user_agent').notNull(),
    signedInAt: instant('signed_in_at').notNull(),
    /** When an identity provider last asked its user for a proof, if that was before the sign-in. */
    authenticatedAt: instant('authenticated_at'),
    lastSeenAt: instant('last_seen_at').notNull(),
    expiresAt: instant('expires_at').notNull(),
    endedAt: instant('ended_at'),
  },
  (table) => [
    // Of a person who is erased.
    index('sessions_user').on(table.organizationId, table.userId),
    index('sessions_open')
      .on(table.organizationId, table.userId, table.expiresAt)
      .where(sql`ended_at IS NULL`),
    index('sessions_expiry').on(table.expiresAt),
  ],
)

/** The erasure of a person's data in an organization: a job of steps, each of which can be repeated. */
export const erasures = pgTable(
  'erasures',
  {
    id: text('id').primaryKey(),
    organizationId: uuid('organization_id').notNull(),
    userId: uuid('user_id').notNull(),
    /** `admin_token`, or a user's id. */
    requestedBy: text('requested_by').notNull(),
    /** The step that is due; `done` after the last. */
    step: text('step').notNull(),
    /** Where the step goes on; null at its beginning. */
    reached: jsonb('reached').$type<{ at: string; id: string }>(),
    /** What the steps have erased, by the name of the data. */
    counts: jsonb('counts').$type<Record<string, number>>().notNull(),
    createdAt: instant('created_at').notNull(),
    finishedAt: instant('finished_at'),
    /** Why the last attempt of the step failed; null when it did not. Never a value of the data. */
    failure: text('failure'),
    /** End of the lease of what advances the job, or of the time that a step waits for. */
    leasedUntil: instant('leased_until'),
  },
  (table) => [
    index('erasures_user').on(table.organizationId, table.userId, table.createdAt),
    index('erasures_due').on(table.createdAt).where(sql`finished_at IS NULL`),
    // Two requests at the same time begin one erasure.
    uniqueIndex('erasures_open').on(table.organizationId, table.userId).where(sql`finished_at IS NULL`),
  ],
)
