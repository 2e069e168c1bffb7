import { eq, or, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { organizations } from '../../../schema/identity.ts'
import type { OrganizationScope } from '../../ledger/changes/scoped-statements.store.ts'
import type { RetentionSettings } from '../../wire/retention.ts'

type Settings = Partial<RetentionSettings> | null

/** @returns null if there is no such organization. */
export async function selectRetention({
  database,
  organizationId,
}: OrganizationScope): Promise<{ retention: Settings } | null> {
  const [row] = await database
    .select({ retention: organizations.retention })
    .from(organizations)
    .where(eq(organizations.id, organizationId))
  return (row as { retention: Settings } | undefined) ?? null
}

/** Replaces the settings. The next sweep applies them. @returns whether there is such an organization. */
export async function updateRetention(
  { database, organizationId }: OrganizationScope,
  settings: RetentionSettings,
): Promise<boolean> {
  const rows = await database
    .update(organizations)
    .set({ retention: { ...settings }, retentionSweptAt: null })
    .where(eq(organizations.id, organizationId))
    .returning({ id: organizations.id })
  return rows.length > 0
}

/**
 * The different settings of all organizations, null for those without. Walks along the index of settings: `DISTINCT` would read every
 * organization.
 */
export async function selectDistinctRetention(database: Database): Promise<Settings[]> {
  const { rows } = await database.execute<{ retention: Settings }>(sql`
    WITH RECURSIVE found AS (
      (SELECT retention FROM ${organizations} WHERE retention IS NOT NULL ORDER BY retention LIMIT 1)
      UNION ALL
      SELECT next.retention FROM found CROSS JOIN LATERAL (
        SELECT retention FROM ${organizations} AS organization WHERE organization.retention > found.retention
        ORDER BY organization.retention LIMIT 1) AS next
    )
    SELECT retention FROM found
    UNION ALL (SELECT NULL FROM ${organizations} WHERE retention IS NULL LIMIT 1)`)
  return rows.map(({ retention }) => retention)
}

/** Organizations that no sweep has finished since a time, the one that waits longest first. */
export async function selectOrganizationsToSweep(
  database: Database,
  sweptBefore: Date,
  most: number,
): Promise<Array<{ id: string; retention: Settings }>> {
  const { id, retention, retentionSweptAt } = organizations
  const rows = await database
    .select({ id, retention })
    .from(organizations)
    .where(
      or(
        sql`${retentionSweptAt} IS NULL`,
        sql`${retentionSweptAt} < ${sweptBefore.toISOString()}::timestamptz`,
      ),
    )
    .orderBy(sql`${retentionSweptAt} NULLS FIRST`, id)
    .limit(most)
  return rows as Array<{ id: string; retention: Settings }>
}

export async function markSwept(database: Database, organizationId: string, at: Date): Promise<void> {
  await database
    .update(organizations)
    .set({ retentionSweptAt: at })
    .where(eq(organizations.id, organizationId))
}
