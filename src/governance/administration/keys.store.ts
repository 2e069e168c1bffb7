import { and, eq, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { apiKeys } from '../../../schema/identity.ts'
import type { Page, PageRequest } from '../../wire/page-cursor.ts'
import {
  beyond,
  microseconds,
  newestFirst,
  raisedEpoch,
  raiseOrganizationEpoch,
  toPage,
} from './administration.store.ts'

/** A key without its digest: nothing outside identification has use for that. */
const keyColumns = {
  id: apiKeys.id,
  organizationId: apiKeys.organizationId,
  userId: apiKeys.userId,
  label: apiKeys.label,
  scopes: apiKeys.scopes,
  expiresAt: apiKeys.expiresAt,
  revokedAt: apiKeys.revokedAt,
  createdAt: apiKeys.createdAt,
}

export interface KeyRow {
  id: string
  organizationId: string
  userId: string
  label: string
  scopes: string[]
  expiresAt: Date | null
  revokedAt: Date | null
  createdAt: Date
}

const isKey = (organizationId: string, keyId: string) =>
  and(eq(apiKeys.organizationId, organizationId), eq(apiKeys.id, keyId))

export async function insertKey(
  database: Database,
  organizationId: string,
  key: {
    id: string
    userId: string
    label: string
    scopes: string[]
    expiresAt: Date | null
    digest: string
    pepperId: string
  },
): Promise<KeyRow> {
  const [row] = await database
    .insert(apiKeys)
    .values({ ...key, organizationId })
    .returning(keyColumns)
  if (row === undefined) throw new Error('the key was not inserted')
  return row
}

export async function selectKey(
  database: Database,
  organizationId: string,
  keyId: string,
): Promise<KeyRow | null> {
  const [row] = await database.select(keyColumns).from(apiKeys).where(isKey(organizationId, keyId))
  return row ?? null
}

export async function selectKeys(
  database: Database,
  organizationId: string,
  filter: { userId?: string | undefined },
  page: PageRequest,
): Promise<Page<KeyRow>> {
  const rows = await database
    .select({ ...keyColumns, at: microseconds(apiKeys.createdAt) })
    .from(apiKeys)
    .where(
      and(
        eq(apiKeys.organizationId, organizationId),
        filter.userId === undefined ? undefined : eq(apiKeys.userId, filter.userId),
        beyond(apiKeys.createdAt, apiKeys.id, page.after),
      ),
    )
    .orderBy(...newestFirst(apiKeys.createdAt, apiKeys.id))
    .limit(page.limit + 1)
  return toPage(rows, page, ({ at, id }) => ({ at, id }))
}

/** Revokes a key and raises the epoch. The time of the first revocation stays. */
export async function updateKeyRevoked(
  database: Database,
  organizationId: string,
  keyId: string,
): Promise<number> {
  const [, raised] = await database.batch([
    database
      .update(apiKeys)
      .set({ revokedAt: sql`coalesce(${apiKeys.revokedAt}, now())` })
      .where(isKey(organizationId, keyId)),
    raiseOrganizationEpoch(database, organizationId),
  ])
  return raisedEpoch(raised)
}
