import { and, eq, inArray, isNull, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { memberships } from '../../../schema/identity.ts'
import { connectionShares, connections, integrations } from '../../../schema/integrations.ts'
import { effectiveStatus, ofOwner } from '../connections/connections.store.ts'
import type { Integration, McpServerProtocol, OperationBinding, ToolDefinition } from '../types.ts'
import { integrationOf } from './integration-row.ts'

/** The approved tools of one catalogue. Catalogues with the same tools have the same digest. */
export interface CatalogueRow {
  integrationId: string
  /** Empty for the catalogue of an integration without connections. */
  connectionId: string
  protocol: McpServerProtocol | null
  digest: string
}

/** The users that may use a connection. */
export interface ConnectionAccess {
  id: string
  integrationId: string
  ownerUserId: string | null
  groupIds: string[]
}

/** A definition of a catalogue: its name at the upstream, and its hash. */
export type CatalogueEntry = readonly [name: string, hash: string]

export interface DefinitionRow {
  integrationId: string
  name: string
  hash: string
  definition: ToolDefinition
  binding: OperationBinding | null
}

/** Columns of an integration that calls need: without its document and its secret. */
export const integrationColumns = {
  id: integrations.id,
  organizationId: integrations.organizationId,
  slug: integrations.slug,
  displayName: integrations.displayName,
  description: integrations.description,
  kind: integrations.kind,
  url: integrations.url,
  authorization: integrations.authorization,
  price: integrations.price,
  disabledTools: integrations.disabledTools,
  disabledAt: integrations.disabledAt,
}

/** Catalogues with those of their tools that are approved. Looks up each definition: a join reads all that there ever were. */
const approvedEntries = (organizationId: string) => sql`
  SELECT c.integration_id, c.connection_id, c.protocol, t.name, t.hash
  FROM tool_catalogues c
  CROSS JOIN LATERAL jsonb_to_recordset(c.tools) AS t(name text, hash text)
  CROSS JOIN LATERAL (SELECT FROM tool_definitions d WHERE d.integration_id = c.integration_id
    AND d.name = t.name AND d.hash = t.hash AND d.state = 'approved' OFFSET 0) AS approved
  WHERE c.organization_id = ${organizationId}`

const entriesDigest = sql`md5(string_agg(name || ' ' || hash, E'\n' ORDER BY name))`

/** Integrations, catalogues and connections of an organization, from one snapshot. */
export async function selectCatalogues(
  database: Database,
  organizationId: string,
): Promise<{ integrations: Integration[]; catalogues: CatalogueRow[]; connections: ConnectionAccess[] }> {
  const [integrationRows, catalogues, connectionRows] = await database.batch([
    database
      .select(integrationColumns)
      .from(integrations)
      .where(and(eq(integrations.organizationId, organizationId), isNull(integrations.deletedAt))),
    database.execute<CatalogueRow & Record<string, unknown>>(sql`
      SELECT integration_id AS "integrationId", connection_id AS "connectionId", protocol, ${entriesDigest} AS digest
      FROM (${approvedEntries(organizationId)}) AS entries
      GROUP BY integration_id, connection_id, protocol`),
    database
      .select({
        id: connections.id,
        integrationId: connections.integrationId,
        ownerUserId: connections.ownerUserId,
        groupIds: sql<string[]>`array(
          SELECT ${connectionShares.groupId}::text FROM ${connectionShares}
          WHERE ${connectionShares.connectionId} = ${connections.id}
            AND ${connectionShares.organizationId} = ${connections.organizationId})`,
      })
      .from(connections)
      .leftJoin(memberships, ofOwner)
      .where(
        and(
          eq(connections.organizationId, organizationId),
          // A connection that must be connected again keeps its tools: the error of a call explains it.
          inArray(effectiveStatus, ['active', 'needs_reauth']),
        ),
      ),
  ])
  return {
    integrations: integrationRows.map(integrationOf),
    catalogues: catalogues.rows,
    connections: connectionRows,
  }
}

/** The entries of catalogues, by digest. */
export async function selectEntries(
  database: Database,
  organizationId: string,
  digests: readonly string[],
): Promise<Map<string, CatalogueEntry[]>> {
  const { rows } = await database.execute<{ digest: string; entries: CatalogueEntry[] }>(sql`
    SELECT DISTINCT ON (digest) digest, entries FROM (
      SELECT ${entriesDigest} AS digest, jsonb_agg(jsonb_build_array(name, hash) ORDER BY name) AS entries
      FROM (${approvedEntries(organizationId)}) AS approved
      GROUP BY integration_id, connection_id) AS catalogues
    WHERE digest IN (SELECT jsonb_array_elements_text(${JSON.stringify(digests)}::jsonb))`)
  return new Map(rows.map(({ digest, entries }) => [digest, entries]))
}

/** Approved definitions. @param wanted integration, name and hash of each. */
export async function selectDefinitions(
  database: Database,
  organizationId: string,
  wanted: ReadonlyArray<{ integrationId: string; name: string; hash: string }>,
): Promise<DefinitionRow[]> {
  const { rows } = await database.execute<DefinitionRow & Record<string, unknown>>(sql`
    SELECT d.integration_id AS "integrationId", d.name, d.hash, d.definition, d.binding
    FROM tool_definitions d
    JOIN jsonb_to_recordset(${JSON.stringify(wanted)}::jsonb) AS w("integrationId" uuid, name text, hash text)
      ON w."integrationId" = d.integration_id AND w.name = d.name AND w.hash = d.hash
    WHERE d.organization_id = ${organizationId} AND d.state = 'approved'`)
  return rows
}

/** @returns null for an integration that was deleted. */
export async function selectIntegration(
  database: Database,
  organizationId: string,
  name: { id: string } | { slug: string },
): Promise<Integration | null> {
  const isNamed = 'id' in name ? eq(integrations.id, name.id) : eq(integrations.slug, name.slug)
  const [row] = await database
    .select(integrationColumns)
    .from(integrations)
    .where(and(eq(integrations.organizationId, organizationId), isNamed, isNull(integrations.deletedAt)))
  return row ? integrationOf(row) : null
}

/** The new definitions of an integration that are approved automatically; none if the integration was deleted. */
export async function selectApproval(
  database: Database,
  { organizationId, integrationId }: { organizationId: string; integrationId: string },
): Promise<'first' | 'automatic' | 'manual'> {
  const [row] = await database
    .select({ approval: integrations.approval })
    .from(integrations)
    .where(and(eq(integrations.organizationId, organizationId), eq(integrations.id, integrationId)))
  return row?.approval ?? 'manual'
}

/** The OpenAPI document of an integration; null for an MCP server. */
export async function selectDocument(
  database: Database,
  { organizationId, integrationId }: { organizationId: string; integrationId: string },
): Promise<Record<string, unknown> | null> {
  const [row] = await database
    .select({ document: integrations.document })
    .from(integrations)
    .where(and(eq(integrations.organizationId, organizationId), eq(integrations.id, integrationId)))
  return row?.document ?? null
}
