import type { BrokerDeps, BrokeredConnection } from '../../integrations/brokers/broker.ts'
import { BrokerError } from '../../integrations/brokers/broker-fetch.ts'
import { BROKERS } from '../../integrations/brokers/brokers.ts'
import { selectIntegration } from '../../integrations/catalogue/tool-catalogue.store.ts'
import { selectCredential } from '../../integrations/connections/connections.store.ts'
import type { ConnectionStatus, Integration } from '../../integrations/types.ts'
import {
  credentialHint,
  type StoredCredential,
  sealStoredCredential,
} from '../../integrations/vault/stored-credential.ts'
import { type ChangeScope, changeRights, conflict } from '../../ledger/changes/audited-change.ts'
import { ApiError, notFound, unprocessable } from '../../lib/api-error.ts'
import { newId } from '../../lib/ids.ts'
import { redactEncoded } from '../../lib/log.ts'
import type { StaticCredential } from '../../wire/connections.ts'
import { readGroup } from '../groups.ts'
import { readMember } from '../members.ts'
import { expireSessions } from './connect/connect-sessions.store.ts'
import {
  type ConnectionRow,
  type CredentialColumns,
  deleteConnection,
  deleteShare,
  insertConnection,
  type Permission,
  updateConnection,
  upsertShare,
} from './connections.store.ts'
import { administrator, type Manager, managedConnection } from './manager.ts'

// Names and secrets of connections stay out of the audit records, which are permanent.

/**
 * Creates a connection. One with a static credential is active at once; one whose account a person connects is pending.
 * @throws ApiError not_found for an unknown integration or user; unprocessable for a credential that does not fit the
 * integration; unprocessable for an integration that needs no connection, and for an owner that is disabled.
 */
export async function createConnection(
  scope: ChangeScope,
  values: {
    slug: string
    displayName: string
    ownerUserId: string | null
    broker: 'local' | 'nango'
    credential: StaticCredential | undefined
  },
): Promise<ConnectionRow> {
  const { slug, displayName, ownerUserId, broker } = values
  const integration = await readIntegration(scope, slug)
  await checkOwner(scope, ownerUserId)
  const given = firstCredential(integration, broker, values.credential)
  const id = newId('conn')
  const credential = given && sealedColumns(scope, id, given)
  const created = {
    ...{ id, integrationId: integration.id, ownerUserId, displayName, broker, credential },
    // The id of a hosted broker is known once the account is connected.
    upstreamConnectionId: broker === 'local' ? `local_${crypto.randomUUID()}` : '',
    status: credential ? ('active' as const) : ('pending' as const),
  }
  const detail = { integration: slug, user_id: ownerUserId, broker, status: created.status }
  await changeRights(scope, { action: 'connection.created', resource: `connections/${id}`, detail }, () =>
    insertConnection(scope, created),
  )
  return readConnection(scope, id)
}

/** @throws ApiError not_found for a connection of another organization, too. */
export const readConnection = (scope: ChangeScope, id: string): Promise<ConnectionRow> =>
  managedConnection(administrator(scope), id)

interface GivenChanges {
  displayName?: string | undefined
  ownerUserId?: string | null | undefined
  credential?: StaticCredential | undefined
  status?: Exclude<ConnectionStatus, 'pending'> | undefined
}

/**
 * Renames a connection, gives it to another owner, replaces its credential or sets its status. A new credential makes it
 * active; revoking erases the credential, and ends an account's grant.
 * @throws ApiError not_found; unprocessable for a credential that does not fit; unprocessable for a status that the
 * connection cannot have, and when something else changed it meanwhile.
 */
export async function changeConnection(
  scope: ChangeScope,
  deps: BrokerDeps,
  id: string,
  given: GivenChanges,
): Promise<ConnectionRow> {
  const before = await readConnection(scope, id)
  const { displayName, ownerUserId } = given
  if (ownerUserId !== undefined) await checkOwner(scope, ownerUserId)
  const status = nextStatus(before, given)
  const credential = await nextCredential(scope, before, given)
  const ended = status === 'revoked' ? await brokeredConnection(scope, before) : null
  const detail = {
    name_changed: displayName !== undefined,
    user_id: ownerUserId,
    credential_replaced: given.credential !== undefined,
    status: status === before.status ? undefined : status,
  }
  const action = status === 'revoked' ? 'connection.revoked' : 'connection.updated'
  await changeRights(scope, { action, resource: `connections/${id}`, detail }, async () => {
    const changes = { displayName, ownerUserId, status, credential }
    // An open link would make a connection active again, or give the new owner the account of the former one.
    if (status === 'revoked' || ownerUserId !== undefined) {
      await expireSessions(scope.database, scope.organizationId, id)
    }
    const updated = await updateConnection(scope, id, before, changes)
    if (updated.result.length > 0) return updated
    throw conflict('Something changed the connection at the same time; look at it again.')
  })
  // A hosted broker keeps the account until the connection is deleted.
  if (ended?.row.broker === 'local') await BROKERS.local.revoke(deps, ended)
  return readConnection(scope, id)
}

/**
 * Deletes a connection with its credential, shares and preferences, for everybody and at its broker first. A broker that this gateway has
 * no key for any more cannot be told, and would keep the connection for ever: the connection is deleted without it.
 * @returns the id of the account that stays at such a broker; null where none does.
 * @throws ApiError as `managedConnection`; upstream while the broker does not answer, and unprocessable for one whose address cannot be
 *   used: nothing is deleted then.
 */
export async function removeConnection(
  manager: Manager,
  deps: BrokerDeps,
  id: string,
): Promise<{ leftAtBroker: string | null }> {
  const { scope } = manager
  const before = await managedConnection(manager, id)
  const { slug, ownerUserId } = before
  const connection = await brokeredConnection(scope, before)
  const leftAtBroker = connection && (await endAtBroker(deps, connection))
  const detail = { integration: slug, user_id: ownerUserId, left_at_broker: leftAtBroker ?? undefined }
  await changeRights(scope, { action: 'connection.deleted', resource: `connections/${id}`, detail }, () =>
    deleteConnection(scope, id),
  )
  return { leftAtBroker }
}

/** @returns the id of the account at a broker that cannot be told; null for one that was told. @throws ApiError */
function endAtBroker(deps: BrokerDeps, connection: BrokeredConnection): Promise<string | null> {
  const { broker, upstreamConnectionId } = connection.row
  return asApiError(async () => {
    try {
      await BROKERS[broker].revoke(deps, connection)
      return null
    } catch (error) {
      if (error instanceof BrokerError && error.reason === 'unconfigured') return upstreamConnectionId
      throw error
    }
  })
}

async function brokeredConnection(
  scope: ChangeScope,
  { id, slug }: ConnectionRow,
): Promise<BrokeredConnection | null> {
  const { database, organizationId } = scope
  const row = await selectCredential(database, organizationId, id)
  const integration = await selectIntegration(database, organizationId, { slug })
  return row && integration && { organizationId, id, integration, row }
}

/**
 * Shares a connection with a group, or changes the permission. A member shares with groups of its own.
 * @throws ApiError as `managedConnection`; not_found for the group.
 */
export async function shareConnection(
  manager: Manager,
  id: string,
  groupId: string,
  permission: Permission,
): Promise<ConnectionRow> {
  const { scope, member } = manager
  await managedConnection(manager, id)
  if (member !== null && !member.groupIds.includes(groupId)) {
    throw notFound('Group', redactEncoded(groupId.slice(0, 100)))
  }
  await readGroup(scope, groupId)
  const detail = { group_id: groupId, permission }
  await changeRights(scope, { action: 'connection.shared', resource: `connections/${id}`, detail }, () =>
    upsertShare(scope, { connectionId: id, groupId, permission }),
  )
  return readConnection(scope, id)
}

/** Ends a share with any group. Repeating it changes nothing. @throws ApiError as `shareConnection`. */
export async function unshareConnection(
  manager: Manager,
  id: string,
  groupId: string,
): Promise<ConnectionRow> {
  const { scope } = manager
  await managedConnection(manager, id)
  await readGroup(scope, groupId)
  const detail = { group_id: groupId }
  await changeRights(scope, { action: 'connection.unshared', resource: `connections/${id}`, detail }, () =>
    deleteShare(scope, id, groupId),
  )
  return readConnection(scope, id)
}

async function readIntegration(scope: ChangeScope, slug: string): Promise<Integration> {
  const integration = await selectIntegration(scope.database, scope.organizationId, { slug })
  if (integration === null) throw notFound('Integration', slug)
  return integration
}

/** @throws ApiError not_found; unprocessable for a member that is disabled. */
async function checkOwner(scope: ChangeScope, userId: string | null): Promise<void> {
  if (userId === null) return
  const { disabledAt } = await readMember(scope, userId)
  if (disabledAt !== null) throw conflict('The user is disabled, and cannot own a connection that is used.')
}

function firstCredential(
  integration: Integration,
  broker: 'local' | 'nango',
  given: StaticCredential | undefined,
): StoredCredential | null {
  const { kind } = integration.authorization
  if (kind === 'none') throw conflict(`The integration ${integration.slug} needs no connection.`)
  if (broker === 'nango') {
    if (given === undefined) return null
    throw unprocessable('credential: the credentials of this broker are given to the broker itself.')
  }
  if (given !== undefined) return storedCredential(integration, given)
  if (kind === 'oauth') return null
  throw unprocessable(`credential: the integration ${integration.slug} needs one, of the kind ${kind}.`)
}

/** @throws ApiError unprocessable for a credential of another kind than the integration takes. */
function storedCredential({ authorization, url }: Integration, given: StaticCredential): StoredCredential {
  const { origin } = new URL(url)
  const { kind } = authorization
  if ((kind === 'bearer' || kind === 'header') && 'secret' in given) {
    return { kind, origin, secret: given.secret }
  }
  if (kind === 'basic' && 'username' in given) return { kind, origin, ...given }
  const expected = { bearer: 'secret', header: 'secret', basic: 'username and password' }[kind as string]
  throw unprocessable(
    expected === undefined
      ? 'credential: a person connects the account of this integration; it takes no credential.'
      : `credential: this integration takes ${expected}.`,
  )
}

function sealedColumns(
  { organizationId, vaultRing }: ChangeScope,
  connectionId: string,
  credential: StoredCredential,
): CredentialColumns {
  const { sealed, vaultKeyId } = sealStoredCredential(vaultRing, { organizationId, connectionId }, credential)
  return { sealedCredential: sealed, vaultKeyId, hint: credentialHint(credential) }
}

/** @throws ApiError unprocessable for a connection that would be active without a credential. */
function nextStatus(before: ConnectionRow, { credential, status }: GivenChanges): ConnectionStatus {
  if (credential !== undefined) {
    if (status === undefined || status === 'active') return 'active'
    throw conflict('A new credential makes the connection active; set another status by itself.')
  }
  if (status === undefined || status === before.status) return before.status
  const isPossible = status === 'revoked' || before.status === 'active' || before.status === 'needs_reauth'
  if (isPossible) return status
  throw conflict(`A connection that is ${before.status} becomes active when its account is connected.`)
}

/** @returns what is written: undefined leaves the credential, null erases it. */
async function nextCredential(
  scope: ChangeScope,
  before: ConnectionRow,
  { credential, status }: GivenChanges,
): Promise<CredentialColumns | null | undefined> {
  if (credential === undefined) return status === 'revoked' ? null : undefined
  if (before.broker !== 'local') {
    throw unprocessable('credential: the credentials of this broker are given to the broker itself.')
  }
  const integration = await readIntegration(scope, before.slug)
  return sealedColumns(scope, before.id, storedCredential(integration, credential))
}

/** Runs what a broker does for a request. @throws ApiError in place of a BrokerError. */
export async function asApiError<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof BrokerError)) throw error
    if (error.reason === 'unavailable') throw new ApiError('upstream', error.message, { cause: error })
    throw conflict(error.message)
  }
}
