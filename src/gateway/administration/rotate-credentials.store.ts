import { and, asc, eq, gt, notLike } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { providers } from '../../../schema/models.ts'

// Providers belong to the deployment, so no function here takes an organization id.

/** Credentials that are not sealed under the current key of the vault, by the id of their provider. */
export const selectOldCredentials = (database: Database, keyId: string, after: string, limit: number) =>
  database
    .select({ id: providers.id, sealed: providers.sealedCredential })
    .from(providers)
    .where(and(notLike(providers.sealedCredential, `v1.${likeText(keyId)}.%`), gt(providers.id, after)))
    .orderBy(asc(providers.id))
    .limit(limit)

/** Ids of keys may have an underscore, which is a wildcard. */
const likeText = (text: string) => text.replace(/[\\%_]/g, '\\$&')

/** Stores a sealed credential, unless another one was stored meanwhile. */
export async function updateSealedCredential(
  database: Database,
  { id, before }: { id: string; before: string },
  sealed: string,
): Promise<void> {
  await database
    .update(providers)
    .set({ sealedCredential: sealed })
    .where(and(eq(providers.id, id), eq(providers.sealedCredential, before)))
}
