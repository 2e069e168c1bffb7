import { sql } from 'drizzle-orm'
import {
  boolean,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  timestamp,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core'
import { organizations } from './identity.ts'

const instant = (name: string) => timestamp(name, { withTimezone: true })

/**
 * A policy of data-loss prevention as it is now; what it says is the version that it points to. A deleted policy stays
 * with all its versions, so that the version an audit record names can be looked up, and gives its name free.
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
    createdAt: instant('created_at').notNull().defaultNow(),
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

/** Every state a policy has had. Rows are written once and never changed. */
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
    /** As `src/wire/dlp.ts` has it; parsed again by whoever reads it. */
    body: jsonb('body').$type<unknown>().notNull(),
    /** Who made it: `admin_token`, or a user's id. */
    author: text('author').notNull(),
    createdAt: instant('created_at').notNull().defaultNow(),
  },
  (table) => [primaryKey({ columns: [table.policyId, table.version] })],
)
