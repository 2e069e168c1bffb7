import type { Entitlement } from '../identity/principal.ts'
import { audited, type ChangeScope, changeRights, conflict } from '../ledger/changes/audited-change.ts'
import { notFound } from '../lib/api-error.ts'
import { OPERATOR } from '../wire/endpoints/permissions.ts'
import { selectOpenErasure } from './erasure/erasures.store.ts'
import { type Author, checkNotItself } from './member-rules.ts'
import {
  deleteEntitlement,
  insertEntitlement,
  insertMember,
  type MemberGuards,
  type MemberRow,
  type MemberValues,
  selectHasOtherMemberships,
  selectMember,
  selectUserByEmail,
  updateMember,
} from './members.store.ts'

/**
 * Adds a member to the organization. An address that is known already stays the same user with the name it has. Names
 * and addresses stay out of the audit record, which is permanent.
 * @param author the member that does it; null for the administration token.
 * @throws ApiError `unprocessable` when the user is a member already, and when it is being erased; `forbidden` for an operator that adds itself.
 */
export async function addMember(
  scope: ChangeScope,
  member: Pick<MemberRow, 'email' | 'name' | 'kind' | 'role' | 'rateLimitPerMinute'>,
  author: Author | null,
): Promise<MemberRow> {
  const known = await selectUserByEmail(scope.database, member.email)
  const userId = known?.id ?? crypto.randomUUID()
  if ((await selectMember(scope, userId)) !== null) {
    throw conflict('This address belongs to a member of the organization already.')
  }
  // No erasure begins of a user without a membership.
  if (known !== null) await checkNoErasure(scope, userId)
  if (author !== null) checkNotItself(author, userId)
  if (known !== null && known.kind !== member.kind) {
    throw conflict(
      `This address belongs to a ${known.kind === 'service' ? 'service account' : 'person'} already.`,
    )
  }
  const detail = { kind: member.kind, role: member.role, rate_limit_per_minute: member.rateLimitPerMinute }
  await audited(scope, { action: 'user.created', resource: `users/${userId}`, detail }, () =>
    insertMember(scope, { ...member, userId }),
  )
  return readMember(scope, userId)
}

/** @throws ApiError `not_found` for a user of another organization, too. */
export async function readMember(scope: ChangeScope, userId: string): Promise<MemberRow> {
  const row = await selectMember(scope, userId)
  if (row === null) throw notFound('User', userId)
  return row
}

/**
 * Changes role, limit, name or whether the membership is disabled. A disabled member's keys fail on the next call.
 * @param guards what must hold when the change is made, for a change by a member.
 * @throws ApiError `not_found`; `unprocessable` for the name of a user that other organizations share, for enabling one that is being
 *   erased, and where a guard refuses.
 */
export async function changeMember(
  scope: ChangeScope,
  userId: string,
  values: MemberValues,
  guards: MemberGuards = {},
): Promise<MemberRow> {
  await readMember(scope, userId)
  if (values.name !== undefined && (await selectHasOtherMemberships(scope, userId))) {
    throw conflict(
      'The name of a user that belongs to several organizations cannot be changed by one of them.',
    )
  }
  const detail = {
    name_changed: values.name !== undefined,
    role: values.role,
    rate_limit_per_minute: values.rateLimitPerMinute,
    disabled: values.disabled,
  }
  const action = values.disabled === true ? 'user.disabled' : 'user.updated'
  await changeRights(scope, { action, resource: `users/${userId}`, detail }, async () => {
    const change = await updateMember(scope, userId, values, guards)
    if (change.result.length === 0) {
      if (values.disabled === false) await checkNoErasure(scope, userId)
      throw conflict('The last owner stays; or the user has become an owner meanwhile.')
    }
    return change
  })
  return readMember(scope, userId)
}

/** @throws ApiError `unprocessable` for a user whose data is being erased: it stays disabled, and is not added again, until that ends. */
async function checkNoErasure(scope: ChangeScope, userId: string): Promise<void> {
  const erasure = await selectOpenErasure(scope, userId)
  if (erasure !== null)
    throw conflict(`The data of this user is being erased (${erasure.id}), which cannot be undone.`)
}

/**
 * Gives or takes a named right. Repeating either changes nothing. Passkeys, sessions and setup links of a new operator end: somebody
 * else of the organization may have made them, who must not become an operator.
 * @throws ApiError `not_found`; `unprocessable` for a service account as an operator.
 */
export async function setEntitlement(
  scope: ChangeScope,
  userId: string,
  name: Entitlement,
  granted: boolean,
): Promise<MemberRow> {
  const member = await readMember(scope, userId)
  if (granted && name === OPERATOR && member.kind === 'service')
    throw conflict(`User ${userId} is a service account, which cannot sign in.`)
  const store = granted ? insertEntitlement : deleteEntitlement
  const action = granted ? 'entitlement.granted' : 'entitlement.revoked'
  await changeRights(scope, { action, resource: `users/${userId}`, detail: { entitlement: name } }, () =>
    store(scope, userId, name),
  )
  return readMember(scope, userId)
}
