import type { BrokerDeps } from '../../../integrations/brokers/broker.ts'
import { BROKERS } from '../../../integrations/brokers/brokers.ts'
import { selectIntegration } from '../../../integrations/catalogue/tool-catalogue.store.ts'
import { openClientSecret } from '../../../integrations/vault/client-secret.ts'
import { audited, type ChangeScope, conflict } from '../../../ledger/changes/audited-change.ts'
import { unprocessable } from '../../../lib/api-error.ts'
import { seal, sha256Hex } from '../../../lib/crypto.ts'
import { randomBase62 } from '../../../lib/ids.ts'
import { readMember } from '../../members.ts'
import { type ConnectionRow, selectClientSecret } from '../connections.store.ts'
import { asApiError } from '../connections.ts'
import { type Manager, managedConnection, mayConnect } from '../manager.ts'
import { insertSession } from './connect-sessions.store.ts'

/** Binds the state of a session to it. */
export const sessionContext = (organizationId: string, sessionId: string) =>
  `connect-session:${organizationId}:${sessionId}`

/**
 * Begins to connect the account of a connection: returns a link for the person whose account it is. A new link ends the one
 * before. Members connect accounts of their own.
 * @param userId the user that may finish the link of an administrator: for a connection of a user its owner (also null), or a
 *   member that manages it. @param origin of this gateway, as browsers reach it.
 * @throws ApiError as `managedConnection`; unprocessable for a user that may not finish it, or a missing user; unprocessable
 *   for an integration without this way to connect accounts, and to a member for a revoked connection; upstream while a server
 *   does not answer.
 */
export async function startConnect(
  manager: Manager,
  deps: BrokerDeps,
  connectionId: string,
  { userId = null, origin }: { userId?: string | null; origin: string },
): Promise<{ url: string; expiresAt: Date }> {
  const { scope, member } = manager
  const connection = await managedConnection(manager, connectionId)
  if (member !== null && connection.status === 'revoked') {
    throw conflict('An administrator has revoked the connection.')
  }
  const person = await personOf(scope, connection, member?.userId ?? userId)
  const integration = await selectIntegration(scope.database, scope.organizationId, { slug: connection.slug })
  if (integration === null) throw conflict('The integration of the connection was removed.')
  const secret = randomBase62(43)
  const sessionId = sha256Hex(secret)
  const clientSecret = await configuredSecret(scope, integration.id)
  const attempt = { sessionId, secret, integration, clientSecret, origin }
  const started = await asApiError(() => BROKERS[connection.broker].startConnect(deps, attempt))
  const { organizationId, vaultRing } = scope
  const session = {
    ...{ id: sessionId, organizationId, connectionId, userId: person, expiresAt: started.expiresAt },
    sealedState:
      started.state === null
        ? null
        : seal(vaultRing, started.state, sessionContext(organizationId, sessionId)),
  }
  await audited(
    scope,
    {
      action: 'connection.connect_started',
      resource: `connections/${connectionId}`,
      detail: { user_id: person, integration: connection.slug },
    },
    () => insertSession(scope.database, session),
  )
  return { url: started.url, expiresAt: started.expiresAt }
}

async function personOf(
  scope: ChangeScope,
  connection: ConnectionRow,
  userId: string | null,
): Promise<string> {
  const { ownerUserId } = connection
  const person = userId ?? ownerUserId
  if (person === null) {
    throw unprocessable(
      'user_id: is required for a connection of the organization: who connects the account.',
    )
  }
  const { disabledAt } = await readMember(scope, person)
  if (!(await mayConnect(scope, connection, person))) {
    throw unprocessable(
      'user_id: only its owner, or a member of a group that manages it, connects its account.',
    )
  }
  if (disabledAt !== null) throw conflict('The user is disabled, and cannot connect an account.')
  return person
}

async function configuredSecret(scope: ChangeScope, integrationId: string): Promise<string | null> {
  const sealed = await selectClientSecret(scope, integrationId)
  return sealed === null ? null : openClientSecret(scope.vaultRing, integrationId, sealed)
}
