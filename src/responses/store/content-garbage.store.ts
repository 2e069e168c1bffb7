import { and, asc, eq, gte, inArray } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { contentErasures } from '../../../schema/responses.ts'

// Content that has to be erased, since the rows that referred to it are deleted.

/**
 * Keys of content that the content store may still have, the oldest first.
 * @param among `organizationId`: whose content; that of all without one. `since`: the time of the last key that was read, since the index
 *   still has the entries of deleted rows, which need not be passed again.
 * @param most number of keys.
 */
export async function selectContentErasures(
  database: Database,
  { organizationId, since }: { organizationId?: string | undefined; since: Date | null },
  most: number,
): Promise<{ keys: string[]; last: Date | null }> {
  const { contentKey, createdAt } = contentErasures
  const isSince = since === null ? undefined : gte(createdAt, since)
  const isOf = organizationId === undefined ? undefined : eq(contentErasures.organizationId, organizationId)
  const rows = await database
    .select({ contentKey, createdAt })
    .from(contentErasures)
    .where(and(isSince, isOf))
    .orderBy(asc(createdAt), asc(contentKey))
    .limit(most)
  return { keys: rows.map((row) => row.contentKey), last: rows.at(-1)?.createdAt ?? null }
}

/** Removes keys whose content is erased. */
export async function deleteContentErasures(database: Database, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return
  await database.delete(contentErasures).where(inArray(contentErasures.contentKey, [...keys]))
}
