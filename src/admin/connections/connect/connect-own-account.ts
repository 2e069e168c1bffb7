import type { Principal } from '../../../identity/principal.ts'
import type { BrokerDeps } from '../../../integrations/brokers/broker.ts'
import { selectVisible } from '../../../integrations/connections/connections.store.ts'
import type { Integration } from '../../../integrations/types.ts'
import { createConnection } from '../connections.ts'
import type { Manager } from '../manager.ts'
import { startConnect } from './start-connect.ts'

/**
 * Begins to connect an account of the caller: again, where it has a connection that waits for it, else a new one.
 * @param manager the caller. @param origin of this gateway, as browsers reach it.
 * @throws ApiError as `startConnect`; unprocessable for an integration whose credentials administrators give.
 */
export async function connectOwnAccount(
  manager: Manager & { member: Principal },
  deps: BrokerDeps,
  { integration, origin }: { integration: Integration; origin: string },
): Promise<{ connectionId: string; url: string; expiresAt: Date }> {
  const { scope, member } = manager
  const { userId } = member
  const visible = await selectVisible(deps.database, member, { integrationId: integration.id })
  const own = visible.filter(({ ownerUserId }) => ownerUserId === userId)
  const waiting = own.find(({ status }) => status === 'needs_reauth' || status === 'pending')
  const connectionId = waiting?.id ?? (await newConnection(scope, userId, integration))
  const started = await startConnect(manager, deps, connectionId, { origin })
  return { connectionId, ...started }
}

async function newConnection(
  scope: Manager['scope'],
  ownerUserId: string,
  { slug, displayName }: Integration,
): Promise<string> {
  const values = { slug, displayName, ownerUserId, broker: 'local' as const, credential: undefined }
  const { id } = await createConnection(scope, values)
  return id
}
