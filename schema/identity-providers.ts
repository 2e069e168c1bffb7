import { pgTable, primaryKey, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core'
import { createdAt, instant } from './columns.ts'
import { organizations } from './identity.ts'

/** The OpenID Connect provider with which the members of an organization sign in. */
export const identityProviders = pgTable('identity_providers', {
  organizationId: uuid('organization_id')
    .primaryKey()
    .references(() => organizations.id),
  /** As its own metadata have it: id tokens are compared with it. */
  issuer: text('issuer').notNull(),
  clientId: text('client_id').notNull(),
  /** Null for a client without a secret. */
  sealedClientSecret: text('sealed_client_secret'),
  createdAt: createdAt(),
  updatedAt: instant('updated_at').notNull().defaultNow(),
})

/**
 * Accounts of identity providers that members sign in with. A link is made once: later sign-ins find the member by issuer and
 * subject alone, since addresses change hands.
 */
export const identities = pgTable(
  'identities',
  {
    organizationId: uuid('organization_id').notNull(),
    userId: uuid('user_id').notNull(),
    issuer: text('issuer').notNull(),
    subject: text('subject').notNull(),
    lastUsedAt: instant('last_used_at').notNull(),
    createdAt: createdAt(),
  },
  (table) => [
    primaryKey({ columns: [table.organizationId, table.userId] }),
    uniqueIndex('identities_subject').on(table.organizationId, table.issuer, table.subject),
  ],
)
