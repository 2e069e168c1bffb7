import type { Principal } from '../../identity/principal.ts'
import {
  replaceActiveSet,
  selectVisible,
  type VisibleRow,
} from '../../integrations/connections/connections.store.ts'
import { audited, type ChangeScope } from '../../ledger/changes/audited-change.ts'
import { ApiError, notFound } from '../../lib/api-error.ts'
import { redactEncoded } from '../../lib/log.ts'
import { isConnectionId } from '../../wire/connections.ts'

/**
 * Makes a connection the only active one of the caller for its integration (interface: Integration connections, Errors:
 * Connections default-setter).
 * @param slug the integration, by its public id.
 * @throws ApiError not_found for a connection that the caller cannot see; invalid_request for one of another integration;
 * forbidden for one that cannot be used, or whose integration the caller may not use.
 */
export async function setDefaultConnection(
  scope: ChangeScope,
  principal: Principal,
  slug: string,
  connectionId: string,
): Promise<{ integration_config_id: string; connection_id: string }> {
  // A text that is no id may hold what no column can be compared with.
  const [row] = isConnectionId(connectionId)
    ? await selectVisible(scope.database, principal, { connectionId })
    : []
  // A pending or revoked one is in no list.
  if (row === undefined || row.status === 'pending' || row.status === 'revoked') {
    throw notFound('Connection', redactEncoded(connectionId.slice(0, 100)))
  }
  if (row.slug !== slug) {
    const integration = redactEncoded(slug.slice(0, 100))
    const message = `connection_id: the connection ${row.id} does not belong to the integration ${integration}.`
    throw new ApiError('invalid_request', message, { code: 'invalid_connection' })
  }
  refuseUnusable(principal, row)
  const { organizationId, userId } = principal
  const chosen = { organizationId, userId, integrationId: row.integrationId, connectionId }
  const detail = { user_id: userId, integration: slug }
  await audited(
    scope,
    { action: 'connection.default_set', resource: `connections/${connectionId}`, detail },
    () => replaceActiveSet(scope.database, chosen),
  )
  return { integration_config_id: slug, connection_id: connectionId }
}

function refuseUnusable({ integrations }: Principal, { id, slug, status }: VisibleRow): void {
  if (!integrations.all && !Object.hasOwn(integrations.bySlug, slug)) {
    const message = `The caller may not use the integration ${slug}.`
    throw new ApiError('forbidden', message, { code: 'integration_not_allowed' })
  }
  if (status !== 'active') {
    const message = `The account of the connection ${id} must be connected again before it can be used.`
    throw new ApiError('forbidden', message, { code: 'credentials_unavailable' })
  }
}
