import { Hono } from 'hono'
import { setDefaultConnection } from '../../integrations/connections/default-connection.ts'
import {
  type PreferredConnection,
  visibleConnections,
} from '../../integrations/connections/visible-connections.ts'
import { defaultSetting } from '../../wire/connections.ts'
import type { AppEnv } from '../context.ts'
import { ownChange } from '../own-change.ts'
import { jsonBody } from '../validated-request.ts'

const CONNECTIONS = '/v1/integrations/connections'

/** Interface: Integration connection. */
export const presentConnection = (connection: PreferredConnection) => ({
  id: connection.id,
  display_name: connection.displayName,
  integration_config_id: connection.slug,
  upstream_connection_id: connection.upstreamConnectionId,
  is_preferred: connection.isPreferred,
  created_at: connection.createdAt.toISOString(),
})

/** The connections of a key holder, and its default for an integration (interface: Integration connections). */
export const connectionRoutes = new Hono<AppEnv>()
  .get(CONNECTIONS, async (context) => {
    const { deps, rights } = context.var
    const connections = await visibleConnections(deps, rights.principal)
    return context.json({ data: connections.map(presentConnection) })
  })
  .post(`${CONNECTIONS}/:integrationId/default`, jsonBody(defaultSetting), async (context) => {
    const { connection_id: connectionId } = context.req.valid('json')
    const { principal } = context.var.rights
    const slug = context.req.param('integrationId')
    return context.json(await setDefaultConnection(ownChange(context), principal, slug, connectionId))
  })
