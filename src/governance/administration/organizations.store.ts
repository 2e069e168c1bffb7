import { and, eq, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { organizations } from '../../../schema/identity.ts'
import type { Page, PageRequest } from '../../wire/page-cursor.ts'
import { beyond, disabledSince, microseconds, newestFirst, toPage } from './administration.store.ts'

export type OrganizationRow = typeof organizations.$inferSelect

export interface OrganizationValues {
  name?: string | undefined
  rateLimitPerMinute?: number | null | undefined
  userRateLimitPerMinute?: number | null | undefined
  /** From 1 to 16. */
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
  const [row] = await database
    .insert(organizations)
    .values({ id: organizationId, name, slug, rateLimitPerMinute, userRateLimitPerMinute, ledgerShards })
    .returning()
  if (row === undefined) throw new Error('the organization was not inserted')
  return row
}

/** @param organizationId the only one that may be seen, or null for every one of the deployment. */
export async function selectOrganizations(
  database: Database,
  organizationId: string | null,
  filter: { slug?: string | undefined },
  page: PageRequest,
): Promise<Page<OrganizationRow>> {
  const { createdAt, id, slug } = organizations
  const rows = await database
    .select({ row: organizations, at: microseconds(createdAt) })
    .from(organizations)
    .where(
      and(
        organizationId === null ? undefined : eq(id, organizationId),
        filter.slug === undefined ? undefined : eq(slug, filter.slug),
        beyond(createdAt, id, page.after),
      ),
    )
    .orderBy(...newestFirst(createdAt, id))
    .limit(page.limit + 1)
  const cut = toPage(rows, page, ({ row, at }) => ({ at, id: row.id }))
  return { rows: cut.rows.map(({ row }) => row), next: cut.next }
}

export async function selectOrganization(
  database: Database,
  organizationId: string,
): Promise<OrganizationRow | null> {
  const [row] = await database.select().from(organizations).where(eq(organizations.id, organizationId))
  return row ?? null
}

/** Changes an organization and raises its epoch in one statement. @returns null if there is none. */
export async function updateOrganization(
  database: Database,
  organizationId: string,
  values: OrganizationValues,
): Promise<OrganizationRow | null> {
  const { disabled, ...columns } = values
  const [row] = await database
    .update(organizations)
    .set({
      ...columns,
      ...(disabled !== undefined && { disabledAt: disabledSince(organizations.disabledAt, disabled) }),
      epoch: sql`${organizations.epoch} + 1`,
    })
    .where(eq(organizations.id, organizationId))
    .returning()
  return row ?? null
}
