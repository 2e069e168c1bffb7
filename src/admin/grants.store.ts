import { and, eq, getTableColumns, inArray, or, type SQL } from 'drizzle-orm'
import type { Database } from '../../schema/database.ts'
import { grants, models } from '../../schema/models.ts'
import type { Principal } from '../identity/principal.ts'
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

/** A member, by what grants can name. */
export type GrantedMember = Pick<Principal, 'userId' | 'role' | 'groupIds'>

/** The grants that apply to a member; all where none is named. */
export function appliesTo(member: GrantedMember | undefined): SQL | undefined {
  if (member === undefined) return undefined
  const named = (type: GrantRow['subjectType'], ids: readonly string[]) =>
    and(eq(grants.subjectType, type), inArray(grants.subjectId, [...ids]))
  return or(
    eq(grants.subjectType, 'organization'),
    named('user', [member.userId]),
    named('role', [member.role]),
    named('group', member.groupIds),
  )
}

/** @param filter `member` keeps the grants that apply to it. */
export function selectGrants(
  { database, organizationId }: OrganizationScope,
  filter: { modelId?: string | undefined; member?: GrantedMember },
  page: PageRequest,
): Promise<Page<GrantRow>> {
  const isOfOrganization = eq(grants.organizationId, organizationId)
  const isWanted = and(isOfOrganization, equal(grants.modelId, filter.modelId), appliesTo(filter.member))
  return selectPage(page, { at: grants.createdAt, id: grants.id }, (position, isAfter) =>
    database
      .select({ ...getTableColumns(grants), position })
      .from(grants)
      .where(and(isWanted, isAfter)),
  )
}

export const deleteGrant = (scope: OrganizationScope, grantId: string) =>
  raisingEpoch(scope, scope.database.delete(grants).where(isGrant(scope.organizationId, grantId)))

/** Whether the deployment has this model, disabled or not. The query has no organization, since models belong to none. */
export async function selectModelExists(database: Database, modelId: string): Promise<boolean> {
  const rows = await database.select({ id: models.id }).from(models).where(eq(models.id, modelId))
  return rows.length > 0
}
