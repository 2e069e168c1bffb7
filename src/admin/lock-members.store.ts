import { and, eq } from 'drizzle-orm'
import { memberships, organizations, users } from '../../schema/identity.ts'
import type { OrganizationScope } from '../ledger/changes/scoped-statements.store.ts'

/**
 * Locks that come first in a transaction, in one order so that no two transactions wait for each other: the organization, the
 * membership, then its sessions, passkeys and setup links, then the user of all organizations. Statements after a lock see what the
 * transaction before it has committed.
 */

/** Lets the organization be neither disabled nor its rights changed until the transaction ends. Sign-ins share this lock. */
export const lockOrganization = ({ database, organizationId }: OrganizationScope) =>
  database
    .select({ id: organizations.id })
    .from(organizations)
    .where(eq(organizations.id, organizationId))
    .for('share')

/** Lets no sign-in of the organization run until the transaction ends. */
export const lockOrganizationAlone = ({ database, organizationId }: OrganizationScope) =>
  database
    .select({ id: organizations.id })
    .from(organizations)
    .where(eq(organizations.id, organizationId))
    .for('no key update')

/** Lets one transaction at a time change a membership and the credentials with which its user signs in. */
export const lockMembership = ({ database, organizationId }: OrganizationScope, userId: string) =>
  database
    .select({ userId: memberships.userId })
    .from(memberships)
    .where(and(eq(memberships.organizationId, organizationId), eq(memberships.userId, userId)))
    .for('update')

/** Lets one transaction at a time end a membership of a user, whatever the organization: the last one sees that no other is left. */
export const lockUser = ({ database }: Pick<OrganizationScope, 'database'>, userId: string) =>
  database.select({ id: users.id }).from(users).where(eq(users.id, userId)).for('update')
