import type { BrokerDeps } from '../../../integrations/brokers/broker.ts'
import { BROKERS } from '../../../integrations/brokers/brokers.ts'
import { type Administration, changeRights, conflict } from '../../../ledger/changes/audited-change.ts'
import { type ConnectionRow, selectConnection, updateConnection } from '../connections.store.ts'
import { asApiError } from '../connections.ts'
import { type ConnectSession, endSession, selectLastSession } from './connect-sessions.store.ts'

/** The last attempt to connect the account of a connection, as it can be polled. */
export interface ConnectStatus {
  status: ConnectSession['status']
  /** Why it failed, as a code. */
  failure: string | null
  expiresAt: Date
}

/**
 * The last attempt to connect an account; null before the first. Where the broker has the return page, it is read whether the
 * person has finished, and the connection becomes active then.
 * @throws ApiError upstream while the broker does not answer.
 */
export async function connectStatus(
  administration: Administration,
  deps: BrokerDeps,
  connection: ConnectionRow,
): Promise<ConnectStatus | null> {
  const { database, organizationId, clock } = administration
  const session = await selectLastSession(database, organizationId, connection.id)
  if (session === null) return null
  if (session.status === 'pending' && (await completeAtBroker(administration, deps, connection, session))) {
    return { status: 'completed', failure: null, expiresAt: session.expiresAt }
  }
  const isOver = session.status === 'pending' && session.expiresAt.getTime() <= clock()
  return {
    status: isOver ? 'expired' : session.status,
    failure: session.failure,
    expiresAt: session.expiresAt,
  }
}

async function completeAtBroker(
  administration: Administration,
  deps: BrokerDeps,
  { id, broker }: ConnectionRow,
  session: ConnectSession,
): Promise<boolean> {
  const finished = await asApiError(() => BROKERS[broker].finishedConnect(deps, session.id, session.slug))
  if (finished === null) return false
  const detail = { user_id: session.userId, integration: session.slug }
  await changeRights(
    administration,
    { action: 'connection.connected', resource: `connections/${id}`, detail },
    async () => {
      const before = await selectConnection(administration, id)
      const changes = { status: 'active' as const, ...finished }
      const updated = before && (await updateConnection(administration, id, before, changes))
      if (!updated || updated.result.length === 0) throw conflict('The connection was changed meanwhile.')
      return updated
    },
  )
  await endSession(administration.database, session, null)
  return true
}
