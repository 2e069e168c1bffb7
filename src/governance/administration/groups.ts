import { notFound } from '../../lib/api-error.ts'
import type { Page, PageRequest } from '../../wire/page-cursor.ts'
import { type Administration, audited, conflict } from './administration.ts'
import { policiesNamingGroup } from './dlp-policies.store.ts'
import {
  deleteGroup,
  deleteGroupMember,
  type GroupRow,
  insertGroup,
  insertGroupMember,
  selectGroup,
  selectGroups,
} from './groups.store.ts'
import { selectMembers } from './members.store.ts'
import { type MemberRow, readMember } from './members.ts'
import { publishRights } from './propagation.ts'

export type { GroupRow } from './groups.store.ts'

/** @throws ApiError `unprocessable` when the organization has a group of this name. */
export async function createGroup(
  administration: Administration,
  organizationId: string,
  name: string,
): Promise<GroupRow> {
  const id = crypto.randomUUID()
  await audited(
    administration,
    { organizationId, action: 'group.created', resource: `groups/${id}`, detail: { name } },
    () => insertGroup(administration.database, organizationId, { id, name }),
  )
  return readGroup(administration, organizationId, id)
}

export function listGroups(
  administration: Administration,
  organizationId: string,
  page: PageRequest,
): Promise<Page<GroupRow>> {
  return selectGroups(administration.database, organizationId, page)
}

/** @throws ApiError `not_found` for a group of another organization, too. */
export async function readGroup(
  administration: Administration,
  organizationId: string,
  groupId: string,
): Promise<GroupRow> {
  const row = await selectGroup(administration.database, organizationId, groupId)
  if (row === null) throw notFound('Group', groupId)
  return row
}

/**
 * Removes a group with its memberships and grants.
 * @throws ApiError `not_found`; `unprocessable` for a group that an enabled policy names: without it the policy would
 * hold for fewer calls, or none, and nobody would be told.
 */
export async function removeGroup(
  administration: Administration,
  organizationId: string,
  groupId: string,
): Promise<void> {
  const { name, memberCount } = await readGroup(administration, organizationId, groupId)
  await refuseIfNamed(administration, organizationId, groupId)
  const epoch = await audited(
    administration,
    {
      organizationId,
      action: 'group.deleted',
      resource: `groups/${groupId}`,
      detail: { name, members: memberCount },
    },
    async () => {
      const raised = await deleteGroup(administration.database, organizationId, groupId)
      if (raised !== null) return raised
      await refuseIfNamed(administration, organizationId, groupId)
      throw notFound('Group', groupId)
    },
  )
  await publishRights(administration, organizationId, epoch)
}

async function refuseIfNamed(administration: Administration, organizationId: string, groupId: string) {
  const naming = await policiesNamingGroup(administration.database, organizationId, groupId)
  if (naming.length === 0) return
  const names = naming.map(({ name }) => JSON.stringify(name)).join(', ')
  throw conflict(
    `The group is in the scope of policies of data-loss prevention that are enabled: ${names}. Change or disable those first.`,
  )
}

/** @throws ApiError `not_found`. */
export async function listGroupMembers(
  administration: Administration,
  organizationId: string,
  groupId: string,
  page: PageRequest,
): Promise<Page<MemberRow>> {
  await readGroup(administration, organizationId, groupId)
  return selectMembers(administration.database, organizationId, { groupId }, page)
}

/** Adds a member or takes one out. Repeating either changes nothing. @throws ApiError `not_found`. */
export async function setGroupMember(
  administration: Administration,
  organizationId: string,
  groupId: string,
  userId: string,
  belongs: boolean,
): Promise<MemberRow> {
  await readGroup(administration, organizationId, groupId)
  await readMember(administration, organizationId, userId)
  const store = belongs ? insertGroupMember : deleteGroupMember
  const epoch = await audited(
    administration,
    {
      organizationId,
      action: belongs ? 'group_member.added' : 'group_member.removed',
      resource: `groups/${groupId}`,
      detail: { user_id: userId },
    },
    () => store(administration.database, organizationId, groupId, userId),
  )
  await publishRights(administration, organizationId, epoch)
  return readMember(administration, organizationId, userId)
}
