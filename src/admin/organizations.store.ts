import { and, eq, getTableColumns, sql } from 'drizzle-orm'
import type { Database } from '../../schema/database.ts'
import { organizations } from '../../schema/identity.ts'
import {
  disabledSince,
  equal,
  insertedRow,
  type OrganizationScope,
  selectPage,
} from '../ledger/changes/scoped-statements.store.ts'
import type { Page, PageRequest } from '../wire/page-cursor.ts'
import { endSessions } from './sign-in/sessions.store.ts'
import { endSetupLinks } from './sign-in/setup-links.store.ts'

export type OrganizationRow = typeof organizations.$inferSelect

export interface OrganizationValues {
  name?: string | undefined
  rateLimitPerMinute?: number | null | undefined
  userRateLimitPerMinute?: number | null | undefined
  /** Number of shards, from 1 to 16. */
  ledgerShards?: number | undefined
  /** True takes the present time unless it is disabled already; false enables. */
  disabled?: boolean | undefined
}

export async function insertOrganization(
  database: Database,
  organizationId: string,
  values: OrganizationValues & { name: string; slug: string },
): Promise<OrganizationRow> {
  const { name, slug, rateLimitPerMinute = null, userRateLimitPerMinute = null, ledgerShards = 1 } = values
  const rows = await database
    .insert(organizations)
    .values({ id: organizationId, name, slug, rateLimitPerMinute, userRateLimitPerMinute, ledgerShards })
    .returning()
  return insertedRow(rows, 'organization')
}

/** @param organizationId the only one that may be seen, or null for every one of the deployment. */
export function selectOrganizations(
  database: Database,
  organizationId: string | null,
  filter: { slug?: string | undefined },
  page: PageRequest,
): Promise<Page<OrganizationRow>> {
  const { createdAt, id, slug } = organizations
  return selectPage(page, { at: createdAt, id }, (position, isAfter) =>
    database
      .select({ ...getTableColumns(organizations), position })
      .from(organizations)
      .where(and(equal(id, organizationId ?? undefined), equal(slug, filter.slug), isAfter)),
  )
}

export async function selectOrganization({
  database,
  organizationId,
}: OrganizationScope): Promise<OrganizationRow | null> {
  const [row] = await database.select().from(organizations).where(eq(organizations.id, organizationId))
  return row ?? null
}

/** Changes an organization and raises its epoch in one statement. @returns null if there is none. */
export async function updateOrganization(
  scope: OrganizationScope,
  values: OrganizationValues,
): Promise<OrganizationRow | null> {
  const { database, organizationId } = scope
  const { disabled, ...columns } = values
  const change = database
    .update(organizations)
    .set({
      ...columns,
      ...(disabled !== undefined && { disabledAt: disabledSince(organizations.disabledAt, disabled) }),
      epoch: sql`${organizations.epoch} + 1`,
    })
    .where(eq(organizations.id, organizationId))
    .returning()
  if (!disabled) return (await change)[0] ?? null
  // Else they would be valid again when the organization is enabled.
  const [rows] = await database.batch([change, endSessions(scope, null), endSetupLinks(scope, null)])
  return rows[0] ?? null
}
