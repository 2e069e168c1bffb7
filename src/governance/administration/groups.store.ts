import { and, eq, notExists, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { groupMemberships, groups } from '../../../schema/identity.ts'
import { grants } from '../../../schema/models.ts'
import type { Page, PageRequest } from '../../wire/page-cursor.ts'
import {
  beyond,
  microseconds,
  newestFirst,
  raisedEpoch,
  raiseOrganizationEpoch,
  toPage,
} from './administration.store.ts'
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
  database: Database,
  organizationId: string,
  group: { id: string; name: string },
): Promise<void> {
  await database.insert(groups).values({ ...group, organizationId })
}

export async function selectGroup(
  database: Database,
  organizationId: string,
  groupId: string,
): Promise<GroupRow | null> {
  const [row] = await database.select(groupColumns).from(groups).where(isGroup(organizationId, groupId))
  return row ?? null
}

export async function selectGroups(
  database: Database,
  organizationId: string,
  page: PageRequest,
): Promise<Page<GroupRow>> {
  const rows = await database
    .select({ ...groupColumns, at: microseconds(groups.createdAt) })
    .from(groups)
    .where(and(eq(groups.organizationId, organizationId), beyond(groups.createdAt, groups.id, page.after)))
    .orderBy(...newestFirst(groups.createdAt, groups.id))
    .limit(page.limit + 1)
  return toPage(rows, page, ({ at, id }) => ({ at, id }))
}

/**
 * Removes a group, its memberships and what was granted to it, and raises the epoch. Raising comes first, as where
 * policies change: it locks the organization, so that what comes after sees the policies that hold.
 * @returns the raised epoch, or null when nothing was removed, since an enabled policy names the group or it was gone
 */
export async function deleteGroup(
  database: Database,
  organizationId: string,
  groupId: string,
): Promise<number | null> {
  const isFree = notExists(policiesNamingGroup(database, organizationId, groupId))
  const [raised, , deleted] = await database.batch([
    raiseOrganizationEpoch(database, organizationId),
    database
      .delete(grants)
      .where(
        and(
          eq(grants.organizationId, organizationId),
          eq(grants.subjectType, 'group'),
          eq(grants.subjectId, groupId),
          isFree,
        ),
      ),
    database
      .delete(groups)
      .where(and(isGroup(organizationId, groupId), isFree))
      .returning({ id: groups.id }),
  ])
  return deleted.length === 0 ? null : raisedEpoch(raised)
}

/** Adds a member and raises the epoch. Adding one twice changes nothing. */
export async function insertGroupMember(
  database: Database,
  organizationId: string,
  groupId: string,
  userId: string,
): Promise<number> {
  const [, raised] = await database.batch([
    database.insert(groupMemberships).values({ organizationId, groupId, userId }).onConflictDoNothing(),
    raiseOrganizationEpoch(database, organizationId),
  ])
  return raisedEpoch(raised)
}

export async function deleteGroupMember(
  database: Database,
  organizationId: string,
  groupId: string,
  userId: string,
): Promise<number> {
  const [, raised] = await database.batch([
    database
      .delete(groupMemberships)
      .where(
        and(
          eq(groupMemberships.organizationId, organizationId),
          eq(groupMemberships.groupId, groupId),
          eq(groupMemberships.userId, userId),
        ),
      ),
    raiseOrganizationEpoch(database, organizationId),
  ])
  return raisedEpoch(raised)
}
