import type { Entitlement, Role } from '../identity/principal.ts'
import { audited, type ChangeScope, changeRights, conflict } from '../ledger/changes/audited-change.ts'
import { notFound } from '../lib/api-error.ts'
import {
  deleteEntitlement,
  insertEntitlement,
  insertMember,
  type MemberRow,
  type MemberValues,
  selectHasOtherMemberships,
  selectMember,
  selectUserIdByEmail,
  updateMember,
} from './members.store.ts'

/**
 * Adds a member to the organization. An address that is known already stays the same user with the name it has. Names
 * and addresses stay out of the audit record, which is permanent.
 * @throws ApiError `unprocessable` when the user is a member already.
 */
export async function addMember(
  scope: ChangeScope,
  member: { email: string; name: string; role: Role; rateLimitPerMinute: number | null },
): Promise<MemberRow> {
  const userId = (await selectUserIdByEmail(scope.database, member.email)) ?? crypto.randomUUID()
  if ((await selectMember(scope, userId)) !== null) {
    throw conflict('This address belongs to a member of the organization already.')
  }
  const detail = { role: member.role, rate_limit_per_minute: member.rateLimitPerMinute }
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
 * @throws ApiError `not_found`; `unprocessable` for the name of a user that other organizations share.
 */
export async function changeMember(
  scope: ChangeScope,
  userId: string,
  values: MemberValues,
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
  await changeRights(scope, { action, resource: `users/${userId}`, detail }, () =>
    updateMember(scope, userId, values),
  )
  return readMember(scope, userId)
}

/** Gives or takes a named right. Repeating either changes nothing. @throws ApiError `not_found`. */
export async function setEntitlement(
  scope: ChangeScope,
  userId: string,
  name: Entitlement,
  granted: boolean,
): Promise<MemberRow> {
  await readMember(scope, userId)
  const store = granted ? insertEntitlement : deleteEntitlement
  const action = granted ? 'entitlement.granted' : 'entitlement.revoked'
  await changeRights(scope, { action, resource: `users/${userId}`, detail: { entitlement: name } }, () =>
    store(scope, userId, name),
  )
  return readMember(scope, userId)
}
