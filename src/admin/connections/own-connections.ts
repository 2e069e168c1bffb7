/** What members do with connections that they manage. Administrators do the same through `administration.ts`. */

import type { Principal } from '../../identity/principal.ts'
import type { BrokerDeps } from '../../integrations/brokers/broker.ts'
import { type Administration, conflict } from '../../ledger/changes/audited-change.ts'
import { ApiError, notFound } from '../../lib/api-error.ts'
import { redactEncoded } from '../../lib/log.ts'
import { startConnect } from './connect/start-connect.ts'
import { type ConnectionRow, type Permission, selectConnection } from './connections.store.ts'
import { removeConnection, shareConnection, unshareConnection } from './connections.ts'
import { isManagedBy } from './managed-by.ts'

/** The caller, whose changes these are. */
export interface Managing {
  administration: Administration
  principal: Principal
  connectionId: string
}

/**
 * Begins to connect the account again. Whoever manages the connection connects an account of its own choice.
 * @param origin of this gateway, as browsers reach it.
 * @throws ApiError not_found for a connection that the caller cannot see; forbidden for one that it does not manage;
 *   unprocessable for one that an administrator has revoked; what `startConnect` throws.
 */
export async function reconnect(
  managing: Managing,
  deps: BrokerDeps,
  origin: string,
): Promise<{ url: string; expiresAt: Date }> {
  const { id, status } = await managedConnection(managing)
  if (status === 'revoked') throw conflict('An administrator has revoked the connection.')
  const { administration, principal } = managing
  return startConnect(administration, deps, id, { userId: principal.userId, origin })
}

/** Deletes the connection for everybody. @throws ApiError as `reconnect`; what `removeConnection` throws. */
export async function disconnect(managing: Managing, deps: BrokerDeps): Promise<void> {
  const { id } = await managedConnection(managing)
  await removeConnection(managing.administration, deps, id)
}

/**
 * Shares the connection with a group of the caller, or changes the permission.
 * @throws ApiError as `reconnect`; not_found for a group that the caller is no member of.
 */
export async function shareWithOwnGroup(
  managing: Managing,
  groupId: string,
  permission: Permission,
): Promise<ConnectionRow> {
  const { id } = await managedConnection(managing)
  const { administration, principal } = managing
  if (!principal.groupIds.includes(groupId)) throw notFound('Group', redactEncoded(groupId.slice(0, 100)))
  return shareConnection(administration, id, groupId, permission)
}

/** Ends a share with any group. @throws ApiError as `reconnect`; not_found for an unknown group. */
export async function endShare(managing: Managing, groupId: string): Promise<ConnectionRow> {
  const { id } = await managedConnection(managing)
  return unshareConnection(managing.administration, id, groupId)
}

async function managedConnection({
  administration,
  principal,
  connectionId,
}: Managing): Promise<ConnectionRow> {
  const connection = await selectConnection(administration, connectionId)
  if (connection === null || !isVisibleTo(connection, principal)) {
    throw notFound('Connection', redactEncoded(connectionId.slice(0, 100)))
  }
  if (isManagedBy(connection, principal)) return connection
  const message = `The caller may use the connection ${connectionId}, and not manage it.`
  throw new ApiError('forbidden', message, { code: 'connection_not_managed' })
}

/** As in the list of connections. */
const isVisibleTo = ({ ownerUserId, shares }: ConnectionRow, { userId, groupIds }: Principal): boolean =>
  ownerUserId === null ||
  ownerUserId === userId ||
  shares.some(({ group_id: groupId }) => groupIds.includes(groupId))
