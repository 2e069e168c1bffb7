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
import { pageRequest } from './administration.ts'
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
  'connections.list': async ({ administration, query }) => {
    const { integration: slug, user_id: userId, status, ...paging } = query
    const filter = { slug, userId, status }
    return listBody(await selectConnections(administration, filter, pageRequest(paging)), present)
  },
  'connections.create': async ({ administration, body }) => {
    const { integration: slug, display_name: displayName, user_id: ownerUserId = null } = body
    const { broker, credential } = body
    const values = { slug, displayName, ownerUserId, broker, credential }
    return present(await createConnection(administration, values))
  },
  'connections.show': async ({ context, administration, path: { connectionId: id } }) => {
    const connection = await readConnection(administration, id)
    const connect = await connectStatus(administration, context.var.deps, connection)
    // Read again: the look at the broker may have made it active.
    return { ...present(await readConnection(administration, id)), connect: presentStatus(connect) }
  },
  'connections.change': async ({ context, administration, path, body }) => {
    const { display_name: displayName, user_id: ownerUserId, credential, status } = body
    const changes = { displayName, ownerUserId, credential, status }
    return present(await changeConnection(administration, context.var.deps, path.connectionId, changes))
  },
  'connections.remove': async ({ context, administration, path: { connectionId: id } }) => {
    await removeConnection(administrator(administration), context.var.deps, id)
    return { id, deleted: true }
  },
  'connections.connect': async ({ context, administration, path, body }) => {
    const { user_id: userId = null } = body
    const person = { userId, origin: ownOrigin(context) }
    const manager = administrator(administration)
    const { url, expiresAt } = await startConnect(manager, context.var.deps, path.connectionId, person)
    return { url, expires_at: expiresAt }
  },
  'connections.share': async ({ administration, path, body }) => {
    const manager = administrator(administration)
    return present(await shareConnection(manager, path.connectionId, path.groupId, body.permission))
  },
  'connections.unshare': async ({ administration, path }) =>
    present(await unshareConnection(administrator(administration), path.connectionId, path.groupId)),
}
