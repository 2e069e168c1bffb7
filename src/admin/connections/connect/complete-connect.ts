import { type Administration, changeRights, conflict } from '../../../ledger/changes/audited-change.ts'
import { type ConnectionChanges, selectConnection, updateConnection } from '../connections.store.ts'
import { mayConnect } from '../manager.ts'
import type { ConnectSession } from './connect-sessions.store.ts'

/**
 * Whether the person of a session may still connect the account: its rights to the connection may have ended since the session
 * began.
 */
export async function mayComplete(
  administration: Administration,
  { connectionId, userId }: ConnectSession,
): Promise<boolean> {
  const connection = await selectConnection(administration, connectionId)
  return connection !== null && mayConnect(administration, connection, userId)
}

/**
 * Makes a connection active with what a session has brought.
 * @throws ApiError unprocessable for a connection that was removed or changed meanwhile, and for one that the person does not
 *   manage any more.
 */
export async function completeConnect(
  administration: Administration,
  { connectionId, userId, slug }: ConnectSession,
  brought: Pick<ConnectionChanges, 'credential' | 'upstreamConnectionId'>,
): Promise<void> {
  const before = await selectConnection(administration, connectionId)
  if (before === null) throw conflict('The connection was removed meanwhile.')
  if (!(await mayConnect(administration, before, userId))) {
    throw conflict('The connection is no longer managed by this user.')
  }
  await changeRights(
    administration,
    {
      action: 'connection.connected',
      resource: `connections/${connectionId}`,
      detail: { user_id: userId, integration: slug },
    },
    async () => {
      const changes = { status: 'active' as const, ...brought }
      const updated = await updateConnection(administration, connectionId, before, changes)
      if (updated.result.length === 0) throw conflict('The connection was changed meanwhile.')
      return updated
    },
  )
}
