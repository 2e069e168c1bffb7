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
import { organizations } from './identity.ts'

/**
 * A policy of data-loss prevention; its content is its current version. A deleted policy is kept with all its versions,
 * because audit records refer to them, but its name may be used again.
 */
export const dlpPolicies = pgTable(
  'dlp_policies',
  {
    id: uuid('id').primaryKey(),
    organizationId: uuid('organization_id')
      .notNull()
      .references(() => organizations.id),
    name: text('name').notNull(),
    enabled: boolean('enabled').notNull(),
    /** The current version, from 1. */
    version: integer('version').notNull(),
    createdAt: createdAt(),
    updatedAt: instant('updated_at').notNull().defaultNow(),
    deletedAt: instant('deleted_at'),
  },
  (table) => [
    uniqueIndex('dlp_policies_organization_name')
      .on(table.organizationId, table.name)
      .where(sql`${table.deletedAt} is null`),
    index('dlp_policies_organization').on(table.organizationId, table.createdAt),
  ],
)

/** Every version of a policy. Rows are written once and never changed. */
export const dlpPolicyVersions = pgTable(
  'dlp_policy_versions',
  {
    policyId: uuid('policy_id')
      .notNull()
      .references(() => dlpPolicies.id),
    version: integer('version').notNull(),
    organizationId: uuid('organization_id')
      .notNull()
      .references(() => organizations.id),
    name: text('name').notNull(),
    enabled: boolean('enabled').notNull(),
    /** The policy in the format of `src/wire/dlp.ts`, which parses it again on reading. */
    body: jsonb('body').$type<unknown>().notNull(),
    /** Its author: `admin_token`, or a user's id. */
    author: text('author').notNull(),
    createdAt: createdAt(),
  },
  (table) => [primaryKey({ columns: [table.policyId, table.version] })],
)
