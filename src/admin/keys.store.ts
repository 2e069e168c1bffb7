import { and, eq, sql } from 'drizzle-orm'
import { apiKeys } from '../../schema/identity.ts'
import {
  equal,
  insertedRow,
  type OrganizationScope,
  raisingEpoch,
  selectPage,
} from '../ledger/changes/scoped-statements.store.ts'
import type { Compatibility } from '../wire/compatibility.ts'
import type { Page, PageRequest } from '../wire/page-cursor.ts'

/** A key without its digest, which only identification reads. */
const keyColumns = {
  id: apiKeys.id,
  organizationId: apiKeys.organizationId,
  userId: apiKeys.userId,
  label: apiKeys.label,
  scopes: apiKeys.scopes,
  compatibility: apiKeys.compatibility,
  expiresAt: apiKeys.expiresAt,
  revokedAt: apiKeys.revokedAt,
  createdAt: apiKeys.createdAt,
}

export type KeyRow = Omit<typeof apiKeys.$inferSelect, 'digest' | 'pepperId'>

const isKey = (organizationId: string, keyId: string) =>
  and(eq(apiKeys.organizationId, organizationId), eq(apiKeys.id, keyId))

export async function insertKey(
  { database, organizationId }: OrganizationScope,
  key: Omit<typeof apiKeys.$inferInsert, 'organizationId'>,
): Promise<KeyRow> {
  const rows = await database
    .insert(apiKeys)
    .values({ ...key, organizationId })
    .returning(keyColumns)
  return insertedRow(rows, 'key')
}

export async function selectKey(
  { database, organizationId }: OrganizationScope,
  keyId: string,
): Promise<KeyRow | null> {
  const [row] = await database.select(keyColumns).from(apiKeys).where(isKey(organizationId, keyId))
  return row ?? null
}

export function selectKeys(
  { database, organizationId }: OrganizationScope,
  filter: { userId?: string | undefined },
  page: PageRequest,
): Promise<Page<KeyRow>> {
  return selectPage(page, { at: apiKeys.createdAt, id: apiKeys.id }, (position, isAfter) =>
    database
      .select({ ...keyColumns, position })
      .from(apiKeys)
      .where(and(eq(apiKeys.organizationId, organizationId), equal(apiKeys.userId, filter.userId), isAfter)),
  )
}

export const updateKeyCompatibility = (
  scope: OrganizationScope,
  keyId: string,
  compatibility: Compatibility,
) =>
  raisingEpoch(
    scope,
    scope.database.update(apiKeys).set({ compatibility }).where(isKey(scope.organizationId, keyId)),
  )

/** Revokes a key. The time of the first revocation stays. */
export const updateKeyRevoked = (scope: OrganizationScope, keyId: string) =>
  raisingEpoch(
    scope,
    scope.database
      .update(apiKeys)
      .set({ revokedAt: sql`coalesce(${apiKeys.revokedAt}, now())` })
      .where(isKey(scope.organizationId, keyId)),
  )
