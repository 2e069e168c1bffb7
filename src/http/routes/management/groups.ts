import { type GroupRow, selectGroups } from '../../../admin/groups.store.ts'
import {
  createGroup,
  listGroupMembers,
  readGroup,
  removeGroup,
  setGroupMember,
} from '../../../admin/groups.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { pageRequest } from './administration.ts'
import type { HandlersOf } from './mount-endpoints.ts'
import { presentMember } from './present-member.ts'

const present = (row: GroupRow) => ({
  id: row.id,
  name: row.name,
  members: row.memberCount,
  created_at: row.createdAt,
})

export const groupHandlers: HandlersOf<'groups'> = {
  'groups.list': async ({ administration, query }) =>
    listBody(await selectGroups(administration, pageRequest(query)), present),
  'groups.create': async ({ administration, body }) => present(await createGroup(administration, body.name)),
  'groups.show': async ({ administration, path }) => present(await readGroup(administration, path.groupId)),
  'groups.remove': async ({ administration, path }) => {
    await removeGroup(administration, path.groupId)
    return { id: path.groupId, deleted: true }
  },
  'groups.members': async ({ administration, path, query }) =>
    listBody(await listGroupMembers(administration, path.groupId, pageRequest(query)), presentMember),
  'groups.add': async ({ administration, path }) =>
    presentMember(await setGroupMember(administration, path.groupId, path.userId, true)),
  'groups.withdraw': async ({ administration, path }) =>
    presentMember(await setGroupMember(administration, path.groupId, path.userId, false)),
}
