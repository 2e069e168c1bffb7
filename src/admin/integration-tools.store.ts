import { and, eq, inArray, sql } from 'drizzle-orm'
import { connections, toolCatalogues, toolDefinitions } from '../../schema/integrations.ts'
import type { McpServerProtocol, OperationBinding, ToolDefinition } from '../integrations/types.ts'
import { type OrganizationScope, raisingEpoch } from '../ledger/changes/scoped-statements.store.ts'

export type DefinitionState = 'pending' | 'approved' | 'rejected'

export interface CatalogueStateRow {
  connectionId: string
  protocol: McpServerProtocol | null
  toolCount: number
  refreshedAt: Date | null
  staleSince: Date | null
  failures: number
  error: string | null
  nextRefreshAt: Date
}

/** The state of each catalogue of an integration, in order of connection. */
export async function selectCatalogueStates(
  { database, organizationId }: OrganizationScope,
  integrationId: string,
): Promise<CatalogueStateRow[]> {
  const rows = await database
    .select({
      connectionId: toolCatalogues.connectionId,
      protocol: toolCatalogues.protocol,
      toolCount: sql<number>`coalesce(jsonb_array_length(${toolCatalogues.tools}), 0)`,
      refreshedAt: toolCatalogues.refreshedAt,
      staleSince: toolCatalogues.staleSince,
      failures: toolCatalogues.failures,
      error: toolCatalogues.error,
      nextRefreshAt: toolCatalogues.nextRefreshAt,
    })
    .from(toolCatalogues)
    .where(
      and(eq(toolCatalogues.organizationId, organizationId), eq(toolCatalogues.integrationId, integrationId)),
    )
    .orderBy(toolCatalogues.connectionId)
  return rows as CatalogueStateRow[]
}

/** Connections of an integration whose tools can be listed, oldest first. */
export async function selectActiveConnectionIds(
  { database, organizationId }: OrganizationScope,
  integrationId: string,
): Promise<string[]> {
  const rows = await database
    .select({ id: connections.id })
    .from(connections)
    .where(
      and(
        eq(connections.organizationId, organizationId),
        eq(connections.integrationId, integrationId),
        eq(connections.status, 'active'),
      ),
    )
    .orderBy(connections.createdAt, connections.id)
  return rows.map(({ id }) => id)
}

/** A definition that an upstream lists, or has listed. */
export interface ListedDefinition {
  name: string
  hash: string
  state: DefinitionState
  definition: ToolDefinition
  binding: OperationBinding | null
  decidedBy: string | null
  decidedAt: Date | null
  createdAt: Date
  /** Whether a current catalogue has the definition. */
  isListed: boolean
}

const isOf = ({ organizationId }: OrganizationScope, integrationId: string) =>
  and(eq(toolDefinitions.organizationId, organizationId), eq(toolDefinitions.integrationId, integrationId))

/** Whether a current catalogue of the integration has this definition. */
const isListed = sql<boolean>`exists (
  SELECT 1 FROM tool_catalogues c
  WHERE c.integration_id = tool_definitions.integration_id
    AND c.tools @> jsonb_build_array(jsonb_build_object('name', tool_definitions.name, 'hash', tool_definitions.hash)))`

/** Every definition of an integration, by name and age. */
export async function selectListedDefinitions(
  scope: OrganizationScope,
  integrationId: string,
): Promise<ListedDefinition[]> {
  const rows = await scope.database
    .select({
      name: toolDefinitions.name,
      hash: toolDefinitions.hash,
      state: toolDefinitions.state,
      definition: toolDefinitions.definition,
      binding: toolDefinitions.binding,
      decidedBy: toolDefinitions.decidedBy,
      decidedAt: toolDefinitions.decidedAt,
      createdAt: toolDefinitions.createdAt,
      isListed,
    })
    .from(toolDefinitions)
    .where(isOf(scope, integrationId))
    .orderBy(toolDefinitions.name, toolDefinitions.createdAt)
  return rows as unknown as ListedDefinition[]
}

/** Decides definitions by name and hash. @returns those whose state changed. */
export function updateDefinitions(
  scope: OrganizationScope,
  integrationId: string,
  keys: ReadonlyArray<{ name: string; hash: string }>,
  decision: { state: 'approved' | 'rejected'; decidedBy: string; decidedAt: Date },
) {
  const hashes = keys.map(({ hash }) => hash)
  const names = keys.map(({ name }) => name)
  return raisingEpoch(
    scope,
    scope.database
      .update(toolDefinitions)
      .set(decision)
      .where(
        and(
          isOf(scope, integrationId),
          inArray(toolDefinitions.hash, hashes),
          inArray(toolDefinitions.name, names),
        ),
      )
      .returning({ name: toolDefinitions.name, hash: toolDefinitions.hash }),
  )
}
