import { Hono } from 'hono'
import {
  addMember,
  changeMember,
  listMembers,
  readMember,
  setEntitlement,
} from '../../../governance/administration/members.ts'
import { ENTITLEMENTS, noQuery, userCreation, userListQuery, userUpdate } from '../../../wire/management.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppEnv } from '../../context.ts'
import { jsonBody, query, unknownId } from '../../validated-request.ts'
import { presentMember } from './present-member.ts'
import { administrationOf, idParameter, pageRequest } from './request.ts'

const USERS = '/organizations/:organizationId/users'
const USER = '/organizations/:organizationId/users/:userId'
const ENTITLEMENT = '/organizations/:organizationId/users/:userId/entitlements/:name'

export const userRoutes = new Hono<AppEnv>()
  .get(USERS, query(userListQuery), async (context) => {
    const { organizationId } = context.req.param()
    const parameters = context.req.valid('query')
    const page = await listMembers(
      administrationOf(context),
      organizationId,
      { email: parameters.email },
      pageRequest(parameters),
    )
    return context.json(listBody(page, presentMember))
  })
  .post(USERS, query(noQuery), jsonBody(userCreation), async (context) => {
    const { organizationId } = context.req.param()
    const { email, name, role, rate_limit_per_minute: rateLimitPerMinute = null } = context.req.valid('json')
    const member = { email, name, role, rateLimitPerMinute }
    return context.json(
      presentMember(await addMember(administrationOf(context), organizationId, member)),
      201,
    )
  })
  .get(USER, query(noQuery), async (context) => {
    const { organizationId, userId } = context.req.param()
    const row = await readMember(administrationOf(context), organizationId, idParameter('User', userId))
    return context.json(presentMember(row))
  })
  .put(USER, query(noQuery), jsonBody(userUpdate), async (context) => {
    const { organizationId, userId } = context.req.param()
    const { name, role, rate_limit_per_minute: rateLimitPerMinute, disabled } = context.req.valid('json')
    const row = await changeMember(administrationOf(context), organizationId, idParameter('User', userId), {
      name,
      role,
      rateLimitPerMinute,
      disabled,
    })
    return context.json(presentMember(row))
  })
  .delete(USER, query(noQuery), async (context) => {
    const { organizationId, userId } = context.req.param()
    const row = await changeMember(administrationOf(context), organizationId, idParameter('User', userId), {
      disabled: true,
    })
    return context.json(presentMember(row))
  })
  .put(ENTITLEMENT, query(noQuery), async (context) => {
    const { organizationId, userId, name } = context.req.param()
    const row = await setEntitlement(
      administrationOf(context),
      organizationId,
      idParameter('User', userId),
      entitlementParameter(name),
      true,
    )
    return context.json(presentMember(row))
  })
  .delete(ENTITLEMENT, query(noQuery), async (context) => {
    const { organizationId, userId, name } = context.req.param()
    const row = await setEntitlement(
      administrationOf(context),
      organizationId,
      idParameter('User', userId),
      entitlementParameter(name),
      false,
    )
    return context.json(presentMember(row))
  })

function entitlementParameter(text: string): (typeof ENTITLEMENTS)[number] {
  const name = ENTITLEMENTS.find((known) => known === text)
  if (name === undefined) throw unknownId('Entitlement', text)
  return name
}
