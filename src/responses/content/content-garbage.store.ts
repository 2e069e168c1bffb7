import { asc, inArray } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { contentErasures } from '../../../schema/responses.ts'

// What is left to erase, of every organization: rows that named it are gone, so nobody can ask for it any more.

/**
 * Content that the content store may still have though no row names it any more.
 * @param most how many keys. @returns keys of the content store, the oldest first.
 */
export async function selectContentErasures(database: Database, most: number): Promise<string[]> {
  const { contentKey, createdAt } = contentErasures
  const rows = await database
    .select({ contentKey })
    .from(contentErasures)
    .orderBy(asc(createdAt), asc(contentKey))
    .limit(most)
  return rows.map((row) => row.contentKey)
}

/** Forgets content that the content store is known to have erased. */
export async function deleteContentErasures(database: Database, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return
  await database.delete(contentErasures).where(inArray(contentErasures.contentKey, [...keys]))
}
