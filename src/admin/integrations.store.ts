import { and, eq, isNull, sql } from 'drizzle-orm'
import {
  connections,
  integrationGrants,
  integrations,
  toolCatalogues,
  toolDefinitions,
} from '../../schema/integrations.ts'
import { integrationColumns } from '../integrations/catalogue/tool-catalogue.store.ts'
import {
  disabledSince,
  type EpochChange,
  equal,
  insertedRow,
  type OrganizationScope,
  raisingEpoch,
  selectPage,
} from '../ledger/changes/scoped-statements.store.ts'
import type { Page, PageRequest } from '../wire/page-cursor.ts'

/** An integration as administrators see it: without its document and its secret. */
const shownColumns = {
  ...integrationColumns,
  approval: integrations.approval,
  hasClientSecret: sql<boolean>`${integrations.sealedClientSecret} is not null`,
  createdAt: integrations.createdAt,
}

export type IntegrationRow = Pick<
  typeof integrations.$inferSelect,
  Exclude<keyof typeof shownColumns, 'hasClientSecret'>
> & { hasClientSecret: boolean }

type IntegrationInsert = typeof integrations.$inferInsert

const isIntegration = ({ organizationId }: OrganizationScope, id: string) =>
  and(
    eq(integrations.organizationId, organizationId),
    eq(integrations.id, id),
    isNull(integrations.deletedAt),
  )

/** @param hasCatalogue whether its tools are the same for every connection. @throws the database's unique violation for a taken slug. */
export async function insertIntegration(
  scope: OrganizationScope,
  values: Omit<IntegrationInsert, 'organizationId'>,
  hasCatalogue: boolean,
): Promise<EpochChange<IntegrationRow>> {
  const { database, organizationId } = scope
  const insert = database.insert(integrations).values({ ...values, organizationId })
  const catalogue = { integrationId: values.id, organizationId, connectionId: '' }
  const { result, epoch } = await raisingEpoch(
    scope,
    ...([insert, ...(hasCatalogue ? [database.insert(toolCatalogues).values(catalogue)] : [])] as const),
    database.select(shownColumns).from(integrations).where(isIntegration(scope, values.id)),
  )
  return { result: insertedRow(result, 'integration'), epoch }
}

export async function selectShownIntegration(
  scope: OrganizationScope,
  id: string,
): Promise<IntegrationRow | null> {
  const [row] = await scope.database.select(shownColumns).from(integrations).where(isIntegration(scope, id))
  return row ?? null
}

export function selectIntegrations(
  { database, organizationId }: OrganizationScope,
  filter: { slug?: string | undefined },
  page: PageRequest,
): Promise<Page<IntegrationRow>> {
  return selectPage(page, { at: integrations.createdAt, id: integrations.id }, (position, isAfter) =>
    database
      .select({ ...shownColumns, position })
      .from(integrations)
      .where(
        and(
          eq(integrations.organizationId, organizationId),
          isNull(integrations.deletedAt),
          equal(integrations.slug, filter.slug),
          isAfter,
        ),
      ),
  )
}

type IntegrationChange = Partial<
  Pick<
    IntegrationInsert,
    | 'displayName'
    | 'description'
    | 'url'
    | 'document'
    | 'authorization'
    | 'sealedClientSecret'
    | 'approval'
    | 'price'
  >
> & { disabled?: boolean | undefined }

/** @param at address and authorization that the row must still have. @returns null when they are others. */
export async function updateIntegration(
  scope: OrganizationScope,
  id: string,
  at: Pick<IntegrationRow, 'url' | 'authorization'>,
  { disabled, ...values }: IntegrationChange,
): Promise<EpochChange<void> | null> {
  const { result, epoch } = await raisingEpoch(
    scope,
    scope.database
      .update(integrations)
      .set({
        ...values,
        // A statement that sets nothing is an error.
        slug: sql`${integrations.slug}`,
        ...(disabled !== undefined && { disabledAt: disabledSince(integrations.disabledAt, disabled) }),
      })
      .where(
        and(
          isIntegration(scope, id),
          eq(integrations.url, at.url),
          sql`${integrations.authorization} = ${JSON.stringify(at.authorization)}::jsonb`,
        ),
      )
      .returning({ id: integrations.id }),
  )
  return result.length === 0 ? null : { result: undefined, epoch }
}

/** Replaces the tools that are switched off by what a change of the stored set gives. */
export const updateDisabledTools = (
  scope: OrganizationScope,
  id: string,
  change: { disable: readonly string[] } | { enable: readonly string[] },
) => {
  const names = JSON.stringify('disable' in change ? change.disable : change.enable)
  const stored = sql`SELECT jsonb_array_elements_text(${integrations.disabledTools}) AS name`
  const given = sql`SELECT jsonb_array_elements_text(${names}::jsonb) AS name`
  const set = 'disable' in change ? sql`${stored} UNION ${given}` : sql`${stored} EXCEPT ${given}`
  return raisingEpoch(
    scope,
    scope.database
      .update(integrations)
      .set({
        disabledTools: sql`(SELECT coalesce(jsonb_agg(name ORDER BY name), '[]'::jsonb) FROM (${set}) AS names)`,
      })
      .where(isIntegration(scope, id)),
  )
}

/**
 * Deletes an integration with its connections, grants and definitions, so that a new integration of the same slug starts empty.
 * Its row is kept for audit records, without secrets.
 */
export const deleteIntegration = (
  scope: OrganizationScope,
  { id, slug }: Pick<IntegrationRow, 'id' | 'slug'>,
) => {
  const { database, organizationId } = scope
  return raisingEpoch(
    scope,
    database
      .delete(connections)
      .where(and(eq(connections.organizationId, organizationId), eq(connections.integrationId, id))),
    database
      .delete(toolCatalogues)
      .where(and(eq(toolCatalogues.organizationId, organizationId), eq(toolCatalogues.integrationId, id))),
    database
      .delete(toolDefinitions)
      .where(and(eq(toolDefinitions.organizationId, organizationId), eq(toolDefinitions.integrationId, id))),
    database
      .delete(integrationGrants)
      .where(
        and(eq(integrationGrants.organizationId, organizationId), eq(integrationGrants.integration, slug)),
      ),
    database
      .update(integrations)
      .set({ deletedAt: sql`now()`, sealedClientSecret: null, document: null })
      .where(isIntegration(scope, id)),
  )
}
