import { type GroupRow, selectGroups } from '../../../admin/groups.store.ts'
import {
  createGroup,
  listGroupMembers,
  readGroup,
  removeGroup,
  setGroupMember,
} from '../../../admin/groups.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { pageRequest } from './change-scope.ts'
import type { HandlersOf } from './mount-endpoints.ts'
import { presentMember } from './present-member.ts'
import { authorOf } from './require-permission.ts'

const present = (row: GroupRow) => ({
  id: row.id,
  name: row.name,
  members: row.memberCount,
  created_at: row.createdAt,
})

export const groupHandlers: HandlersOf<'groups'> = {
  'groups.list': async ({ scope, query }) => listBody(await selectGroups(scope, pageRequest(query)), present),
  'groups.create': async ({ scope, body }) => present(await createGroup(scope, body.name)),
  'groups.show': async ({ scope, path }) => present(await readGroup(scope, path.groupId)),
  'groups.remove': async ({ scope, path }) => {
    await removeGroup(scope, path.groupId)
    return { id: path.groupId, deleted: true }
  },
  'groups.members': async ({ scope, path, query }) =>
    listBody(await listGroupMembers(scope, path.groupId, pageRequest(query)), presentMember),
  'groups.add': async ({ context, scope, path }) =>
    presentMember(
      await setGroupMember(scope, path.groupId, path.userId, true, authorOf(context, 'groups.change')),
    ),
  'groups.withdraw': async ({ context, scope, path }) =>
    presentMember(
      await setGroupMember(scope, path.groupId, path.userId, false, authorOf(context, 'groups.change')),
    ),
}
