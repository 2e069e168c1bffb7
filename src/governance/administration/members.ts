import { notFound } from '../../lib/api-error.ts'
import type { Page, PageRequest } from '../../wire/page-cursor.ts'
import type { Entitlement, Role } from '../principal.ts'
import { type Administration, audited, conflict } from './administration.ts'
import {
  deleteEntitlement,
  insertEntitlement,
  insertMember,
  type MemberRow,
  type MemberValues,
  selectHasOtherMemberships,
  selectMember,
  selectMembers,
  selectUserIdByEmail,
  updateMember,
} from './members.store.ts'
import { publishRights } from './propagation.ts'

export type { MemberRow } from './members.store.ts'

/**
 * Makes somebody a member of an organization. An address that is known already stays the same user with the name it
 * has. Names and addresses stay out of the audit record, which is kept for good.
 * @throws ApiError `unprocessable` when the user is a member already.
 */
export async function addMember(
  administration: Administration,
  organizationId: string,
  member: { email: string; name: string; role: Role; rateLimitPerMinute: number | null },
): Promise<MemberRow> {
  const userId = (await selectUserIdByEmail(administration.database, member.email)) ?? crypto.randomUUID()
  if ((await selectMember(administration.database, organizationId, userId)) !== null) {
    throw conflict('This address belongs to a member of the organization already.')
  }
  await audited(
    administration,
    {
      organizationId,
      action: 'user.created',
      resource: `users/${userId}`,
      detail: { role: member.role, rate_limit_per_minute: member.rateLimitPerMinute },
    },
    () => insertMember(administration.database, organizationId, { ...member, userId }),
  )
  return readMember(administration, organizationId, userId)
}

export function listMembers(
  administration: Administration,
  organizationId: string,
  filter: { email?: string | undefined },
  page: PageRequest,
): Promise<Page<MemberRow>> {
  return selectMembers(administration.database, organizationId, filter, page)
}

/** @throws ApiError `not_found` for a user of another organization, too. */
export async function readMember(
  administration: Administration,
  organizationId: string,
  userId: string,
): Promise<MemberRow> {
  const row = await selectMember(administration.database, organizationId, userId)
  if (row === null) throw notFound('User', userId)
  return row
}

/**
 * Changes role, limit, name or whether the membership is disabled. A disabled member's keys fail on the next call.
 * @throws ApiError `not_found`; `unprocessable` for the name of a user that other organizations share.
 */
export async function changeMember(
  administration: Administration,
  organizationId: string,
  userId: string,
  values: MemberValues,
): Promise<MemberRow> {
  await readMember(administration, organizationId, userId)
  if (
    values.name !== undefined &&
    (await selectHasOtherMemberships(administration.database, organizationId, userId))
  ) {
    throw conflict(
      'The name of a user that belongs to several organizations cannot be changed by one of them.',
    )
  }
  const epoch = await audited(
    administration,
    {
      organizationId,
      action: values.disabled === true ? 'user.disabled' : 'user.updated',
      resource: `users/${userId}`,
      detail: {
        name_changed: values.name !== undefined,
        role: values.role,
        rate_limit_per_minute: values.rateLimitPerMinute,
        disabled: values.disabled,
      },
    },
    () => updateMember(administration.database, organizationId, userId, values),
  )
  await publishRights(administration, organizationId, epoch)
  return readMember(administration, organizationId, userId)
}

/** Gives or takes a named right. Repeating either changes nothing. @throws ApiError `not_found`. */
export async function setEntitlement(
  administration: Administration,
  organizationId: string,
  userId: string,
  name: Entitlement,
  held: boolean,
): Promise<MemberRow> {
  await readMember(administration, organizationId, userId)
  const store = held ? insertEntitlement : deleteEntitlement
  const epoch = await audited(
    administration,
    {
      organizationId,
      action: held ? 'entitlement.granted' : 'entitlement.revoked',
      resource: `users/${userId}`,
      detail: { entitlement: name },
    },
    () => store(administration.database, organizationId, userId, name),
  )
  await publishRights(administration, organizationId, epoch)
  return readMember(administration, organizationId, userId)
}
