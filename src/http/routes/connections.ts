import { Hono } from 'hono'
import { startConnect } from '../../admin/connections/connect/start-connect.ts'
import { removeConnection, shareConnection, unshareConnection } from '../../admin/connections/connections.ts'
import { setDefaultConnection } from '../../admin/connections/default-connection.ts'
import type { Manager } from '../../admin/connections/manager.ts'
import { presentConnection, visibleConnections } from '../../integrations/connections/visible-connections.ts'
import { defaultSetting, shareReplacement } from '../../wire/connections.ts'
import { isUuid } from '../../wire/management-fields.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { readJson } from '../json-request.ts'
import { ownChange } from '../own-change.ts'
import { ownOrigin } from '../own-origin.ts'
import { connectionId, unknownId } from '../validated-request.ts'

const CONNECTIONS = '/v1/integrations/connections'
const SHARE = `${CONNECTIONS}/:connectionId/shares/:groupId` as const

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
    const { connection_id: chosen } = await readJson(context, defaultSetting)
    const { principal } = context.var.rights
    const slug = context.req.param('integrationId')
    return context.json(await setDefaultConnection(ownChange(context), principal, slug, chosen))
  })
  .post(`${CONNECTIONS}/:connectionId/connect`, async (context) => {
    const id = connectionId(context)
    const { url, expiresAt } = await startConnect(ownManager(context), context.var.deps, id, {
      origin: ownOrigin(context),
    })
    context.header('cache-control', 'no-store')
    return context.json({ url, expires_at: expiresAt }, 201)
  })
  .delete(`${CONNECTIONS}/:connectionId`, async (context) => {
    const id = connectionId(context)
    const { leftAtBroker } = await removeConnection(ownManager(context), context.var.deps, id)
    return context.json({ id, deleted: true, left_at_broker: leftAtBroker })
  })
  .put(SHARE, async (context) => {
    const { permission } = await readJson(context, shareReplacement)
    const [id, groupId] = [connectionId(context), context.req.param('groupId').toLowerCase()]
    return context.json(presentShares(await shareConnection(ownManager(context), id, groupId, permission)))
  })
  .delete(SHARE, async (context) => {
    const groupId = context.req.param('groupId').toLowerCase()
    if (!isUuid(groupId)) throw unknownId('Group', groupId)
    const id = connectionId(context)
    return context.json(presentShares(await unshareConnection(ownManager(context), id, groupId)))
  })

const presentShares = ({ id, shares }: { id: string; shares: unknown }) => ({ id, shares })

/** The caller, which manages what is its own or shared with it to be managed. */
const ownManager = (context: AppContext): Manager => ({
  scope: ownChange(context),
  member: context.var.rights.principal,
})
