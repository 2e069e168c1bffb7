import type { Entitlement, Role } from '../identity/principal.ts'
import { type Administration, audited, changeRights, conflict } from '../ledger/changes/audited-change.ts'
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
  administration: Administration,
  member: { email: string; name: string; role: Role; rateLimitPerMinute: number | null },
): Promise<MemberRow> {
  const userId = (await selectUserIdByEmail(administration.database, member.email)) ?? crypto.randomUUID()
  if ((await selectMember(administration, userId)) !== null) {
    throw conflict('This address belongs to a member of the organization already.')
  }
  const detail = { role: member.role, rate_limit_per_minute: member.rateLimitPerMinute }
  await audited(administration, { action: 'user.created', resource: `users/${userId}`, detail }, () =>
    insertMember(administration, { ...member, userId }),
  )
  return readMember(administration, userId)
}

/** @throws ApiError `not_found` for a user of another organization, too. */
export async function readMember(administration: Administration, userId: string): Promise<MemberRow> {
  const row = await selectMember(administration, userId)
  if (row === null) throw notFound('User', userId)
  return row
}

/**
 * Changes role, limit, name or whether the membership is disabled. A disabled member's keys fail on the next call.
 * @throws ApiError `not_found`; `unprocessable` for the name of a user that other organizations share.
 */
export async function changeMember(
  administration: Administration,
  userId: string,
  values: MemberValues,
): Promise<MemberRow> {
  await readMember(administration, userId)
  if (values.name !== undefined && (await selectHasOtherMemberships(administration, userId))) {
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
  await changeRights(administration, { action, resource: `users/${userId}`, detail }, () =>
    updateMember(administration, userId, values),
  )
  return readMember(administration, userId)
}

/** Gives or takes a named right. Repeating either changes nothing. @throws ApiError `not_found`. */
export async function setEntitlement(
  administration: Administration,
  userId: string,
  name: Entitlement,
  held: boolean,
): Promise<MemberRow> {
  await readMember(administration, userId)
  const store = held ? insertEntitlement : deleteEntitlement
  const action = held ? 'entitlement.granted' : 'entitlement.revoked'
  await changeRights(
    administration,
    { action, resource: `users/${userId}`, detail: { entitlement: name } },
    () => store(administration, userId, name),
  )
  return readMember(administration, userId)
}
