import { asc, inArray } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { contentErasures } from '../../../schema/responses.ts'

// Content of all organizations that has to be erased, since the rows that referred to it are deleted.

/** Keys of content that the content store may still have, the oldest first. @param most number of keys. */
export async function selectContentErasures(database: Database, most: number): Promise<string[]> {
  const { contentKey, createdAt } = contentErasures
  const rows = await database
    .select({ contentKey })
    .from(contentErasures)
    .orderBy(asc(createdAt), asc(contentKey))
    .limit(most)
  return rows.map((row) => row.contentKey)
}

/** Removes keys whose content is erased. */
export async function deleteContentErasures(database: Database, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return
  await database.delete(contentErasures).where(inArray(contentErasures.contentKey, [...keys]))
}
