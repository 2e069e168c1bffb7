import { and, eq, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { connections, integrations, toolCatalogues, toolDefinitions } from '../../../schema/integrations.ts'
import {
  type EpochChange,
  type OrganizationScope,
  raisingEpoch,
} from '../../ledger/changes/scoped-statements.store.ts'
import { connectionColumns } from '../connections/connections.store.ts'
import type { Connection, McpServerProtocol } from '../types.ts'
import type { PinnedDefinition } from './clean-definition.ts'

/** Identifies a catalogue of an organization. */
export interface CatalogueKey {
  organizationId: string
  integrationId: string
  /** Empty for an integration without connections. */
  connectionId: string
}

/** A catalogue that one job may refresh until `leasedUntil`. */
export interface LeasedCatalogue extends CatalogueKey {
  leasedUntil: Date
  tools: Array<{ name: string; hash: string }> | null
  protocol: McpServerProtocol | null
  failures: number
}

const isCatalogue = ({ organizationId, integrationId, connectionId }: CatalogueKey) =>
  and(
    eq(toolCatalogues.organizationId, organizationId),
    eq(toolCatalogues.integrationId, integrationId),
    eq(toolCatalogues.connectionId, connectionId),
  )

const leasedColumns = sql`organization_id AS "organizationId", integration_id AS "integrationId",
  connection_id AS "connectionId", leased_until AS "leasedUntil", tools, protocol, failures`

type LeasedRow = Omit<LeasedCatalogue, 'leasedUntil'> & { leasedUntil: string } & Record<string, unknown>

const leasedCatalogue = ({ leasedUntil, ...row }: LeasedRow): LeasedCatalogue => ({
  ...row,
  leasedUntil: new Date(leasedUntil),
})

/**
 * Creates the catalogues of active connections, and of servers without connections, that have none, and deletes those of
 * connections that are gone. Deployment-wide. Conditions are one CASE after the joins: without statistics, PostgreSQL expects few rows
 * of each condition, and would look up every integration in an index by itself.
 */
export async function reconcileCatalogues(database: Database, now: Date): Promise<void> {
  await database.batch([
    database.execute(sql`
      DELETE FROM tool_catalogues t
      WHERE t.connection_id <> '' AND NOT EXISTS (SELECT 1 FROM connections c WHERE c.id = t.connection_id)`),
    database.execute(sql`
      INSERT INTO tool_catalogues (integration_id, connection_id, organization_id, next_refresh_at)
      SELECT wanted.integration_id, wanted.connection_id, wanted.organization_id, ${now.toISOString()}::timestamptz
      FROM (
        SELECT i.id AS integration_id, i.organization_id, i.deleted_at, i.kind, i.authorization, c.id AS active,
          CASE WHEN i.kind = 'openapi' THEN '' ELSE coalesce(c.id, '') END AS connection_id
        FROM integrations i LEFT JOIN connections c
          ON c.integration_id = i.id AND c.organization_id = i.organization_id AND c.status = 'active'
      ) AS wanted
      LEFT JOIN tool_catalogues t
        ON t.integration_id = wanted.integration_id AND t.connection_id = wanted.connection_id
      WHERE t.integration_id IS NULL AND CASE WHEN wanted.deleted_at IS NOT NULL THEN false
        WHEN wanted.kind = 'openapi' THEN true
        ELSE wanted.kind = 'mcp' AND (wanted.authorization->>'kind' = 'none') = (wanted.active IS NULL) END
      ON CONFLICT (integration_id, connection_id) DO NOTHING`),
  ])
}

/** Catalogues that are due and looked at in one statement. */
const MOST_DUE = 100

/**
 * Leases catalogues that are due, longest due first: a second job at the same time gets others. Deployment-wide. Catalogues
 * of disabled integrations and of connections that are not active rest; those of documents change only with them. One that
 * rests is not due again before `restingUntil`, so that a search does not pass all of them each time.
 * @returns `hasMore`: whether others may be due.
 */
export async function leaseDueCatalogues(
  database: Database,
  {
    now,
    leasedUntil,
    most,
    restingUntil,
  }: { now: Date; leasedUntil: Date; most: number; restingUntil: Date },
): Promise<{ leases: LeasedCatalogue[]; hasMore: boolean }> {
  const at = sql`${now.toISOString()}::timestamptz`
  const { rows } = await database.execute<LeasedRow & { isResting: boolean }>(sql`
    WITH due AS MATERIALIZED (
      SELECT ctid AS place, integration_id, connection_id, refreshed_at, next_refresh_at FROM tool_catalogues
      WHERE next_refresh_at <= ${at} AND (leased_until IS NULL OR leased_until <= ${at})
      ORDER BY next_refresh_at LIMIT ${MOST_DUE} FOR UPDATE SKIP LOCKED
    ), judged AS MATERIALIZED (
      SELECT place, next_refresh_at, NOT coalesce((SELECT i.deleted_at IS NULL AND i.disabled_at IS NULL AND (CASE
          WHEN i.kind = 'openapi' THEN due.refreshed_at IS NULL
          WHEN due.connection_id = '' THEN i.authorization->>'kind' = 'none'
          ELSE (SELECT c.status = 'active' FROM connections c WHERE c.id = due.connection_id) END)
        FROM integrations i WHERE i.id = due.integration_id), false) AS is_resting
      FROM due
    ), chosen AS MATERIALIZED (
      SELECT place, is_resting FROM judged WHERE is_resting
      UNION ALL (SELECT place, is_resting FROM judged WHERE NOT is_resting ORDER BY next_refresh_at LIMIT ${most})
    )
    UPDATE tool_catalogues SET
      leased_until = CASE WHEN chosen.is_resting THEN NULL ELSE ${leasedUntil.toISOString()}::timestamptz END,
      next_refresh_at = CASE WHEN chosen.is_resting THEN ${restingUntil.toISOString()}::timestamptz
        ELSE tool_catalogues.next_refresh_at END
    FROM chosen WHERE tool_catalogues.ctid = chosen.place
    RETURNING ${leasedColumns}, chosen.is_resting AS "isResting"`)
  return {
    leases: rows
      .filter(({ isResting }) => !isResting)
      .map(({ isResting: _, ...row }) => leasedCatalogue(row as LeasedRow)),
    hasMore: rows.length > 0,
  }
}

/** Leases one catalogue, due or not, and creates it if it does not exist. @returns null while another job has it. */
export async function leaseCatalogue(
  database: Database,
  { organizationId, integrationId, connectionId }: CatalogueKey,
  { now, leasedUntil }: { now: Date; leasedUntil: Date },
): Promise<LeasedCatalogue | null> {
  const { rows } = await database.execute<LeasedRow>(sql`
    INSERT INTO tool_catalogues AS t (integration_id, connection_id, organization_id, leased_until)
    VALUES (${integrationId}, ${connectionId}, ${organizationId}, ${leasedUntil.toISOString()}::timestamptz)
    ON CONFLICT (integration_id, connection_id) DO UPDATE SET leased_until = excluded.leased_until
    WHERE t.organization_id = excluded.organization_id
      AND (t.leased_until IS NULL OR t.leased_until <= ${now.toISOString()}::timestamptz)
    RETURNING ${leasedColumns}`)
  return rows[0] ? leasedCatalogue(rows[0]) : null
}

/** The state of each definition of an integration that the names of a catalogue have had, and whether it has any. */
export async function selectKnownDefinitions(
  database: Database,
  { organizationId, integrationId }: Omit<CatalogueKey, 'connectionId'>,
): Promise<Array<{ name: string; hash: string; state: 'pending' | 'approved' | 'rejected' }>> {
  return database
    .select({ name: toolDefinitions.name, hash: toolDefinitions.hash, state: toolDefinitions.state })
    .from(toolDefinitions)
    .where(
      and(
        eq(toolDefinitions.organizationId, organizationId),
        eq(toolDefinitions.integrationId, integrationId),
      ),
    )
}

/** A refresh that succeeded, until its lease is over. */
export interface RefreshedCatalogue {
  tools: Array<{ name: string; hash: string }>
  protocol: McpServerProtocol | null
  /** Tools of the upstream that are not offered, for administrators; null if there are none. */
  warning: string | null
  now: Date
  nextRefreshAt: Date
}

const refreshedColumns = ({ tools, protocol, warning, now, nextRefreshAt }: RefreshedCatalogue) => ({
  tools,
  protocol: protocol as Record<string, unknown> | null,
  refreshedAt: now,
  staleSince: null,
  failures: 0,
  error: warning,
  nextRefreshAt,
  leasedUntil: null,
})

/** Whether the job still has its lease: a slower one must not overwrite what came after it. */
const isLeased = (lease: LeasedCatalogue) =>
  and(isCatalogue(lease), eq(toolCatalogues.leasedUntil, lease.leasedUntil))

/** Records a refresh that changed nothing. */
export async function updateUnchanged(
  database: Database,
  lease: LeasedCatalogue,
  refreshed: RefreshedCatalogue,
): Promise<void> {
  await database.update(toolCatalogues).set(refreshedColumns(refreshed)).where(isLeased(lease))
}

/** Definitions for each statement: a request to the database has a limit of size. */
const DEFINITIONS_OF_STATEMENT = 200

/** Stores a changed catalogue with its new definitions, in one transaction. */
export function storeChanged(
  scope: OrganizationScope,
  lease: LeasedCatalogue,
  refreshed: RefreshedCatalogue,
  added: {
    definitions: readonly PinnedDefinition[]
    state: 'pending' | 'approved'
    decidedBy: string | null
  },
): Promise<EpochChange<unknown>> {
  const { database } = scope
  const rows = added.definitions.map(({ definition, binding, hash }) => ({
    integrationId: lease.integrationId,
    organizationId: lease.organizationId,
    name: definition.name,
    hash,
    definition: definition as unknown as Record<string, unknown>,
    binding: binding as unknown as Record<string, unknown> | null,
    state: added.state,
    decidedBy: added.decidedBy,
    decidedAt: added.decidedBy === null ? null : refreshed.now,
  }))
  const inserts = Array.from({ length: Math.ceil(rows.length / DEFINITIONS_OF_STATEMENT) }, (_, part) =>
    database
      .insert(toolDefinitions)
      .values(rows.slice(part * DEFINITIONS_OF_STATEMENT, (part + 1) * DEFINITIONS_OF_STATEMENT))
      .onConflictDoNothing(),
  )
  const update = database.update(toolCatalogues).set(refreshedColumns(refreshed)).where(isLeased(lease))
  return raisingEpoch(scope, update, ...inserts)
}

/** Records a refresh that failed. The last good tools stay. */
export async function updateFailed(
  database: Database,
  lease: LeasedCatalogue,
  failure: { error: string; now: Date; nextRefreshAt: Date },
): Promise<void> {
  await database
    .update(toolCatalogues)
    .set({
      failures: lease.failures + 1,
      error: failure.error,
      staleSince: sql`coalesce(${toolCatalogues.staleSince}, ${failure.now.toISOString()}::timestamptz)`,
      nextRefreshAt: failure.nextRefreshAt,
      leasedUntil: null,
    })
    .where(isLeased(lease))
}

/** The connection of a catalogue; null if there is none, or none that can be used. */
export async function selectCatalogueConnection(
  database: Database,
  { organizationId, integrationId, connectionId }: CatalogueKey,
): Promise<Connection | null> {
  const [row] = await database
    .select(connectionColumns)
    .from(connections)
    .innerJoin(integrations, eq(integrations.id, connections.integrationId))
    .where(
      and(
        eq(connections.organizationId, organizationId),
        eq(connections.integrationId, integrationId),
        eq(connections.id, connectionId),
      ),
    )
  return row ?? null
}
