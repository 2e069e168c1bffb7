import { audited, type ChangeScope, changeRights, conflict } from '../ledger/changes/audited-change.ts'
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
  selectSharesOthers,
  toolSettingsNamingGroup,
} from './groups.store.ts'
import { type Author, checkGroupMember } from './member-rules.ts'
import { type MemberRow, selectMembers } from './members.store.ts'
import { readMember } from './members.ts'

/** @throws ApiError `unprocessable` when the organization has a group of this name. */
export async function createGroup(scope: ChangeScope, name: string): Promise<GroupRow> {
  const id = crypto.randomUUID()
  await audited(scope, { action: 'group.created', resource: `groups/${id}`, detail: { name } }, () =>
    insertGroup(scope, { id, name }),
  )
  return readGroup(scope, id)
}

/** @throws ApiError `not_found` for a group of another organization, too. */
export async function readGroup(scope: ChangeScope, groupId: string): Promise<GroupRow> {
  const row = await selectGroup(scope, groupId)
  if (row === null) throw notFound('Group', groupId)
  return row
}

/**
 * Removes a group with its memberships and grants.
 * @throws ApiError `not_found`; `unprocessable` for a group that an enabled policy or the tool settings name: without the group
 * they would silently hold for fewer calls, or none.
 */
export async function removeGroup(scope: ChangeScope, groupId: string): Promise<void> {
  const { name, memberCount } = await readGroup(scope, groupId)
  await refuseIfNamed(scope, groupId)
  await changeRights(
    scope,
    { action: 'group.deleted', resource: `groups/${groupId}`, detail: { name, members: memberCount } },
    async () => {
      const deleted = await deleteGroup(scope, groupId)
      if (deleted.result.length > 0) return deleted
      await refuseIfNamed(scope, groupId)
      throw notFound('Group', groupId)
    },
  )
}

async function refuseIfNamed(scope: ChangeScope, groupId: string) {
  if ((await toolSettingsNamingGroup(scope, groupId)).length > 0)
    throw conflict('The settings of tools switch tools off for this group. Change those first.')
  const naming = await policiesNamingGroup(scope, groupId)
  if (naming.length === 0) return
  const names = naming.map(({ name }) => JSON.stringify(name)).join(', ')
  throw conflict(
    `The group is in the scope of policies of data-loss prevention that are enabled: ${names}. Change or disable those first.`,
  )
}

/** @throws ApiError `not_found`. */
export async function listGroupMembers(
  scope: ChangeScope,
  groupId: string,
  page: PageRequest,
): Promise<Page<MemberRow>> {
  await readGroup(scope, groupId)
  return selectMembers(scope, { groupId }, page)
}

/**
 * Adds a member or takes one out. Repeating either changes nothing.
 * @param author the member that does it; null for the administration token.
 * @throws ApiError `not_found`; `forbidden` where the author may not.
 */
export async function setGroupMember(
  scope: ChangeScope,
  groupId: string,
  userId: string,
  belongs: boolean,
  author: Author | null,
): Promise<MemberRow> {
  await readGroup(scope, groupId)
  await readMember(scope, userId)
  if (author !== null) {
    const sharesOthers = belongs && (await selectSharesOthers(scope, groupId, author.userId))
    checkGroupMember(author, userId, sharesOthers)
  }
  const store = belongs ? insertGroupMember : deleteGroupMember
  const action = belongs ? 'group_member.added' : 'group_member.removed'
  await changeRights(scope, { action, resource: `groups/${groupId}`, detail: { user_id: userId } }, () =>
    store(scope, groupId, userId),
  )
  return readMember(scope, userId)
}
