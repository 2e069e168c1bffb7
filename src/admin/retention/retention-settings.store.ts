import { eq, inArray, or, type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { auditRecords } from '../../../schema/governance.ts'
import { organizations } from '../../../schema/identity.ts'
import type { OrganizationScope } from '../../ledger/changes/scoped-statements.store.ts'
import type { RetentionSettings } from '../../wire/retention.ts'
import type { RetentionSeal, StoredRetention } from './retention-seal.ts'

const { id, retention, retentionSeal, retentionSweptAt } = organizations

/** Reads by the index `audit_records_retention`. Milliseconds. */
const CHANGED_AT = sql<
  number | null
>`(SELECT floor(extract(epoch FROM max(record.at)) * 1000)::float8 FROM ${auditRecords} AS record
  WHERE record.organization_id = ${organizations}.id AND record.action = 'retention.replaced')`

async function selectStored(
  database: Database,
  condition: SQL | undefined,
  order: SQL,
  most: number,
): Promise<StoredRetention[]> {
  const rows = await database
    .select({ organizationId: id, retention, seal: retentionSeal, changedAt: CHANGED_AT })
    .from(organizations)
    .where(condition)
    .orderBy(order, id)
    .limit(most)
  return rows.map(({ changedAt, ...row }) => ({
    ...row,
    changedAt: changedAt === null ? null : new Date(Number(changedAt)),
  }))
}

/** The settings of organizations; of those that exist. */
export const selectRetentions = (
  database: Database,
  organizationIds: readonly string[],
): Promise<StoredRetention[]> =>
  selectStored(database, inArray(id, [...organizationIds]), sql`${id}`, organizationIds.length)

/** Replaces the settings. The next sweep applies them. @returns whether there is such an organization. */
export async function updateRetention(
  { database, organizationId }: OrganizationScope,
  settings: RetentionSettings,
  seal: RetentionSeal,
): Promise<boolean> {
  const rows = await database
    .update(organizations)
    .set({ retention: { ...settings }, retentionSeal: { ...seal }, retentionSweptAt: null })
    .where(eq(id, organizationId))
    .returning({ id })
  return rows.length > 0
}

/**
 * The different settings of all organizations, null for those without: not verified, and of any content. Walks along the index of
 * settings: `DISTINCT` would read every organization.
 */
export async function selectDistinctRetention(database: Database): Promise<unknown[]> {
  const { rows } = await database.execute<{ retention: unknown }>(sql`
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

/** Organizations that no sweep has come to since a time, the one that waits longest first. */
export const selectOrganizationsToSweep = (
  database: Database,
  sweptBefore: Date,
  most: number,
): Promise<StoredRetention[]> =>
  selectStored(
    database,
    or(
      sql`${retentionSweptAt} IS NULL`,
      sql`${retentionSweptAt} < ${sweptBefore.toISOString()}::timestamptz`,
    ),
    sql`${retentionSweptAt} NULLS FIRST`,
    most,
  )

/** How far the conversations of an organization were searched, of any content; null where they never were. */
export async function selectConversationSearch(database: Database, organizationId: string): Promise<unknown> {
  const [row] = await database
    .select({ search: organizations.conversationSearch })
    .from(organizations)
    .where(eq(id, organizationId))
  return row?.search ?? null
}

export async function updateConversationSearch(
  database: Database,
  organizationId: string,
  search: object,
): Promise<void> {
  await database.update(organizations).set({ conversationSearch: search }).where(eq(id, organizationId))
}

/** Puts an organization behind all others that wait for a sweep. */
export async function markSwept(database: Database, organizationId: string, at: Date): Promise<void> {
  await database.update(organizations).set({ retentionSweptAt: at }).where(eq(id, organizationId))
}
