import { type ChangeScope, changeRights, conflict } from '../../../ledger/changes/audited-change.ts'
import { type ConnectionChanges, selectConnection, updateConnection } from '../connections.store.ts'
import { mayConnect } from '../manager.ts'
import type { ConnectSession } from './connect-sessions.store.ts'

/**
 * Whether the person of a session may still connect the account: its rights to the connection may have ended since the session
 * began.
 */
export async function mayComplete(
  scope: ChangeScope,
  { connectionId, userId }: ConnectSession,
): Promise<boolean> {
  const connection = await selectConnection(scope, connectionId)
  return connection !== null && mayConnect(scope, connection, userId)
}

/**
 * Makes a connection active with what a session has brought.
 * @throws ApiError unprocessable for a connection that was removed or changed meanwhile, and for one that the person does not
 *   manage any more.
 */
export async function completeConnect(
  scope: ChangeScope,
  { connectionId, userId, slug }: ConnectSession,
  brought: Pick<ConnectionChanges, 'credential' | 'upstreamConnectionId'>,
): Promise<void> {
  const before = await selectConnection(scope, connectionId)
  if (before === null) throw conflict('The connection was removed meanwhile.')
  if (!(await mayConnect(scope, before, userId))) {
    throw conflict('The connection is no longer managed by this user.')
  }
  await changeRights(
    scope,
    {
      action: 'connection.connected',
      resource: `connections/${connectionId}`,
      detail: { user_id: userId, integration: slug },
    },
    async () => {
      const changes = { status: 'active' as const, ...brought }
      const updated = await updateConnection(scope, connectionId, before, changes)
      if (updated.result.length === 0) throw conflict('The connection was changed meanwhile.')
      return updated
    },
  )
}
