import { Hono } from 'hono'
import { setDefaultConnection } from '../../admin/connections/default-connection.ts'
import {
  disconnect,
  endShare,
  type Managing,
  reconnect,
  shareWithOwnGroup,
} from '../../admin/connections/own-connections.ts'
import {
  type PreferredConnection,
  visibleConnections,
} from '../../integrations/connections/visible-connections.ts'
import { defaultSetting, isConnectionId, shareReplacement } from '../../wire/connections.ts'
import { isUuid } from '../../wire/management-fields.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { readJson } from '../json-request.ts'
import { ownChange } from '../own-change.ts'
import { ownOrigin } from '../own-origin.ts'
import { unknownId } from '../validated-request.ts'

const CONNECTIONS = '/v1/integrations/connections'
const SHARE = `${CONNECTIONS}/:connectionId/shares/:groupId` as const

/** Interface: Integration connection. */
const presentConnection = (connection: PreferredConnection) => ({
  id: connection.id,
  display_name: connection.displayName,
  integration_config_id: connection.slug,
  upstream_connection_id: connection.upstreamConnectionId,
  is_preferred: connection.isPreferred,
  created_at: connection.createdAt.toISOString(),
})

/**
 * The connections of a key holder, and its default for an integration (interface: Integration connections); and what it does
 * with those that it manages.
 */
export const connectionRoutes = new Hono<AppEnv>()
  .get(CONNECTIONS, async (context) => {
    const { deps, rights } = context.var
    const connections = await visibleConnections(deps, rights.principal)
    return context.json({ data: connections.map(presentConnection) })
  })
  .post(`${CONNECTIONS}/:integrationId/default`, async (context) => {
    const { connection_id: connectionId } = await readJson(context, defaultSetting)
    const { principal } = context.var.rights
    const slug = context.req.param('integrationId')
    return context.json(await setDefaultConnection(ownChange(context), principal, slug, connectionId))
  })
  .post(`${CONNECTIONS}/:connectionId/connect`, async (context) => {
    const { url, expiresAt } = await reconnect(managing(context), context.var.deps, ownOrigin(context))
    context.header('cache-control', 'no-store')
    return context.json({ url, expires_at: expiresAt }, 201)
  })
  .delete(`${CONNECTIONS}/:connectionId`, async (context) => {
    await disconnect(managing(context), context.var.deps)
    return context.json({ id: context.req.param('connectionId'), deleted: true })
  })
  .put(SHARE, async (context) => {
    const { permission } = await readJson(context, shareReplacement)
    const groupId = context.req.param('groupId').toLowerCase()
    return context.json(presentShares(await shareWithOwnGroup(managing(context), groupId, permission)))
  })
  .delete(SHARE, async (context) => {
    const groupId = context.req.param('groupId').toLowerCase()
    if (!isUuid(groupId)) throw unknownId('Group', groupId)
    return context.json(presentShares(await endShare(managing(context), groupId)))
  })

const presentShares = ({ id, shares }: { id: string; shares: unknown }) => ({ id, shares })

function managing(context: AppContext): Managing {
  const connectionId = context.req.param('connectionId') ?? ''
  if (!isConnectionId(connectionId)) throw unknownId('Connection', connectionId)
  return { administration: ownChange(context), principal: context.var.rights.principal, connectionId }
}
