import { and, eq } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { grants, models } from '../../../schema/models.ts'
import type { Page, PageRequest } from '../../wire/page-cursor.ts'
import {
  beyond,
  microseconds,
  newestFirst,
  raisedEpoch,
  raiseOrganizationEpoch,
  toPage,
} from './administration.store.ts'

export type GrantRow = typeof grants.$inferSelect
export type GrantSubject = Pick<GrantRow, 'subjectType' | 'subjectId'>

const isGrant = (organizationId: string, grantId: string) =>
  and(eq(grants.organizationId, organizationId), eq(grants.id, grantId))

/** Inserts a grant and raises the epoch. @throws the database's unique violation when it exists. */
export async function insertGrant(
  database: Database,
  organizationId: string,
  grant: GrantSubject & { id: string; modelId: string },
): Promise<{ row: GrantRow; epoch: number }> {
  const [[row], raised] = await database.batch([
    database
      .insert(grants)
      .values({ ...grant, organizationId })
      .returning(),
    raiseOrganizationEpoch(database, organizationId),
  ])
  if (row === undefined) throw new Error('the grant was not inserted')
  return { row, epoch: raisedEpoch(raised) }
}

export async function selectGrant(
  database: Database,
  organizationId: string,
  grantId: string,
): Promise<GrantRow | null> {
  const [row] = await database.select().from(grants).where(isGrant(organizationId, grantId))
  return row ?? null
}

export async function selectGrants(
  database: Database,
  organizationId: string,
  filter: { modelId?: string | undefined },
  page: PageRequest,
): Promise<Page<GrantRow>> {
  const rows = await database
    .select({ row: grants, at: microseconds(grants.createdAt) })
    .from(grants)
    .where(
      and(
        eq(grants.organizationId, organizationId),
        filter.modelId === undefined ? undefined : eq(grants.modelId, filter.modelId),
        beyond(grants.createdAt, grants.id, page.after),
      ),
    )
    .orderBy(...newestFirst(grants.createdAt, grants.id))
    .limit(page.limit + 1)
  const cut = toPage(rows, page, ({ row, at }) => ({ at, id: row.id }))
  return { rows: cut.rows.map(({ row }) => row), next: cut.next }
}

export async function deleteGrant(
  database: Database,
  organizationId: string,
  grantId: string,
): Promise<number> {
  const [, raised] = await database.batch([
    database.delete(grants).where(isGrant(organizationId, grantId)),
    raiseOrganizationEpoch(database, organizationId),
  ])
  return raisedEpoch(raised)
}

/** Whether the deployment has this model, disabled or not. Deployment-wide: models belong to no organization. */
export async function selectModelExists(database: Database, modelId: string): Promise<boolean> {
  const rows = await database.select({ id: models.id }).from(models).where(eq(models.id, modelId))
  return rows.length > 0
}
