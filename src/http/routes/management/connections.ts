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
import { checkActsFor, checkConnectionChange } from '../../../admin/member-rules.ts'
import { readMember } from '../../../admin/members.ts'
import type { ChangeScope } from '../../../ledger/changes/audited-change.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppContext } from '../../context.ts'
import { ownOrigin } from '../../own-origin.ts'
import { pageRequest } from './change-scope.ts'
import type { HandlersOf } from './mount-endpoints.ts'
import { authorOf } from './require-permission.ts'

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

/** @throws ApiError `forbidden` for an owner who is another person: its account would be somebody else's. */
async function checkNewOwner(context: AppContext, scope: ChangeScope, ownerId: string | null | undefined) {
  const author = authorOf(context, 'connections.change')
  if (author && ownerId) checkActsFor(author, await readMember(scope, ownerId))
}

/** @throws ApiError as `checkConnectionChange`; `not_found`. */
async function checkOwner(context: AppContext, scope: ChangeScope, id: string, isRevoked = false) {
  const author = authorOf(context, 'connections.change')
  if (author === null) return
  const { ownerUserId } = await readConnection(scope, id)
  checkConnectionChange(author, ownerUserId === null ? null : await readMember(scope, ownerUserId), isRevoked)
}

export const connectionHandlers: HandlersOf<'connections'> = {
  'connections.list': async ({ scope, query }) => {
    const { integration: slug, user_id: userId, status, ...paging } = query
    const filter = { slug, userId, status }
    return listBody(await selectConnections(scope, filter, pageRequest(paging)), present)
  },
  'connections.create': async ({ context, scope, body }) => {
    const { integration: slug, display_name: displayName, user_id: ownerUserId = null } = body
    const { broker, credential } = body
    const values = { slug, displayName, ownerUserId, broker, credential }
    await checkNewOwner(context, scope, ownerUserId)
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
    const isRevoked = status === 'revoked' && Object.keys(body).length === 1
    await checkOwner(context, scope, path.connectionId, isRevoked)
    await checkNewOwner(context, scope, ownerUserId)
    return present(await changeConnection(scope, context.var.deps, path.connectionId, changes))
  },
  'connections.remove': async ({ context, scope, path: { connectionId: id } }) => {
    const { leftAtBroker } = await removeConnection(administrator(scope), context.var.deps, id)
    return { id, deleted: true, left_at_broker: leftAtBroker }
  },
  'connections.connect': async ({ context, scope, path, body }) => {
    await checkOwner(context, scope, path.connectionId)
    const { user_id: userId = null } = body
    const person = { userId, origin: ownOrigin(context) }
    const manager = administrator(scope)
    const { url, expiresAt } = await startConnect(manager, context.var.deps, path.connectionId, person)
    return { url, expires_at: expiresAt }
  },
  'connections.share': async ({ context, scope, path, body }) => {
    await checkOwner(context, scope, path.connectionId)
    const manager = administrator(scope)
    return present(await shareConnection(manager, path.connectionId, path.groupId, body.permission))
  },
  'connections.unshare': async ({ scope, path }) =>
    present(await unshareConnection(administrator(scope), path.connectionId, path.groupId)),
}
