import { asc, gte, inArray } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { contentErasures } from '../../../schema/responses.ts'

// Content of all organizations that has to be erased, since the rows that referred to it are deleted.

/**
 * Keys of content that the content store may still have, the oldest first.
 * @param since of the last key that was read: the index still has the entries of deleted rows, which need not be passed again.
 * @param most number of keys.
 */
export async function selectContentErasures(
  database: Database,
  since: Date | null,
  most: number,
): Promise<{ keys: string[]; last: Date | null }> {
  const { contentKey, createdAt } = contentErasures
  const rows = await database
    .select({ contentKey, createdAt })
    .from(contentErasures)
    .where(since === null ? undefined : gte(createdAt, since))
    .orderBy(asc(createdAt), asc(contentKey))
    .limit(most)
  return { keys: rows.map((row) => row.contentKey), last: rows.at(-1)?.createdAt ?? null }
}

/** Removes keys whose content is erased. */
export async function deleteContentErasures(database: Database, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return
  await database.delete(contentErasures).where(inArray(contentErasures.contentKey, [...keys]))
}
