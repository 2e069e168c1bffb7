import { and, eq, getTableColumns } from 'drizzle-orm'
import { integrationGrants } from '../../schema/integrations.ts'
import {
  type EpochChange,
  equal,
  insertedRow,
  type OrganizationScope,
  raisingEpoch,
  selectPage,
} from '../ledger/changes/scoped-statements.store.ts'
import type { Page, PageRequest } from '../wire/page-cursor.ts'

export type IntegrationGrantRow = typeof integrationGrants.$inferSelect

const isGrant = ({ organizationId }: OrganizationScope, grantId: string) =>
  and(eq(integrationGrants.organizationId, organizationId), eq(integrationGrants.id, grantId))

/** @throws the database's unique violation when the subject has a grant on the integration. */
export async function insertIntegrationGrant(
  scope: OrganizationScope,
  grant: Pick<IntegrationGrantRow, 'id' | 'subjectType' | 'subjectId' | 'integration' | 'tools'>,
): Promise<EpochChange<IntegrationGrantRow>> {
  const { database, organizationId } = scope
  const insert = database.insert(integrationGrants).values({ ...grant, organizationId })
  const { result, epoch } = await raisingEpoch(scope, insert.returning())
  return { result: insertedRow(result, 'grant'), epoch }
}

export async function selectIntegrationGrant(
  scope: OrganizationScope,
  grantId: string,
): Promise<IntegrationGrantRow | null> {
  const [row] = await scope.database.select().from(integrationGrants).where(isGrant(scope, grantId))
  return row ?? null
}

export function selectIntegrationGrants(
  { database, organizationId }: OrganizationScope,
  filter: { integration?: string | undefined },
  page: PageRequest,
): Promise<Page<IntegrationGrantRow>> {
  const { createdAt, id } = integrationGrants
  return selectPage(page, { at: createdAt, id }, (position, isAfter) =>
    database
      .select({ ...getTableColumns(integrationGrants), position })
      .from(integrationGrants)
      .where(
        and(
          eq(integrationGrants.organizationId, organizationId),
          equal(integrationGrants.integration, filter.integration),
          isAfter,
        ),
      ),
  )
}

export const deleteIntegrationGrant = (scope: OrganizationScope, grantId: string) =>
  raisingEpoch(scope, scope.database.delete(integrationGrants).where(isGrant(scope, grantId)))
