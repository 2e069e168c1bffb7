/**
 * The manager of a connection: one set of checks for administrators (management API) and for members (public endpoints and tools
 * of the platform).
 */

import type { Principal } from '../../identity/principal.ts'
import type { ChangeScope } from '../../ledger/changes/audited-change.ts'
import { ApiError, notFound } from '../../lib/api-error.ts'
import { redactEncoded } from '../../lib/log.ts'
import { readMember } from '../members.ts'
import { type ConnectionRow, selectConnection } from './connections.store.ts'

/**
 * The user or administrator that makes a change. Administrators manage all connections of their organization, members some of
 * those that they see.
 */
export interface Manager {
  scope: ChangeScope
  /** The member that the change is limited to; null for an administrator. */
  member: Principal | null
}

export const administrator = (scope: ChangeScope): Manager => ({ scope, member: null })

/**
 * A connection that a manager may connect again, delete and share.
 * @throws ApiError not_found for one of another organization, and for one that a member cannot see; forbidden for one that a
 *   member may use, and not manage.
 */
export async function managedConnection({ scope, member }: Manager, id: string): Promise<ConnectionRow> {
  const connection = await selectConnection(scope, id)
  if (connection === null || (member !== null && !isVisibleTo(connection, member))) {
    throw notFound('Connection', redactEncoded(id.slice(0, 100)))
  }
  if (member === null || isManagedBy(connection, member)) return connection
  const message = `The caller may use the connection ${id}, and not manage it.`
  throw new ApiError('forbidden', message, { code: 'connection_not_managed' })
}

/**
 * Whether a user may connect the account of a connection: anyone whom an administrator names for one of the organization, and
 * those that manage one of a user.
 * @throws ApiError not_found for a user that is no member of the organization.
 */
export async function mayConnect(
  scope: ChangeScope,
  connection: ConnectionRow,
  userId: string,
): Promise<boolean> {
  return connection.ownerUserId === null || isManagedBy(connection, await readMember(scope, userId))
}

type Member = Pick<Principal, 'userId' | 'groupIds'>

/** A member manages its own connections, and those that are shared with a group of it to be managed. */
const isManagedBy = ({ ownerUserId, shares }: ConnectionRow, { userId, groupIds }: Member): boolean =>
  ownerUserId === userId ||
  shares.some(({ group_id: groupId, permission }) => permission === 'manage' && groupIds.includes(groupId))

/** The same rule as in the list of connections. */
const isVisibleTo = ({ ownerUserId, shares }: ConnectionRow, { userId, groupIds }: Member): boolean =>
  ownerUserId === null ||
  ownerUserId === userId ||
  shares.some(({ group_id: groupId }) => groupIds.includes(groupId))
