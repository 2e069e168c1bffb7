import type { Entitlement } from '../identity/principal.ts'
import { codedRefusal } from '../lib/api-error.ts'
import type { AgentDefinition } from '../wire/agents.ts'
import { OPERATOR } from '../wire/endpoints/permissions.ts'
import type { MemberGuards, MemberRow, MemberValues } from './members.store.ts'

/**
 * What a member may change of members: nobody raises its own rights, administrators leave owners alone, and the last owner stays.
 * The administration token is no member, and has no such rules.
 */

/** The member that makes a change. */
export interface Author extends Pick<MemberRow, 'userId' | 'role'> {
  /** Whether it makes it as an operator, who changes members as an owner does. */
  isOperator: boolean
}

/** Whether an author may do what owners do with members. */
export const actsAsOwner = ({ role, isOperator }: Author): boolean => role === 'owner' || isOperator

/** @throws ApiError `forbidden`. @returns what must hold when the change is made. */
export function checkMemberChange(author: Author, member: MemberRow, values: MemberValues): MemberGuards {
  if (values.role !== undefined) checkRole(author, member, values.role)
  checkSubject(author, member)
  if (values.disabled === false && member.disabledAt !== null && isOperator(member))
    throw refused('Only the administration token enables an operator.')
  checkOwnLimit(author, member, values.rateLimitPerMinute)
  const takesAway = values.disabled === true || (values.role !== undefined && values.role !== 'owner')
  return { isNoOwner: !actsAsOwner(author), leavesOwner: takesAway }
}

function checkRole(author: Author, member: MemberRow, role: MemberRow['role']): void {
  if (author.userId === member.userId) throw refused('Nobody changes their own role.')
  if (!actsAsOwner(author)) throw refused(`Only an owner gives roles, such as ${role}.`)
}

/** @throws ApiError `forbidden` for a limit of one's own that is not a lower one. Null is the default, which may be higher. */
function checkOwnLimit(author: Author, member: MemberRow, limit: number | null | undefined): void {
  if (author.userId !== member.userId || limit === undefined || limit === member.rateLimitPerMinute) return
  const isLower = limit !== null && member.rateLimitPerMinute !== null && limit < member.rateLimitPerMinute
  if (!isLower) throw refused('Nobody raises their own rate limit.')
}

/** @throws ApiError `forbidden` for an owner, unless another one changes it. */
function checkSubject(author: Author, member: MemberRow): void {
  if (!actsAsOwner(author) && member.role === 'owner') throw refused('Only an owner changes an owner.')
}

/** @throws ApiError `forbidden` for a role that the author cannot give. */
export function checkNewMember(author: Author, role: MemberRow['role']): void {
  if (!actsAsOwner(author) && role !== 'member') throw refused(`Only an owner gives roles, such as ${role}.`)
}

/** @throws ApiError `forbidden` for an operator that would become a member of another organization. */
export function checkNotItself(author: Author, userId: string): void {
  if (author.userId === userId) throw refused('Nobody adds themselves to an organization.')
}

/** @throws ApiError `forbidden` for the author itself, which would lose the session that it needs. */
export function checkErasure(author: Author, userId: string): void {
  if (author.userId === userId) throw refused('Nobody erases themselves: another owner does.')
}

/** @throws ApiError `forbidden` for the author itself, and for the rights of operators, which no member gives or takes. */
export function checkEntitlement(author: Author, userId: string, entitlement: Entitlement): void {
  if (entitlement === OPERATOR)
    throw refused('Only the administration token makes operators, and takes their rights.')
  if (author.userId === userId) throw refused('Nobody changes their own entitlements.')
}

/**
 * Groups give access to shared connections, and policies name them.
 * @param sharesOthers whether a connection of another person is shared with the group.
 * @throws ApiError `forbidden` for an author that is no owner: for itself, and for a group that would give access to the account of
 * another person.
 */
export function checkGroupMember(author: Author, userId: string, sharesOthers: boolean): void {
  if (author.role === 'owner') return
  if (author.userId === userId) throw refused('Only an owner changes their own groups.')
  if (sharesOthers)
    throw refused('A connection of another person is shared with this group: only an owner adds members.')
}

/**
 * @param isInUse whether the member has signed in, or has keys, connections, agents or entitlements.
 * @throws ApiError `forbidden` for a link that would let the author take over what the member has. Nobody takes over an operator.
 */
export function checkSetupLink(author: Author, member: MemberRow, isInUse: boolean): void {
  checkSubject(author, member)
  if (isOperator(member)) throw refused('Only the administration token makes a setup link for an operator.')
  if (!actsAsOwner(author) && isInUse)
    throw refused(
      'Only an owner makes a setup link for a user that has signed in, or has keys, connections, agents or entitlements.',
    )
}

/** @throws ApiError `forbidden` for another person, since acting for it would be impersonation, and for an owner. */
export function checkActsFor(author: Author, member: MemberRow): void {
  if (author.userId !== member.userId) checkSubject(author, member)
  if (isOtherPerson(author, member))
    throw refused('This can be made for yourself and for service accounts, not for another person.')
}

/**
 * @param owner of the connection; null for one of the organization.
 * @param isRevoked whether the change does nothing but revoke it.
 * @throws ApiError `forbidden` for the connection of another person, which others only revoke and remove.
 */
export function checkConnectionChange(author: Author, owner: MemberRow | null, isRevoked: boolean): void {
  if (owner !== null && isOtherPerson(author, owner) && !isRevoked)
    throw refused('The connection of another person can be revoked and removed, nothing else.')
}

/**
 * Triggers run with the rights of the agent's creator. Without triggers an agent has the rights of whoever calls it.
 * @throws ApiError `forbidden` for a version with triggers that would act for another person.
 */
export function checkAgentChange(
  author: Author,
  creator: MemberRow,
  { triggers }: Pick<AgentDefinition, 'triggers'>,
): void {
  if (triggers.length > 0 && isOtherPerson(author, creator))
    throw refused(
      'The triggers of this agent run with the rights of another person: only that person changes it. It can be removed, or changed to have no triggers.',
    )
}

const isOtherPerson = (author: Author, { userId, kind }: MemberRow): boolean =>
  author.userId !== userId && kind !== 'service'

const isOperator = ({ entitlements }: MemberRow): boolean => entitlements.includes(OPERATOR)

const refused = (message: string) => codedRefusal('forbidden', 'permission_missing', message)
