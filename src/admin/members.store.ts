import { and, eq, notExists, type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../schema/database.ts'
import { entitlements, erasures, groupMemberships, memberships, users } from '../../schema/identity.ts'
import { connectionShares, connections } from '../../schema/integrations.ts'
import type { Entitlement, Role } from '../identity/principal.ts'
import {
  disabledSince,
  equal,
  type OrganizationScope,
  raisingEpoch,
  selectPage,
} from '../ledger/changes/scoped-statements.store.ts'
import { OPERATOR } from '../wire/endpoints/permissions.ts'
import type { Page, PageRequest } from '../wire/page-cursor.ts'
import { lockMembership } from './lock-members.store.ts'
import { deleteIdentity } from './sign-in/identities.store.ts'
import { deletePasskeys } from './sign-in/passkeys.store.ts'
import { endSessions } from './sign-in/sessions.store.ts'
import { endSetupLinks } from './sign-in/setup-links.store.ts'

/** A user in its place in one organization. */
export interface MemberRow {
  userId: string
  email: string
  name: string
  kind: 'person' | 'service'
  role: Role
  rateLimitPerMinute: number | null
  entitlements: Entitlement[]
  groupIds: string[]
  disabledAt: Date | null
  createdAt: Date
}

export interface MemberValues {
  name?: string | undefined
  role?: Role | undefined
  rateLimitPerMinute?: number | null | undefined
  disabled?: boolean | undefined
}

const memberColumns = {
  userId: memberships.userId,
  email: users.email,
  name: users.name,
  kind: users.kind,
  role: memberships.role,
  rateLimitPerMinute: memberships.rateLimitPerMinute,
  entitlements: sql<
    Entitlement[]
  >`coalesce((select json_agg(${entitlements.name} order by ${entitlements.name})
    from ${entitlements} where ${entitlements.organizationId} = ${memberships.organizationId}
    and ${entitlements.userId} = ${memberships.userId}), '[]'::json)`,
  groupIds: sql<
    string[]
  >`coalesce((select json_agg(${groupMemberships.groupId} order by ${groupMemberships.groupId})
    from ${groupMemberships} where ${groupMemberships.organizationId} = ${memberships.organizationId}
    and ${groupMemberships.userId} = ${memberships.userId}), '[]'::json)`,
  disabledAt: memberships.disabledAt,
  createdAt: memberships.createdAt,
}

const isMember = (organizationId: string, userId: string) =>
  and(eq(memberships.organizationId, organizationId), eq(memberships.userId, userId))

/** The user with this address, in whatever organization; its id must not reach an answer. */
export async function selectUserByEmail(
  database: Database,
  email: string,
): Promise<{ id: string; kind: MemberRow['kind'] } | null> {
  const [row] = await database
    .select({ id: users.id, kind: users.kind })
    .from(users)
    .where(eq(users.email, email))
  return row ?? null
}

/**
 * Adds the user unless it exists, and its membership.
 * @throws the database's unique violation when it is a member already; its foreign key violation when another
 * request gave the address to another id meanwhile.
 */
export async function insertMember(
  { database, organizationId }: OrganizationScope,
  member: Pick<MemberRow, 'userId' | 'email' | 'name' | 'kind' | 'role' | 'rateLimitPerMinute'>,
): Promise<void> {
  const { userId, email, name, kind, role, rateLimitPerMinute } = member
  await database.batch([
    database.insert(users).values({ id: userId, email, name, kind }).onConflictDoNothing(),
    database.insert(memberships).values({ organizationId, userId, role, rateLimitPerMinute }),
  ])
}

export async function selectMember(
  { database, organizationId }: OrganizationScope,
  userId: string,
): Promise<MemberRow | null> {
  const [row] = await database
    .select(memberColumns)
    .from(memberships)
    .innerJoin(users, eq(users.id, memberships.userId))
    .where(isMember(organizationId, userId))
  return row ?? null
}

/** @param filter `groupId` keeps the members of one group, `userId` one member. */
export function selectMembers(
  { database, organizationId }: OrganizationScope,
  filter: { email?: string | undefined; groupId?: string | undefined; userId?: string | undefined },
  page: PageRequest,
): Promise<Page<MemberRow>> {
  const { createdAt, userId } = memberships
  const inGroup =
    filter.groupId === undefined
      ? undefined
      : sql`exists (select 1 from ${groupMemberships} where ${groupMemberships.groupId} = ${filter.groupId}
          and ${groupMemberships.organizationId} = ${organizationId} and ${groupMemberships.userId} = ${userId})`
  const isOfOrganization = eq(memberships.organizationId, organizationId)
  return selectPage(page, { at: createdAt, id: userId }, (position, isAfter) =>
    database
      .select({ ...memberColumns, position })
      .from(memberships)
      .innerJoin(users, eq(users.id, userId))
      .where(
        and(
          isOfOrganization,
          equal(users.email, filter.email),
          equal(userId, filter.userId),
          inGroup,
          isAfter,
        ),
      ),
  )
}

/** Whether the user belongs to another organization as well. */
export async function selectHasOtherMemberships(
  { database, organizationId }: OrganizationScope,
  userId: string,
): Promise<boolean> {
  const rows = await database
    .select({ organizationId: memberships.organizationId })
    .from(memberships)
    .where(and(eq(memberships.userId, userId), sql`${memberships.organizationId} <> ${organizationId}`))
    .limit(1)
  return rows.length > 0
}

/** What must hold when a membership is changed, checked by the statement itself, so that two changes at once cannot pass both. */
export interface MemberGuards {
  /** The member is no owner. */
  isNoOwner?: boolean
  /** Another enabled owner remains who can sign in. */
  leavesOwner?: boolean
}

/** No erasure of the user is in progress. Read after `lockMembership`, under which erasures begin. */
const hasNoErasure = (organizationId: string, userId: string) =>
  sql`not exists (select 1 from ${erasures} where ${erasures.organizationId} = ${organizationId}
    and ${erasures.userId} = ${userId} and ${erasures.finishedAt} is null)`

const guardOf = (organizationId: string, userId: string, { isNoOwner, leavesOwner }: MemberGuards) =>
  and(
    isNoOwner ? sql`${memberIn(organizationId, userId)} and m.role <> 'owner')` : undefined,
    leavesOwner
      ? sql`(${memberIn(organizationId, userId)} and (m.role <> 'owner' or m.disabled_at is not null))
          or exists (select 1 from ${memberships} o join ${users} u on u.id = o.user_id
            where o.organization_id = ${organizationId} and o.user_id <> ${userId}
            and o.role = 'owner' and o.disabled_at is null and u.kind = 'person'))`
      : undefined,
  )

/** The open beginning of a condition on a membership `m`. */
const memberIn = (organizationId: string, userId: string) =>
  sql`exists (select 1 from ${memberships} m where m.organization_id = ${organizationId} and m.user_id = ${userId}`

/**
 * Changes a membership. The name changes only while no other organization shares the user. Disabling it revokes the private
 * connections of the user, and ends its sessions and setup links; shared connections count as suspended while their owner is disabled.
 * A member with an erasure in progress is not enabled.
 * @returns the changed memberships: none where a guard refused.
 */
export function updateMember(
  scope: OrganizationScope,
  userId: string,
  values: MemberValues,
  guards: MemberGuards = {},
) {
  const { database, organizationId } = scope
  const { name, role, rateLimitPerMinute, disabled } = values
  const guard = and(
    guardOf(organizationId, userId, guards),
    disabled === false ? hasNoErasure(organizationId, userId) : undefined,
  )
  const isUnshared = sql`not exists (select 1 from ${memberships} where ${memberships.userId} = ${userId}
    and ${memberships.organizationId} <> ${organizationId})`
  const renaming = database
    .update(users)
    .set({ name: name ?? sql`${users.name}` })
    .where(and(eq(users.id, userId), isUnshared, guard))
  const membership = database
    .update(memberships)
    .set({
      role: role ?? sql`${memberships.role}`,
      ...(rateLimitPerMinute !== undefined && { rateLimitPerMinute }),
      ...(disabled !== undefined && { disabledAt: disabledSince(memberships.disabledAt, disabled) }),
    })
    .where(and(isMember(organizationId, userId), guard))
    .returning({ userId: memberships.userId })
  // Else a sign-in or a setup link could come between the statements, and be neither ended nor refused.
  const lock = lockMembership(scope, userId)
  if (disabled) {
    return raisingEpoch(
      scope,
      lock,
      revokePrivateConnections(scope, userId, guard),
      endSessions(scope, userId, guard),
      endSetupLinks(scope, userId, guard),
      renaming,
      membership,
    )
  }
  if (role === undefined) return raisingEpoch(scope, lock, renaming, membership)
  // A link that was made for a member must not open what an owner or an administrator may do.
  return raisingEpoch(scope, lock, endSetupLinks(scope, userId, guard), renaming, membership)
}

/** Erases the credentials with the revocation: their person has left the organization. */
const revokePrivateConnections = (
  { database, organizationId }: OrganizationScope,
  userId: string,
  guard: SQL | undefined,
) =>
  database
    .update(connections)
    .set({
      status: 'revoked',
      sealedCredential: null,
      vaultKeyId: null,
      hint: null,
      credentialVersion: sql`${connections.credentialVersion} + 1`,
      updatedAt: sql`now()`,
    })
    .where(
      and(
        eq(connections.organizationId, organizationId),
        eq(connections.ownerUserId, userId),
        notExists(
          database
            .select({ one: sql`1` })
            .from(connectionShares)
            .where(eq(connectionShares.connectionId, connections.id)),
        ),
        guard,
      ),
    )

/** Gives a membership a named right. Giving it twice changes nothing. A new operator loses its credentials. */
export function insertEntitlement(scope: OrganizationScope, userId: string, name: Entitlement) {
  const { database, organizationId } = scope
  const insertion = database
    .insert(entitlements)
    .values({ organizationId, userId, name })
    .onConflictDoNothing()
  if (name !== OPERATOR) return raisingEpoch(scope, insertion)
  const isNew = sql`not exists (select 1 from ${entitlements} where ${entitlements.organizationId} = ${organizationId}
    and ${entitlements.userId} = ${userId} and ${entitlements.name} = ${name})`
  return raisingEpoch(
    scope,
    lockMembership(scope, userId),
    endSetupLinks(scope, userId, isNew),
    deletePasskeys(scope, userId, isNew),
    deleteIdentity(scope, userId, isNew),
    endSessions(scope, userId, isNew),
    insertion,
  )
}

export const deleteEntitlement = (scope: OrganizationScope, userId: string, name: Entitlement) =>
  raisingEpoch(
    scope,
    scope.database
      .delete(entitlements)
      .where(
        and(
          eq(entitlements.organizationId, scope.organizationId),
          eq(entitlements.userId, userId),
          eq(entitlements.name, name),
        ),
      ),
  )
