import { and, eq, getTableColumns, isNull, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { erasures, memberships } from '../../../schema/identity.ts'
import { timeParameter } from '../../../schema/sql-values.ts'
import { type OrganizationScope, selectPage } from '../../ledger/changes/scoped-statements.store.ts'
import type { Page, PageRequest } from '../../wire/page-cursor.ts'
import { lockMembership } from '../lock-members.store.ts'

export type ErasureRow = typeof erasures.$inferSelect
type NewErasure = Pick<ErasureRow, 'id' | 'userId' | 'requestedBy' | 'step' | 'createdAt'>

/**
 * Begins an erasure of a disabled member. `updateMember` takes the same lock and enables no member with an erasure, so a member is either
 * enabled before, and has no erasure, or stays disabled.
 * @returns whether it is begun: not for a user that is enabled, is no member, or has an erasure that has not ended.
 */
export async function insertErasure(
  scope: OrganizationScope,
  { id, userId, requestedBy, step, createdAt }: NewErasure,
): Promise<boolean> {
  const { database, organizationId } = scope
  const [, { rows }] = await database.batch([
    lockMembership(scope, userId),
    database.execute(sql`
      INSERT INTO ${erasures} (id, organization_id, user_id, requested_by, step, counts, created_at)
      SELECT ${id}::text, organization_id, user_id, ${requestedBy}::text, ${step}::text, '{}'::jsonb, ${timeParameter(createdAt)}
      FROM ${memberships} WHERE organization_id = ${organizationId}::uuid AND user_id = ${userId}::uuid AND disabled_at IS NOT NULL
      ON CONFLICT (organization_id, user_id) WHERE finished_at IS NULL DO NOTHING RETURNING id`),
  ])
  return rows.length > 0
}

/** The erasure of a user that has not ended; null without one. */
export async function selectOpenErasure(
  { database, organizationId }: OrganizationScope,
  userId: string,
): Promise<ErasureRow | null> {
  const [row] = await database
    .select()
    .from(erasures)
    .where(and(ofUser(organizationId, userId), isNull(erasures.finishedAt)))
  return row ?? null
}

export async function selectErasure(
  { database, organizationId }: OrganizationScope,
  userId: string,
  id: string,
): Promise<ErasureRow | null> {
  const [row] = await database
    .select()
    .from(erasures)
    .where(and(eq(erasures.id, id), ofUser(organizationId, userId)))
  return row ?? null
}

export const selectErasures = (
  { database, organizationId }: OrganizationScope,
  userId: string,
  page: PageRequest,
): Promise<Page<ErasureRow>> =>
  selectPage(page, { at: erasures.createdAt, id: erasures.id }, (position, isAfter) =>
    database
      .select({ ...getTableColumns(erasures), position })
      .from(erasures)
      .where(and(ofUser(organizationId, userId), isAfter)),
  )

const ofUser = (organizationId: string, userId: string) =>
  and(eq(erasures.organizationId, organizationId), eq(erasures.userId, userId))

/** Takes the lease of an erasure that nothing advances. @returns null when something does, or it has ended. */
export async function leaseErasure(
  database: Database,
  id: string,
  now: number,
  until: number,
): Promise<ErasureRow | null> {
  const [row] = await database
    .update(erasures)
    .set({ leasedUntil: timeParameter(until) })
    .where(
      and(
        eq(erasures.id, id),
        isNull(erasures.finishedAt),
        sql`(${erasures.leasedUntil} IS NULL OR ${erasures.leasedUntil} <= ${timeParameter(now)})`,
      ),
    )
    .returning()
  return row ?? null
}

/** Erasures that nothing advances, those first that are due for the longest time: one that keeps failing is due again when it fails. */
export async function selectDueErasures(database: Database, now: number, most: number): Promise<string[]> {
  const rows = await database
    .select({ id: erasures.id })
    .from(erasures)
    .where(
      and(
        sql`finished_at IS NULL`,
        sql`(${erasures.leasedUntil} IS NULL OR ${erasures.leasedUntil} <= ${timeParameter(now)})`,
      ),
    )
    .orderBy(sql`coalesce(${erasures.leasedUntil}, ${erasures.createdAt})`)
    .limit(most)
  return rows.map(({ id }) => id)
}

/** Stores how far an erasure is. */
export async function updateErasure(
  database: Database,
  id: string,
  values: Partial<Pick<ErasureRow, 'step' | 'reached' | 'counts' | 'finishedAt' | 'failure' | 'leasedUntil'>>,
): Promise<void> {
  await database.update(erasures).set(values).where(eq(erasures.id, id))
}
