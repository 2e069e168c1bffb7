import { and, asc, eq, isNotNull, isNull, type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { memberships } from '../../../schema/identity.ts'
import {
  connectionPreferences,
  connectionShares,
  connections,
  integrations,
} from '../../../schema/integrations.ts'
import type { Connection, ConnectionStatus } from '../types.ts'

/** The user whose connections are read. The groups are those of the caller's current rights. */
interface ConnectionViewer {
  organizationId: string
  userId: string
  groupIds: readonly string[]
}

/** A connection as one caller sees it. */
export interface VisibleRow extends Connection {
  isPreferred: boolean
  isDefault: boolean
  /** When it joined the active set of the caller; null outside of it. */
  preferredAt: Date | null
}

/** A connection with what its use needs. */
export interface CredentialRow {
  status: ConnectionStatus
  broker: Connection['broker']
  upstreamConnectionId: string
  sealedCredential: string | null
  credentialVersion: number
}

/**
 * The status by which a connection may be used: one whose owner is no member any more, or a disabled one, counts as
 * revoked until another owner is set.
 */
export const effectiveStatus = sql<ConnectionStatus>`case when ${connections.ownerUserId} is not null
  and (${memberships.userId} is null or ${memberships.disabledAt} is not null) then 'revoked'
  else ${connections.status} end`

/** The membership of a connection's owner. */
export const ofOwner = and(
  eq(memberships.organizationId, connections.organizationId),
  eq(memberships.userId, connections.ownerUserId),
)

const ofIntegration = and(
  eq(integrations.id, connections.integrationId),
  eq(integrations.organizationId, connections.organizationId),
  isNull(integrations.deletedAt),
)

/** A connection without its credential, with the slug of its integration, which a statement joins. */
export const connectionColumns = {
  id: connections.id,
  organizationId: connections.organizationId,
  integrationId: connections.integrationId,
  slug: integrations.slug,
  ownerUserId: connections.ownerUserId,
  displayName: connections.displayName,
  broker: connections.broker,
  upstreamConnectionId: connections.upstreamConnectionId,
  status: connections.status,
  hint: connections.hint,
  createdAt: connections.createdAt,
}

/** The connections that a caller may see, whatever their status, oldest first. */
export function selectVisible(
  database: Database,
  viewer: ConnectionViewer,
  { integrationId, connectionId }: { integrationId?: string; connectionId?: string } = {},
): Promise<VisibleRow[]> {
  const { organizationId, userId } = viewer
  return database
    .select({
      ...connectionColumns,
      status: effectiveStatus,
      isPreferred: sql<boolean>`${connectionPreferences.connectionId} is not null`,
      isDefault: sql<boolean>`coalesce(${connectionPreferences.isDefault}, false)`,
      preferredAt: connectionPreferences.setAt,
    })
    .from(connections)
    .innerJoin(integrations, ofIntegration)
    .leftJoin(memberships, ofOwner)
    .leftJoin(
      connectionPreferences,
      and(
        eq(connectionPreferences.organizationId, organizationId),
        eq(connectionPreferences.userId, userId),
        eq(connectionPreferences.integrationId, connections.integrationId),
        eq(connectionPreferences.connectionId, connections.id),
      ),
    )
    .where(
      and(
        eq(connections.organizationId, organizationId),
        integrationId === undefined ? undefined : eq(connections.integrationId, integrationId),
        connectionId === undefined ? undefined : eq(connections.id, connectionId),
        sql`${connections.id} = any(array(${visibleIds(viewer)}))`,
      ),
    )
    .orderBy(asc(connections.createdAt), asc(connections.id))
}

/** Connections of a caller, of its organization, and shared with its groups: each part by its index, unlike one condition with OR. */
function visibleIds({ organizationId, userId, groupIds }: ConnectionViewer): SQL {
  const groups = sql.join(
    groupIds.map((id) => sql`${id}::uuid`),
    sql`, `,
  )
  const shared = sql`union all select share.connection_id from ${connectionShares} as share
    where share.organization_id = ${organizationId} and share.group_id in (${groups})`
  return sql`select own.id from ${connections} as own
    where own.organization_id = ${organizationId} and own.owner_user_id = ${userId}
    union all select common.id from ${connections} as common
    where common.organization_id = ${organizationId} and common.owner_user_id is null
    ${groupIds.length === 0 ? sql`` : shared}`
}

/** The sealed credential of a connection, with its effective status. */
export async function selectCredential(
  database: Database,
  organizationId: string,
  connectionId: string,
): Promise<CredentialRow | null> {
  const [row] = await database
    .select({
      status: effectiveStatus,
      broker: connections.broker,
      upstreamConnectionId: connections.upstreamConnectionId,
      sealedCredential: connections.sealedCredential,
      credentialVersion: connections.credentialVersion,
    })
    .from(connections)
    .leftJoin(memberships, ofOwner)
    .where(and(eq(connections.organizationId, organizationId), eq(connections.id, connectionId)))
  return row ?? null
}

/**
 * Marks an active connection as one whose account must be connected again, unless its credential was replaced meanwhile.
 * @param atVersion of the credential that is refused. @returns whether it was marked.
 */
export async function markNeedsReauth(
  database: Database,
  organizationId: string,
  connectionId: string,
  atVersion: number,
): Promise<boolean> {
  const marked = await database
    .update(connections)
    .set({ status: 'needs_reauth', updatedAt: sql`now()` })
    .where(
      and(
        eq(connections.organizationId, organizationId),
        eq(connections.id, connectionId),
        eq(connections.credentialVersion, atVersion),
        eq(connections.status, 'active'),
      ),
    )
    .returning({ id: connections.id })
  return marked.length > 0
}

/** Makes a connection the only one of a user's active set for an integration, in one transaction. */
export async function replaceActiveSet(
  database: Database,
  chosen: { organizationId: string; userId: string; integrationId: string; connectionId: string },
): Promise<void> {
  const { organizationId, userId, integrationId } = chosen
  await database.batch([
    database
      .delete(connectionPreferences)
      .where(
        and(
          eq(connectionPreferences.organizationId, organizationId),
          eq(connectionPreferences.userId, userId),
          eq(connectionPreferences.integrationId, integrationId),
        ),
      ),
    database.insert(connectionPreferences).values({ ...chosen, isDefault: true }),
  ])
}

/**
 * Stores tokens that were renewed, if the credential is still the one that they replace. What a person or an administrator
 * has written meanwhile stays.
 */
export async function storeRenewedCredential(
  database: Database,
  renewed: {
    organizationId: string
    connectionId: string
    sealed: string
    vaultKeyId: string
    version: number
  },
): Promise<void> {
  const { organizationId, connectionId, sealed, vaultKeyId, version } = renewed
  await database
    .update(connections)
    .set({
      sealedCredential: sealed,
      vaultKeyId,
      credentialVersion: version + 1,
      updatedAt: sql`now()`,
    })
    .where(
      and(
        eq(connections.organizationId, organizationId),
        eq(connections.id, connectionId),
        eq(connections.credentialVersion, version),
        isNotNull(connections.sealedCredential),
      ),
    )
}
