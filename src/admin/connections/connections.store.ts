import { and, eq, isNotNull, sql } from 'drizzle-orm'
import { groups, memberships } from '../../../schema/identity.ts'
import {
  connectionPreferences,
  connectionShares,
  connections,
  integrations,
} from '../../../schema/integrations.ts'
import type { ConnectionStatus } from '../../integrations/types.ts'
import {
  equal,
  type OrganizationScope,
  raisingEpoch,
  selectPage,
} from '../../ledger/changes/scoped-statements.store.ts'
import type { Page, PageRequest } from '../../wire/page-cursor.ts'

export type Permission = 'use' | 'manage'

export interface ConnectionRow {
  id: string
  integrationId: string
  slug: string
  ownerUserId: string | null
  /** Whether the owner's membership is disabled or gone: the connection cannot be used then. */
  isOwnerGone: boolean
  displayName: string
  broker: 'local' | 'nango'
  upstreamConnectionId: string
  status: ConnectionStatus
  hint: string | null
  credentialVersion: number
  shares: Array<{ group_id: string; permission: Permission }>
  createdAt: Date
  updatedAt: Date
}

interface ConnectionFilter {
  slug?: string | undefined
  userId?: string | undefined
  status?: ConnectionStatus | undefined
}

const isOwnerGone = sql<boolean>`(${connections.ownerUserId} is not null and not exists (
  select from ${memberships} where ${memberships.organizationId} = ${connections.organizationId}
  and ${memberships.userId} = ${connections.ownerUserId} and ${memberships.disabledAt} is null offset 0))`

// Columns of other tables are subqueries: of a list, they are read for the rows of the page only.

const connectionColumns = {
  id: connections.id,
  integrationId: connections.integrationId,
  slug: sql<string>`(select ${integrations.slug} from ${integrations}
    where ${integrations.id} = ${connections.integrationId})`,
  ownerUserId: connections.ownerUserId,
  isOwnerGone,
  displayName: connections.displayName,
  broker: connections.broker,
  upstreamConnectionId: connections.upstreamConnectionId,
  status: connections.status,
  hint: connections.hint,
  credentialVersion: connections.credentialVersion,
  shares: sql<ConnectionRow['shares']>`coalesce((select json_agg(json_build_object(
      'group_id', ${connectionShares.groupId}, 'permission', ${connectionShares.permission})
      order by ${connectionShares.groupId})
    from ${connectionShares} where ${connectionShares.connectionId} = ${connections.id}
    and ${connectionShares.organizationId} = ${connections.organizationId}), '[]'::json)`,
  createdAt: connections.createdAt,
  updatedAt: connections.updatedAt,
}

const isConnection = ({ organizationId }: OrganizationScope, connectionId: string) =>
  and(eq(connections.organizationId, organizationId), eq(connections.id, connectionId))

export async function selectConnection(
  scope: OrganizationScope,
  connectionId: string,
): Promise<ConnectionRow | null> {
  const [row] = await scope.database
    .select(connectionColumns)
    .from(connections)
    .where(isConnection(scope, connectionId))
  return row ?? null
}

const isOfIntegration = (organizationId: string, slug: string) =>
  sql`${connections.integrationId} = (select ${integrations.id} from ${integrations}
    where ${integrations.organizationId} = ${organizationId} and ${integrations.slug} = ${slug}
    and ${integrations.deletedAt} is null)`

export function selectConnections(
  { database, organizationId }: OrganizationScope,
  filter: ConnectionFilter,
  page: PageRequest,
): Promise<Page<ConnectionRow>> {
  return selectPage(page, { at: connections.createdAt, id: connections.id }, (position, isAfter) =>
    database
      .select({ ...connectionColumns, position })
      .from(connections)
      .where(
        and(
          eq(connections.organizationId, organizationId),
          filter.slug === undefined ? undefined : isOfIntegration(organizationId, filter.slug),
          equal(connections.ownerUserId, filter.userId),
          equal(connections.status, filter.status),
          isAfter,
        ),
      ),
  )
}

/** The sealed secret of the OAuth client of an integration; null for a public one, or one that is registered. */
export async function selectClientSecret(
  { database, organizationId }: OrganizationScope,
  integrationId: string,
): Promise<string | null> {
  const [row] = await database
    .select({ sealed: integrations.sealedClientSecret })
    .from(integrations)
    .where(and(eq(integrations.organizationId, organizationId), eq(integrations.id, integrationId)))
  return row?.sealed ?? null
}

/** A sealed credential with what is stored beside it. */
export interface CredentialColumns {
  sealedCredential: string
  vaultKeyId: string
  hint: string | null
}

interface NewConnection {
  id: string
  integrationId: string
  ownerUserId: string | null
  displayName: string
  broker: 'local' | 'nango'
  upstreamConnectionId: string
  status: ConnectionStatus
  credential: CredentialColumns | null
}

/** Inserts a connection. An active connection of a user joins the user's active set. */
export function insertConnection(scope: OrganizationScope, { credential, ...values }: NewConnection) {
  const { database, organizationId } = scope
  const insert = database.insert(connections).values({ organizationId, ...values, ...credential })
  return raisingEpoch(scope, insert, joinActiveSet(scope, values.id, 'active'))
}

/** Adds a connection to the active set of the user that owns it. @param status that it must have. */
const joinActiveSet = (
  { database, organizationId }: OrganizationScope,
  connectionId: string,
  status: ConnectionStatus,
) =>
  database
    .insert(connectionPreferences)
    .select(
      database
        .select({
          organizationId: connections.organizationId,
          userId: sql<string>`${connections.ownerUserId}`.as('user_id'),
          integrationId: connections.integrationId,
          connectionId: connections.id,
          isDefault: sql<boolean>`false`.as('is_default'),
          setAt: sql<Date>`now()`.as('set_at'),
        })
        .from(connections)
        .where(
          and(
            eq(connections.organizationId, organizationId),
            eq(connections.id, connectionId),
            eq(connections.status, status),
            isNotNull(connections.ownerUserId),
          ),
        ),
    )
    .onConflictDoNothing()

export interface ConnectionChanges {
  displayName?: string | undefined
  ownerUserId?: string | null | undefined
  status?: ConnectionStatus | undefined
  /** The id of the account at the broker. */
  upstreamConnectionId?: string | undefined
  /** Null erases it. */
  credential?: CredentialColumns | null | undefined
}

const NO_CREDENTIAL_COLUMNS = { sealedCredential: null, vaultKeyId: null, hint: null }

/**
 * Changes a connection, if its credential and status are still those that were read. A credential that is written or erased
 * raises the version. A connection that was pending and is active now joins the active set of its owner.
 * @returns the id of the changed row: no row when something else changed it meanwhile.
 */
export function updateConnection(
  scope: OrganizationScope,
  connectionId: string,
  before: Pick<ConnectionRow, 'status' | 'credentialVersion'>,
  { displayName, ownerUserId, status, upstreamConnectionId, credential }: ConnectionChanges,
) {
  const update = scope.database
    .update(connections)
    .set({
      updatedAt: sql`now()`,
      ...(displayName !== undefined && { displayName }),
      ...(ownerUserId !== undefined && { ownerUserId }),
      ...(status !== undefined && { status }),
      ...(upstreamConnectionId !== undefined && { upstreamConnectionId }),
      ...(credential !== undefined && {
        ...(credential ?? NO_CREDENTIAL_COLUMNS),
        credentialVersion: sql`${connections.credentialVersion} + 1`,
      }),
    })
    .where(
      and(
        isConnection(scope, connectionId),
        eq(connections.credentialVersion, before.credentialVersion),
        eq(connections.status, before.status),
      ),
    )
    .returning({ id: connections.id })
  // Joins first, while the row is pending: the result is that of the last statement.
  if (before.status !== 'pending' || status !== 'active') return raisingEpoch(scope, update)
  return raisingEpoch(scope, joinActiveSet(scope, connectionId, 'pending'), update)
}

/** Deletes a connection with its shares, preferences and sessions. */
export const deleteConnection = (scope: OrganizationScope, connectionId: string) =>
  raisingEpoch(scope, scope.database.delete(connections).where(isConnection(scope, connectionId)))

/** Shares a connection with a group of its organization, or changes the permission. @returns no row when either is gone. */
export function upsertShare(
  scope: OrganizationScope,
  share: { connectionId: string; groupId: string; permission: Permission },
) {
  const { database, organizationId } = scope
  const { connectionId, groupId, permission } = share
  return raisingEpoch(
    scope,
    database
      .insert(connectionShares)
      .select(
        database
          .select({
            organizationId: connections.organizationId,
            connectionId: connections.id,
            groupId: groups.id,
            permission: sql<Permission>`${permission}`.as('permission'),
            createdAt: sql<Date>`now()`.as('created_at'),
          })
          .from(connections)
          .innerJoin(groups, eq(groups.organizationId, connections.organizationId))
          .where(and(isConnection(scope, connectionId), eq(groups.id, groupId))),
      )
      .onConflictDoUpdate({
        target: [connectionShares.connectionId, connectionShares.groupId],
        set: { permission },
      })
      .returning({ organizationId: sql<string>`${organizationId}` }),
  )
}

export const deleteShare = (scope: OrganizationScope, connectionId: string, groupId: string) =>
  raisingEpoch(
    scope,
    scope.database
      .delete(connectionShares)
      .where(
        and(
          eq(connectionShares.organizationId, scope.organizationId),
          eq(connectionShares.connectionId, connectionId),
          eq(connectionShares.groupId, groupId),
        ),
      ),
  )
