import { Hono } from 'hono'
import { type GroupRow, selectGroups } from '../../../admin/groups.store.ts'
import {
  createGroup,
  listGroupMembers,
  readGroup,
  removeGroup,
  setGroupMember,
} from '../../../admin/groups.ts'
import { groupCreation } from '../../../wire/management.ts'
import { noQuery, pageQuery } from '../../../wire/management-fields.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppEnv } from '../../context.ts'
import { jsonBody, query } from '../../validated-request.ts'
import { presentMember } from './present-member.ts'
import { changeScope, pageRequest, pathId } from './request.ts'

const GROUPS = '/organizations/:organizationId/groups'
const GROUP = '/organizations/:organizationId/groups/:groupId'
const MEMBERS = '/organizations/:organizationId/groups/:groupId/members'
const MEMBER = '/organizations/:organizationId/groups/:groupId/members/:userId'

const present = (row: GroupRow) => ({
  id: row.id,
  name: row.name,
  members: row.memberCount,
  created_at: row.createdAt,
})

export const groupRoutes = new Hono<AppEnv>()
  .get(GROUPS, query(pageQuery), async (context) => {
    const page = pageRequest(context.req.valid('query'))
    return context.json(listBody(await selectGroups(changeScope(context), page), present))
  })
  .post(GROUPS, query(noQuery), jsonBody(groupCreation), async (context) => {
    const { name } = context.req.valid('json')
    return context.json(present(await createGroup(changeScope(context), name)), 201)
  })
  .get(GROUP, query(noQuery), async (context) => {
    const id = pathId(context, 'Group')
    return context.json(present(await readGroup(changeScope(context), id)))
  })
  .delete(GROUP, query(noQuery), async (context) => {
    const id = pathId(context, 'Group')
    await removeGroup(changeScope(context), id)
    return context.json({ id, deleted: true })
  })
  .get(MEMBERS, query(pageQuery), async (context) => {
    const id = pathId(context, 'Group')
    const page = pageRequest(context.req.valid('query'))
    return context.json(listBody(await listGroupMembers(changeScope(context), id, page), presentMember))
  })
  .on(['PUT', 'DELETE'], MEMBER, query(noQuery), async (context) => {
    const groupId = pathId(context, 'Group')
    const userId = pathId(context, 'User')
    const belongs = context.req.method === 'PUT'
    const row = await setGroupMember(changeScope(context), groupId, userId, belongs)
    return context.json(presentMember(row))
  })
