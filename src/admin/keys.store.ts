import { and, eq, isNull, sql } from 'drizzle-orm'
import { apiKeys } from '../../schema/identity.ts'
import {
  type EpochChange,
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
  replacedBy: apiKeys.replacedBy,
  lastUsedAt: apiKeys.lastUsedAt,
  createdAt: apiKeys.createdAt,
}

export type KeyRow = Omit<typeof apiKeys.$inferSelect, 'digest' | 'pepperId' | 'sessionId'>

/** Keys of playgrounds are not managed: they end with their sessions. */
const isManaged = isNull(apiKeys.sessionId)

const isKey = (organizationId: string, keyId: string) =>
  and(eq(apiKeys.organizationId, organizationId), eq(apiKeys.id, keyId), isManaged)

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
      .where(
        and(
          eq(apiKeys.organizationId, organizationId),
          isManaged,
          equal(apiKeys.userId, filter.userId),
          isAfter,
        ),
      ),
  )
}

export const updateKey = (
  scope: OrganizationScope,
  keyId: string,
  values: { label?: string | undefined; compatibility?: Compatibility | undefined },
) => raisingEpoch(scope, scope.database.update(apiKeys).set(values).where(isKey(scope.organizationId, keyId)))

/** A key in the place of another one. */
interface Replacement {
  id: string
  digest: string
  pepperId: string
  expiresAt: Date | null
}

/**
 * Adds a key with the user, label, scopes and compatibility of an active one, which then ends. One statement: a key that is revoked
 * or replaced meanwhile is not replaced.
 * @returns whether the key was active and had not been replaced.
 */
export async function replaceKey(
  scope: OrganizationScope,
  keyId: string,
  { id, digest, pepperId, expiresAt }: Replacement,
  { now, endsAt }: { now: Date; endsAt: Date },
): Promise<EpochChange<boolean>> {
  const { database, organizationId } = scope
  const { result, epoch } = await raisingEpoch(
    scope,
    database.execute(sql`
      WITH replaced AS (
        UPDATE api_keys SET replaced_by = ${id},
          expires_at = least(expires_at, ${endsAt.toISOString()}::timestamptz)
        WHERE organization_id = ${organizationId}::uuid AND id = ${keyId} AND session_id IS NULL AND revoked_at IS NULL AND replaced_by IS NULL
          AND (expires_at IS NULL OR expires_at > ${now.toISOString()}::timestamptz)
        RETURNING user_id, label, scopes, compatibility)
      INSERT INTO api_keys (id, organization_id, user_id, label, digest, pepper_id, scopes, compatibility, expires_at)
      SELECT ${id}, ${organizationId}::uuid, user_id, label, ${digest}, ${pepperId}, scopes, compatibility,
        ${expiresAt?.toISOString() ?? null}::timestamptz
      FROM replaced RETURNING id`),
  )
  return { result: result.rows.length === 1, epoch }
}

/** Revokes a key. The time of the first revocation stays. */
export const updateKeyRevoked = (scope: OrganizationScope, keyId: string) =>
  raisingEpoch(
    scope,
    scope.database
      .update(apiKeys)
      .set({ revokedAt: sql`coalesce(${apiKeys.revokedAt}, now())` })
      .where(isKey(scope.organizationId, keyId)),
  )
