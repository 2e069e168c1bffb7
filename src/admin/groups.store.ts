import { and, eq, isNotNull, ne, notExists, sql } from 'drizzle-orm'
import { groupMemberships, groups, organizations } from '../../schema/identity.ts'
import { connectionShares, connections } from '../../schema/integrations.ts'
import { grants } from '../../schema/models.ts'
import {
  type OrganizationScope,
  raisingEpoch,
  selectPage,
} from '../ledger/changes/scoped-statements.store.ts'
import { isUuid } from '../wire/management-fields.ts'
import type { Page, PageRequest } from '../wire/page-cursor.ts'
import { policiesNamingGroup } from './dlp-policies.store.ts'

export type GroupRow = typeof groups.$inferSelect & { memberCount: number }

const groupColumns = {
  id: groups.id,
  organizationId: groups.organizationId,
  name: groups.name,
  createdAt: groups.createdAt,
  memberCount: sql<number>`(select count(*) from ${groupMemberships}
    where ${groupMemberships.groupId} = ${groups.id})`.mapWith(Number),
}

const isGroup = (organizationId: string, groupId: string) =>
  and(eq(groups.organizationId, organizationId), eq(groups.id, groupId))

export async function insertGroup(
  { database, organizationId }: OrganizationScope,
  group: { id: string; name: string },
): Promise<void> {
  await database.insert(groups).values({ ...group, organizationId })
}

export async function selectGroup(
  { database, organizationId }: OrganizationScope,
  groupId: string,
): Promise<GroupRow | null> {
  const [row] = await database.select(groupColumns).from(groups).where(isGroup(organizationId, groupId))
  return row ?? null
}

export function selectGroups(
  { database, organizationId }: OrganizationScope,
  page: PageRequest,
): Promise<Page<GroupRow>> {
  return selectPage(page, { at: groups.createdAt, id: groups.id }, (position, isAfter) =>
    database
      .select({ ...groupColumns, position })
      .from(groups)
      .where(and(eq(groups.organizationId, organizationId), isAfter)),
  )
}

/**
 * Deletes a group with its memberships and grants, unless an enabled policy names it. The raised epoch locks the
 * organization, so no policy changes meanwhile.
 * @returns the id of the deleted group; no row when a policy names it or it was gone.
 */
export function deleteGroup(scope: OrganizationScope, groupId: string) {
  const { database, organizationId } = scope
  const isFree = and(
    notExists(policiesNamingGroup(scope, groupId)),
    notExists(toolSettingsNamingGroup(scope, groupId)),
  )
  const isGranted = and(
    eq(grants.organizationId, organizationId),
    eq(grants.subjectType, 'group'),
    eq(grants.subjectId, groupId),
  )
  return raisingEpoch(
    scope,
    database.delete(grants).where(and(isGranted, isFree)),
    database
      .delete(groups)
      .where(and(isGroup(organizationId, groupId), isFree))
      .returning({ id: groups.id }),
  )
}

/** The organization, if its tool settings name a group. */
export function toolSettingsNamingGroup({ database, organizationId }: OrganizationScope, groupId: string) {
  const named = JSON.stringify({ off: [{ subject_type: 'group', subject_id: groupId }] })
  return database
    .select({ id: organizations.id })
    .from(organizations)
    .where(and(eq(organizations.id, organizationId), sql`${organizations.toolSettings} @> ${named}::jsonb`))
}

/** Users that are in a group of the organization now: none in a group of another one. */
export async function selectGroupUsers(
  { database, organizationId }: OrganizationScope,
  groupId: string,
): Promise<ReadonlySet<string>> {
  if (!isUuid(groupId)) return new Set()
  const rows = await database
    .select({ userId: groupMemberships.userId })
    .from(groupMemberships)
    .innerJoin(groups, eq(groups.id, groupMemberships.groupId))
    .where(and(eq(groups.id, groupId), eq(groups.organizationId, organizationId)))
  return new Set(rows.map(({ userId }) => userId))
}

/** Adding a member twice changes nothing. */
export const insertGroupMember = (scope: OrganizationScope, groupId: string, userId: string) =>
  raisingEpoch(
    scope,
    scope.database
      .insert(groupMemberships)
      .values({ organizationId: scope.organizationId, groupId, userId })
      .onConflictDoNothing(),
  )

export const deleteGroupMember = (scope: OrganizationScope, groupId: string, userId: string) =>
  raisingEpoch(
    scope,
    scope.database
      .delete(groupMemberships)
      .where(
        and(
          eq(groupMemberships.organizationId, scope.organizationId),
          eq(groupMemberships.groupId, groupId),
          eq(groupMemberships.userId, userId),
        ),
      ),
  )

/** Whether a connection of another person than this user is shared with a group. */
export async function selectSharesOthers(
  { database, organizationId }: OrganizationScope,
  groupId: string,
  userId: string,
): Promise<boolean> {
  const rows = await database
    .select({ id: connections.id })
    .from(connectionShares)
    .innerJoin(connections, eq(connections.id, connectionShares.connectionId))
    .where(
      and(
        eq(connectionShares.organizationId, organizationId),
        eq(connectionShares.groupId, groupId),
        isNotNull(connections.ownerUserId),
        ne(connections.ownerUserId, userId),
      ),
    )
    .limit(1)
  return rows.length > 0
}
