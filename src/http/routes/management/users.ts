import { selectMembers } from '../../../admin/members.store.ts'
import { addMember, changeMember, readMember, setEntitlement } from '../../../admin/members.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { pageRequest } from './change-scope.ts'
import type { HandlersOf } from './mount-endpoints.ts'
import { presentMember } from './present-member.ts'

export const userHandlers: HandlersOf<'users'> = {
  'users.list': async ({ scope, query: { email, ...paging } }) =>
    listBody(await selectMembers(scope, { email }, pageRequest(paging)), presentMember),
  'users.create': async ({ scope, body }) => {
    const { rate_limit_per_minute: rateLimitPerMinute = null, ...values } = body
    return presentMember(await addMember(scope, { ...values, rateLimitPerMinute }))
  },
  'users.show': async ({ scope, path }) => presentMember(await readMember(scope, path.userId)),
  'users.change': async ({ scope, path, body }) => {
    const { rate_limit_per_minute: rateLimitPerMinute, ...values } = body
    return presentMember(await changeMember(scope, path.userId, { ...values, rateLimitPerMinute }))
  },
  'users.disable': async ({ scope, path }) =>
    presentMember(await changeMember(scope, path.userId, { disabled: true })),
  'users.entitle': async ({ scope, path }) =>
    presentMember(await setEntitlement(scope, path.userId, path.entitlement, true)),
  'users.withdraw': async ({ scope, path }) =>
    presentMember(await setEntitlement(scope, path.userId, path.entitlement, false)),
}
