import { selectMembers } from '../../../admin/members.store.ts'
import { addMember, changeMember, readMember, setEntitlement } from '../../../admin/members.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { pageRequest } from './administration.ts'
import type { HandlersOf } from './mount-endpoints.ts'
import { presentMember } from './present-member.ts'

export const userHandlers: HandlersOf<'users'> = {
  'users.list': async ({ administration, query: { email, ...paging } }) =>
    listBody(await selectMembers(administration, { email }, pageRequest(paging)), presentMember),
  'users.create': async ({ administration, body }) => {
    const { rate_limit_per_minute: rateLimitPerMinute = null, ...values } = body
    return presentMember(await addMember(administration, { ...values, rateLimitPerMinute }))
  },
  'users.show': async ({ administration, path }) =>
    presentMember(await readMember(administration, path.userId)),
  'users.change': async ({ administration, path, body }) => {
    const { rate_limit_per_minute: rateLimitPerMinute, ...values } = body
    return presentMember(await changeMember(administration, path.userId, { ...values, rateLimitPerMinute }))
  },
  'users.disable': async ({ administration, path }) =>
    presentMember(await changeMember(administration, path.userId, { disabled: true })),
  'users.entitle': async ({ administration, path }) =>
    presentMember(await setEntitlement(administration, path.userId, path.entitlement, true)),
  'users.withdraw': async ({ administration, path }) =>
    presentMember(await setEntitlement(administration, path.userId, path.entitlement, false)),
}
