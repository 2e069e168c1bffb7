import { Hono } from 'hono'
import {
  createGroup,
  type GroupRow,
  listGroupMembers,
  listGroups,
  readGroup,
  removeGroup,
  setGroupMember,
} from '../../../governance/administration/groups.ts'
import { groupCreation, noQuery, pageQuery } from '../../../wire/management.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppEnv } from '../../context.ts'
import { jsonBody, query } from '../../validated-request.ts'
import { presentMember } from './present-member.ts'
import { administrationOf, idParameter, pageRequest } from './request.ts'

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
    const { organizationId } = context.req.param()
    const page = pageRequest(context.req.valid('query'))
    return context.json(listBody(await listGroups(administrationOf(context), organizationId, page), present))
  })
  .post(GROUPS, query(noQuery), jsonBody(groupCreation), async (context) => {
    const { organizationId } = context.req.param()
    const { name } = context.req.valid('json')
    return context.json(present(await createGroup(administrationOf(context), organizationId, name)), 201)
  })
  .get(GROUP, query(noQuery), async (context) => {
    const { organizationId, groupId } = context.req.param()
    const id = idParameter('Group', groupId)
    return context.json(present(await readGroup(administrationOf(context), organizationId, id)))
  })
  .delete(GROUP, query(noQuery), async (context) => {
    const { organizationId, groupId } = context.req.param()
    const id = idParameter('Group', groupId)
    await removeGroup(administrationOf(context), organizationId, id)
    return context.json({ id, deleted: true })
  })
  .get(MEMBERS, query(pageQuery), async (context) => {
    const { organizationId, groupId } = context.req.param()
    const page = await listGroupMembers(
      administrationOf(context),
      organizationId,
      idParameter('Group', groupId),
      pageRequest(context.req.valid('query')),
    )
    return context.json(listBody(page, presentMember))
  })
  .put(MEMBER, query(noQuery), async (context) => {
    const { organizationId, groupId, userId } = context.req.param()
    const row = await setGroupMember(
      administrationOf(context),
      organizationId,
      idParameter('Group', groupId),
      idParameter('User', userId),
      true,
    )
    return context.json(presentMember(row))
  })
  .delete(MEMBER, query(noQuery), async (context) => {
    const { organizationId, groupId, userId } = context.req.param()
    const row = await setGroupMember(
      administrationOf(context),
      organizationId,
      idParameter('Group', groupId),
      idParameter('User', userId),
      false,
    )
    return context.json(presentMember(row))
  })
