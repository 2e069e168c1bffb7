import type { Database } from '../../../schema/database.ts'
import type { Principal } from '../../identity/principal.ts'
import type { Connection, ConnectionStatus } from '../types.ts'
import { selectVisible } from './connections.store.ts'

/** A connection, and whether it is in the caller's active set of its integration. */
export interface PreferredConnection extends Connection {
  isPreferred: boolean
}

/** Interface: Integration connection. */
export const presentConnection = (connection: PreferredConnection) => ({
  id: connection.id,
  display_name: connection.displayName,
  integration_config_id: connection.slug,
  upstream_connection_id: connection.upstreamConnectionId,
  is_preferred: connection.isPreferred,
  created_at: connection.createdAt.toISOString(),
})

/** States in which callers see a connection. A pending connection was never usable, and a revoked one will not be. */
const SHOWN: readonly ConnectionStatus[] = ['active', 'needs_reauth']

/**
 * The connections that a caller can see, oldest first: its own, those shared with a group of it, and those of the
 * organization (interface: Integration connections).
 * @throws what the database throws.
 */
export async function visibleConnections(
  deps: { database: Database },
  principal: Pick<Principal, 'organizationId' | 'userId' | 'groupIds'>,
): Promise<PreferredConnection[]> {
  const rows = await selectVisible(deps.database, principal)
  return rows
    .filter(({ status }) => SHOWN.includes(status))
    .map(({ isDefault: _default, preferredAt: _at, ...connection }) => connection)
}
