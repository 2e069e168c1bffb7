import { codedRefusal } from '../lib/api-error.ts'
import type { MemberGuards, MemberRow, MemberValues } from './members.store.ts'

/**
 * What a member may change of members: nobody raises its own rights, administrators leave owners alone, and the last owner stays.
 * The administration token is no member, and has no such rules.
 */

/** The member that makes a change. */
export type Author = Pick<MemberRow, 'userId' | 'role'>

/** @throws ApiError `forbidden`. @returns what must hold when the change is made. */
export function checkMemberChange(author: Author, member: MemberRow, values: MemberValues): MemberGuards {
  const isOwner = author.role === 'owner'
  if (values.role !== undefined) checkRole(author, member, values.role)
  checkSubject(author, member)
  const takesAway = values.disabled === true || (values.role !== undefined && values.role !== 'owner')
  return { isNoOwner: !isOwner, leavesOwner: takesAway }
}

function checkRole(author: Author, member: MemberRow, role: MemberRow['role']): void {
  if (author.userId === member.userId) throw refused('Nobody changes their own role.')
  if (author.role !== 'owner') throw refused(`Only an owner gives roles, such as ${role}.`)
}

/** @throws ApiError `forbidden` for an owner, unless another one changes it. */
function checkSubject(author: Author, member: MemberRow): void {
  if (author.role !== 'owner' && member.role === 'owner') throw refused('Only an owner changes an owner.')
}

/** @throws ApiError `forbidden` for a role that the author cannot give. */
export function checkNewMember(author: Author, role: MemberRow['role']): void {
  if (author.role !== 'owner' && role !== 'member')
    throw refused(`Only an owner gives roles, such as ${role}.`)
}

/** @throws ApiError `forbidden` for the author itself. */
export function checkEntitlement(author: Author, userId: string): void {
  if (author.userId === userId) throw refused('Nobody changes their own entitlements.')
}

/** @throws ApiError `forbidden` for a link that would let the author take over somebody who has signed in. */
export function checkSetupLink(author: Author, member: MemberRow, hasSignedIn: boolean): void {
  checkSubject(author, member)
  if (author.role !== 'owner' && hasSignedIn)
    throw refused('Only an owner makes a setup link for a user that has signed in before.')
}

/** @throws ApiError `forbidden` for another person: acting for it would be impersonation. */
export function checkActsFor(author: Author, member: MemberRow): void {
  if (author.userId !== member.userId && member.kind !== 'service')
    throw refused('This can be made for yourself and for service accounts, not for another person.')
}

const refused = (message: string) => codedRefusal('forbidden', 'permission_missing', message)
