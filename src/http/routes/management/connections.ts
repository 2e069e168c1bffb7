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
import { listBody } from '../../../wire/page-cursor.ts'
import { ownOrigin } from '../../own-origin.ts'
import { pageRequest } from './change-scope.ts'
import type { HandlersOf } from './mount-endpoints.ts'

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

export const connectionHandlers: HandlersOf<'connections'> = {
  'connections.list': async ({ scope, query }) => {
    const { integration: slug, user_id: userId, status, ...paging } = query
    const filter = { slug, userId, status }
    return listBody(await selectConnections(scope, filter, pageRequest(paging)), present)
  },
  'connections.create': async ({ scope, body }) => {
    const { integration: slug, display_name: displayName, user_id: ownerUserId = null } = body
    const { broker, credential } = body
    const values = { slug, displayName, ownerUserId, broker, credential }
    return present(await createConnection(scope, values))
  },
  'connections.show': async ({ context, scope, path: { connectionId: id } }) => {
    const connection = await readConnection(scope, id)
    const connect = await connectStatus(scope, context.var.deps, connection)
    // Read again: the look at the broker may have made it active.
    return { ...present(await readConnection(scope, id)), connect: presentStatus(connect) }
  },
  'connections.change': async ({ context, scope, path, body }) => {
    const { display_name: displayName, user_id: ownerUserId, credential, status } = body
    const changes = { displayName, ownerUserId, credential, status }
    return present(await changeConnection(scope, context.var.deps, path.connectionId, changes))
  },
  'connections.remove': async ({ context, scope, path: { connectionId: id } }) => {
    await removeConnection(administrator(scope), context.var.deps, id)
    return { id, deleted: true }
  },
  'connections.connect': async ({ context, scope, path, body }) => {
    const { user_id: userId = null } = body
    const person = { userId, origin: ownOrigin(context) }
    const manager = administrator(scope)
    const { url, expiresAt } = await startConnect(manager, context.var.deps, path.connectionId, person)
    return { url, expires_at: expiresAt }
  },
  'connections.share': async ({ scope, path, body }) => {
    const manager = administrator(scope)
    return present(await shareConnection(manager, path.connectionId, path.groupId, body.permission))
  },
  'connections.unshare': async ({ scope, path }) =>
    present(await unshareConnection(administrator(scope), path.connectionId, path.groupId)),
}
