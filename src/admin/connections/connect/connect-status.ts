import type { BrokerDeps } from '../../../integrations/brokers/broker.ts'
import { BROKERS } from '../../../integrations/brokers/brokers.ts'
import type { ChangeScope } from '../../../ledger/changes/audited-change.ts'
import type { ConnectionRow } from '../connections.store.ts'
import { asApiError } from '../connections.ts'
import { completeConnect, mayComplete } from './complete-connect.ts'
import { type ConnectSession, endSession, selectLastSession } from './connect-sessions.store.ts'

/** The last attempt to connect the account of a connection, as it can be polled. */
export interface ConnectStatus {
  status: ConnectSession['status']
  /** Why it failed, as a code. */
  failure: string | null
  expiresAt: Date
}

/**
 * The last attempt to connect an account; null before the first. When the broker has the return page, the broker is asked
 * whether the person has finished; if so, the connection becomes active.
 * @throws ApiError upstream while the broker does not answer.
 */
export async function connectStatus(
  scope: ChangeScope,
  deps: BrokerDeps,
  connection: ConnectionRow,
): Promise<ConnectStatus | null> {
  const { database, organizationId, clock } = scope
  const session = await selectLastSession(database, organizationId, connection.id)
  if (session === null) return null
  const { expiresAt } = session
  if (session.status === 'pending') {
    const ended = await endAtBroker(scope, deps, connection, session)
    if (ended !== null) return { ...ended, expiresAt }
  }
  const isOver = session.status === 'pending' && expiresAt.getTime() <= clock()
  return { status: isOver ? 'expired' : session.status, failure: session.failure, expiresAt }
}

/** Ends a session that the person has finished at the broker; null for one that is not finished. */
async function endAtBroker(
  scope: ChangeScope,
  deps: BrokerDeps,
  { broker }: ConnectionRow,
  session: ConnectSession,
): Promise<Pick<ConnectStatus, 'status' | 'failure'> | null> {
  const finished = await asApiError(() => BROKERS[broker].finishedConnect(deps, session.id, session.slug))
  if (finished === null) return null
  const failure = (await mayComplete(scope, session)) ? null : 'not_stored'
  if (failure === null) await completeConnect(scope, session, finished)
  await endSession(scope.database, session, failure)
  return { status: failure === null ? 'completed' : 'failed', failure }
}
