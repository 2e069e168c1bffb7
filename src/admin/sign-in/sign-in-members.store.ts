import { and, eq, isNull, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import {
  memberships,
  organizations,
  type passkeys,
  type sessions,
  type setupLinks,
  users,
} from '../../../schema/identity.ts'
import type { identities } from '../../../schema/identity-providers.ts'
import type { OrganizationScope } from '../../ledger/changes/scoped-statements.store.ts'

/** A membership: what a sign-in credential belongs to. */
export interface MembershipId {
  organizationId: string
  userId: string
}

/** The person of a membership, for whom credentials are made. */
export interface SignInMember extends MembershipId {
  email: string
  name: string
  role: 'owner' | 'admin' | 'member'
  organizationName: string
  organizationSlug: string
}

/** The condition that a row belongs to a membership. */
export const isOf = (
  table: typeof identities | typeof memberships | typeof passkeys | typeof sessions | typeof setupLinks,
  { organizationId, userId }: MembershipId,
) => and(eq(table.organizationId, organizationId), eq(table.userId, userId))

/** The condition that a member and its organization are enabled. */
export const isEnabled = ({ organizationId, userId }: MembershipId) =>
  sql`EXISTS (SELECT 1 FROM ${memberships} m JOIN ${organizations} o ON o.id = m.organization_id
    WHERE m.organization_id = ${organizationId}::uuid AND m.user_id = ${userId}::uuid
      AND m.disabled_at IS NULL AND o.disabled_at IS NULL)`

/** @returns null for a member that is disabled, or whose organization is, and for a service account. */
export async function selectSignInMember(
  database: Database,
  { organizationId, userId }: MembershipId,
): Promise<SignInMember | null> {
  const [row] = await database
    .select({
      organizationId: memberships.organizationId,
      userId: memberships.userId,
      email: users.email,
      name: users.name,
      role: memberships.role,
      organizationName: organizations.name,
      organizationSlug: organizations.slug,
    })
    .from(memberships)
    .innerJoin(users, eq(users.id, memberships.userId))
    .innerJoin(organizations, eq(organizations.id, memberships.organizationId))
    .where(
      and(
        isOf(memberships, { organizationId, userId }),
        isNull(memberships.disabledAt),
        isNull(organizations.disabledAt),
        eq(users.kind, 'person'),
      ),
    )
  return row ?? null
}

/** Whether a member has ever signed in, or has an API key, a connection, an agent or an entitlement. */
export async function selectIsInUse(
  { database, organizationId }: OrganizationScope,
  userId: string,
): Promise<boolean> {
  const has = (table: string, column: string, more = '') =>
    sql`EXISTS (SELECT 1 FROM ${sql.raw(table)} WHERE organization_id = ${organizationId}::uuid
      AND ${sql.raw(column)} = ${userId}::uuid ${sql.raw(more)})`
  const { rows } = await database.execute(sql`
    SELECT 1 FROM ${memberships}
    WHERE organization_id = ${organizationId}::uuid AND user_id = ${userId}::uuid AND (
      last_signed_in_at IS NOT NULL
      OR ${has('api_keys', 'user_id', 'AND revoked_at IS NULL')}
      OR ${has('connections', 'owner_user_id')}
      OR ${has('agents', 'created_by')}
      OR ${has('entitlements', 'user_id')})`)
  return rows.length > 0
}
