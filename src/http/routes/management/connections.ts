import { Hono } from 'hono'
import { type ConnectStatus, connectStatus } from '../../../admin/connections/connect/connect-status.ts'
import { startConnect } from '../../../admin/connections/connect/start-connect.ts'
import { type ConnectionRow, selectConnections } from '../../../admin/connections/connections.store.ts'
import {
  changeConnection,
  createConnection,
  readConnection,
  removeConnection,
  shareConnection,
  unshareConnection,
} from '../../../admin/connections/connections.ts'
import { administrator } from '../../../admin/connections/manager.ts'
import {
  connectionCreation,
  connectionListQuery,
  connectionUpdate,
  connectStart,
  shareReplacement,
} from '../../../wire/connections.ts'
import { noQuery } from '../../../wire/management-fields.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppEnv } from '../../context.ts'
import { ownOrigin } from '../../own-origin.ts'
import { connectionId, jsonBody, query } from '../../validated-request.ts'
import { changeScope, pageRequest, pathId } from './request.ts'

const CONNECTIONS = '/organizations/:organizationId/connections'
const CONNECTION = '/organizations/:organizationId/connections/:connectionId'
const CONNECT = '/organizations/:organizationId/connections/:connectionId/connect'
const SHARE = '/organizations/:organizationId/connections/:connectionId/shares/:groupId'

/** The public form of a connection. The credential is write-only. */
const present = (row: ConnectionRow) => ({
  id: row.id,
  integration: row.slug,
  display_name: row.displayName,
  user_id: row.ownerUserId,
  owner_disabled: row.isOwnerGone,
  broker: row.broker,
  upstream_connection_id: row.upstreamConnectionId,
  status: row.status,
  hint: row.hint,
  shares: row.shares,
  created_at: row.createdAt,
  updated_at: row.updatedAt,
})

const presentStatus = (connect: ConnectStatus | null) =>
  connect && { status: connect.status, failure: connect.failure, expires_at: connect.expiresAt }

export const connectionManagementRoutes = new Hono<AppEnv>()
  .get(CONNECTIONS, query(connectionListQuery), async (context) => {
    const { integration: slug, user_id: userId, status, ...paging } = context.req.valid('query')
    const filter = { slug, userId, status }
    const page = await selectConnections(changeScope(context), filter, pageRequest(paging))
    return context.json(listBody(page, present))
  })
  .post(CONNECTIONS, query(noQuery), jsonBody(connectionCreation), async (context) => {
    const given = context.req.valid('json')
    const { integration: slug, display_name: displayName, user_id: ownerUserId = null } = given
    const { broker, credential } = given
    const values = { slug, displayName, ownerUserId, broker, credential }
    return context.json(present(await createConnection(changeScope(context), values)), 201)
  })
  .get(CONNECTION, query(noQuery), async (context) => {
    const scope = changeScope(context)
    const id = connectionId(context)
    const connect = await connectStatus(scope, context.var.deps, await readConnection(scope, id))
    // Read again: the look at the broker may have made it active.
    return context.json({
      ...present(await readConnection(scope, id)),
      connect: presentStatus(connect),
    })
  })
  .post(CONNECT, query(noQuery), jsonBody(connectStart), async (context) => {
    const { user_id: userId = null } = context.req.valid('json')
    const { url, expiresAt } = await startConnect(
      administrator(changeScope(context)),
      context.var.deps,
      connectionId(context),
      { userId, origin: ownOrigin(context) },
    )
    context.header('cache-control', 'no-store')
    return context.json({ url, expires_at: expiresAt }, 201)
  })
  .put(CONNECTION, query(noQuery), jsonBody(connectionUpdate), async (context) => {
    const id = connectionId(context)
    const given = context.req.valid('json')
    const { display_name: displayName, user_id: ownerUserId, credential, status } = given
    const changes = { displayName, ownerUserId, credential, status }
    return context.json(present(await changeConnection(changeScope(context), context.var.deps, id, changes)))
  })
  .delete(CONNECTION, query(noQuery), async (context) => {
    const id = connectionId(context)
    await removeConnection(administrator(changeScope(context)), context.var.deps, id)
    return context.json({ id, deleted: true })
  })
  .put(SHARE, query(noQuery), jsonBody(shareReplacement), async (context) => {
    const [id, groupId] = [connectionId(context), pathId(context, 'Group')]
    const { permission } = context.req.valid('json')
    return context.json(
      present(await shareConnection(administrator(changeScope(context)), id, groupId, permission)),
    )
  })
  .delete(SHARE, query(noQuery), async (context) => {
    const [id, groupId] = [connectionId(context), pathId(context, 'Group')]
    return context.json(present(await unshareConnection(administrator(changeScope(context)), id, groupId)))
  })
