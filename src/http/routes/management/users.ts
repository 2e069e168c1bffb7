import { Hono } from 'hono'
import { selectMembers } from '../../../admin/members.store.ts'
import { addMember, changeMember, readMember, setEntitlement } from '../../../admin/members.ts'
import { ENTITLEMENTS, userCreation, userListQuery, userUpdate } from '../../../wire/management.ts'
import { noQuery } from '../../../wire/management-fields.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppEnv } from '../../context.ts'
import { jsonBody, query, unknownId } from '../../validated-request.ts'
import { presentMember } from './present-member.ts'
import { changeScope, pageRequest, pathId } from './request.ts'

const USERS = '/organizations/:organizationId/users'
const USER = '/organizations/:organizationId/users/:userId'
const ENTITLEMENT = '/organizations/:organizationId/users/:userId/entitlements/:name'

export const userRoutes = new Hono<AppEnv>()
  .get(USERS, query(userListQuery), async (context) => {
    const { email, ...paging } = context.req.valid('query')
    const page = await selectMembers(changeScope(context), { email }, pageRequest(paging))
    return context.json(listBody(page, presentMember))
  })
  .post(USERS, query(noQuery), jsonBody(userCreation), async (context) => {
    const { email, name, role, rate_limit_per_minute: rateLimitPerMinute = null } = context.req.valid('json')
    const member = { email, name, role, rateLimitPerMinute }
    return context.json(presentMember(await addMember(changeScope(context), member)), 201)
  })
  .get(USER, query(noQuery), async (context) => {
    const id = pathId(context, 'User')
    return context.json(presentMember(await readMember(changeScope(context), id)))
  })
  .put(USER, query(noQuery), jsonBody(userUpdate), async (context) => {
    const id = pathId(context, 'User')
    const { name, role, rate_limit_per_minute: rateLimitPerMinute, disabled } = context.req.valid('json')
    const values = { name, role, rateLimitPerMinute, disabled }
    return context.json(presentMember(await changeMember(changeScope(context), id, values)))
  })
  .delete(USER, query(noQuery), async (context) => {
    const id = pathId(context, 'User')
    return context.json(presentMember(await changeMember(changeScope(context), id, { disabled: true })))
  })
  .on(['PUT', 'DELETE'], ENTITLEMENT, query(noQuery), async (context) => {
    const id = pathId(context, 'User')
    const name = entitlementParameter(context.req.param('name'))
    const row = await setEntitlement(changeScope(context), id, name, context.req.method === 'PUT')
    return context.json(presentMember(row))
  })

function entitlementParameter(text: string): (typeof ENTITLEMENTS)[number] {
  const name = ENTITLEMENTS.find((known) => known === text)
  if (name === undefined) throw unknownId('Entitlement', text)
  return name
}
