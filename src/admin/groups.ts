import { type Administration, audited, changeRights, conflict } from '../ledger/changes/audited-change.ts'
import { notFound } from '../lib/api-error.ts'
import type { Page, PageRequest } from '../wire/page-cursor.ts'
import { policiesNamingGroup } from './dlp-policies.store.ts'
import {
  deleteGroup,
  deleteGroupMember,
  type GroupRow,
  insertGroup,
  insertGroupMember,
  selectGroup,
} from './groups.store.ts'
import { type MemberRow, selectMembers } from './members.store.ts'
import { readMember } from './members.ts'

/** @throws ApiError `unprocessable` when the organization has a group of this name. */
export async function createGroup(administration: Administration, name: string): Promise<GroupRow> {
  const id = crypto.randomUUID()
  await audited(administration, { action: 'group.created', resource: `groups/${id}`, detail: { name } }, () =>
    insertGroup(administration, { id, name }),
  )
  return readGroup(administration, id)
}

/** @throws ApiError `not_found` for a group of another organization, too. */
export async function readGroup(administration: Administration, groupId: string): Promise<GroupRow> {
  const row = await selectGroup(administration, groupId)
  if (row === null) throw notFound('Group', groupId)
  return row
}

/**
 * Removes a group with its memberships and grants.
 * @throws ApiError `not_found`; `unprocessable` for a group that an enabled policy names: without the group the policy
 * would silently hold for fewer calls, or none.
 */
export async function removeGroup(administration: Administration, groupId: string): Promise<void> {
  const { name, memberCount } = await readGroup(administration, groupId)
  await refuseIfNamed(administration, groupId)
  await changeRights(
    administration,
    { action: 'group.deleted', resource: `groups/${groupId}`, detail: { name, members: memberCount } },
    async () => {
      const deleted = await deleteGroup(administration, groupId)
      if (deleted.result.length > 0) return deleted
      await refuseIfNamed(administration, groupId)
      throw notFound('Group', groupId)
    },
  )
}

async function refuseIfNamed(administration: Administration, groupId: string) {
  const naming = await policiesNamingGroup(administration, groupId)
  if (naming.length === 0) return
  const names = naming.map(({ name }) => JSON.stringify(name)).join(', ')
  throw conflict(
    `The group is in the scope of policies of data-loss prevention that are enabled: ${names}. Change or disable those first.`,
  )
}

/** @throws ApiError `not_found`. */
export async function listGroupMembers(
  administration: Administration,
  groupId: string,
  page: PageRequest,
): Promise<Page<MemberRow>> {
  await readGroup(administration, groupId)
  return selectMembers(administration, { groupId }, page)
}

/** Adds a member or takes one out. Repeating either changes nothing. @throws ApiError `not_found`. */
export async function setGroupMember(
  administration: Administration,
  groupId: string,
  userId: string,
  belongs: boolean,
): Promise<MemberRow> {
  await readGroup(administration, groupId)
  await readMember(administration, userId)
  const store = belongs ? insertGroupMember : deleteGroupMember
  const action = belongs ? 'group_member.added' : 'group_member.removed'
  await changeRights(
    administration,
    { action, resource: `groups/${groupId}`, detail: { user_id: userId } },
    () => store(administration, groupId, userId),
  )
  return readMember(administration, userId)
}
