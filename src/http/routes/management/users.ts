import { exportPerson } from '../../../admin/erasure/export-person.ts'
import { checkEntitlement, checkMemberChange, checkNewMember } from '../../../admin/member-rules.ts'
import { type MemberValues, selectMembers } from '../../../admin/members.store.ts'
import { addMember, changeMember, readMember, setEntitlement } from '../../../admin/members.ts'
import { createSetupLink } from '../../../admin/sign-in/setup-links.ts'
import type { Entitlement } from '../../../identity/principal.ts'
import type { ChangeScope } from '../../../ledger/changes/audited-change.ts'
import { notFound } from '../../../lib/api-error.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppContext } from '../../context.ts'
import { pageRequest } from './change-scope.ts'
import { lineAnswer } from './line-answer.ts'
import type { HandlersOf } from './mount-endpoints.ts'
import { presentMember } from './present-member.ts'
import { authorOf, requireRecentSignIn } from './require-permission.ts'

async function changed(context: AppContext, scope: ChangeScope, userId: string, values: MemberValues) {
  const author = authorOf(context, values.disabled === true ? 'users.disable' : 'users.change')
  const guards = author ? checkMemberChange(author, await readMember(scope, userId), values) : {}
  return presentMember(await changeMember(scope, userId, values, guards))
}

async function entitled(
  { context, scope, path }: { context: AppContext; scope: ChangeScope; path: EntitlementPath },
  isGiven: boolean,
) {
  const author = authorOf(context, 'users.entitle')
  if (author) checkEntitlement(author, path.userId, path.entitlement)
  return presentMember(await setEntitlement(scope, path.userId, path.entitlement, isGiven))
}

interface EntitlementPath {
  userId: string
  entitlement: Entitlement
}

export const userHandlers: HandlersOf<'users'> = {
  'users.list': async ({ scope, own, query: { email, ...paging } }) =>
    listBody(
      await selectMembers(scope, { email, userId: own ?? undefined }, pageRequest(paging)),
      presentMember,
    ),
  'users.create': async ({ context, scope, body }) => {
    const { rate_limit_per_minute: rateLimitPerMinute = null, ...values } = body
    const author = authorOf(context, 'users.create')
    if (author) checkNewMember(author, values.role)
    return presentMember(await addMember(scope, { ...values, rateLimitPerMinute }, author))
  },
  'users.show': async ({ scope, own, path }) => {
    if (own !== null && own !== path.userId) throw notFound('User', path.userId)
    return presentMember(await readMember(scope, path.userId))
  },
  'users.change': ({ context, scope, path, body }) => {
    if (body.role !== undefined) requireRecentSignIn(context)
    const { rate_limit_per_minute: rateLimitPerMinute, ...values } = body
    return changed(context, scope, path.userId, { ...values, rateLimitPerMinute })
  },
  'users.disable': ({ context, scope, path }) => changed(context, scope, path.userId, { disabled: true }),
  'users.setup-link': async ({ context, scope, path }) => {
    const { token, expiresAt } = await createSetupLink(
      scope,
      path.userId,
      authorOf(context, 'users.setup-link'),
    )
    return { token, expires_at: expiresAt }
  },
  'users.export': async ({ context, scope, path }) => {
    const parts = await exportPerson(context.var.deps, scope, path.userId)
    return lineAnswer(parts)
  },
  'users.entitle': (call) => entitled(call, true),
  'users.withdraw': (call) => entitled(call, false),
}
