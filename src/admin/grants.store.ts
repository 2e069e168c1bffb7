import { and, eq, getTableColumns } from 'drizzle-orm'
import type { Database } from '../../schema/database.ts'
import { grants, models } from '../../schema/models.ts'
import {
  type EpochChange,
  equal,
  insertedRow,
  type OrganizationScope,
  raisingEpoch,
  selectPage,
} from '../ledger/changes/scoped-statements.store.ts'
import type { Page, PageRequest } from '../wire/page-cursor.ts'

export type GrantRow = typeof grants.$inferSelect
export type GrantSubject = Pick<GrantRow, 'subjectType' | 'subjectId'>

const isGrant = (organizationId: string, grantId: string) =>
  and(eq(grants.organizationId, organizationId), eq(grants.id, grantId))

/** @throws the database's unique violation when the grant exists. */
export async function insertGrant(
  scope: OrganizationScope,
  grant: GrantSubject & { id: string; modelId: string },
): Promise<EpochChange<GrantRow>> {
  const { database, organizationId } = scope
  const insert = database.insert(grants).values({ ...grant, organizationId })
  const { result, epoch } = await raisingEpoch(scope, insert.returning())
  return { result: insertedRow(result, 'grant'), epoch }
}

export async function selectGrant(
  { database, organizationId }: OrganizationScope,
  grantId: string,
): Promise<GrantRow | null> {
  const [row] = await database.select().from(grants).where(isGrant(organizationId, grantId))
  return row ?? null
}

export function selectGrants(
  { database, organizationId }: OrganizationScope,
  filter: { modelId?: string | undefined },
  page: PageRequest,
): Promise<Page<GrantRow>> {
  return selectPage(page, { at: grants.createdAt, id: grants.id }, (position, isAfter) =>
    database
      .select({ ...getTableColumns(grants), position })
      .from(grants)
      .where(and(eq(grants.organizationId, organizationId), equal(grants.modelId, filter.modelId), isAfter)),
  )
}

export const deleteGrant = (scope: OrganizationScope, grantId: string) =>
  raisingEpoch(scope, scope.database.delete(grants).where(isGrant(scope.organizationId, grantId)))

/** Whether the deployment has this model, disabled or not. The query has no organization, since models belong to none. */
export async function selectModelExists(database: Database, modelId: string): Promise<boolean> {
  const rows = await database.select({ id: models.id }).from(models).where(eq(models.id, modelId))
  return rows.length > 0
}
