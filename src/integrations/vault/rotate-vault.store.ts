import { and, asc, eq, gt, isNotNull, ne, notLike } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { connections, integrations } from '../../../schema/integrations.ts'

// Rotation is of the deployment: it passes over the rows of every organization.

/** Envelopes whose data key is not sealed under the current key of the vault, by id. */
export const selectOldEnvelopes = (database: Database, keyId: string, after: string, limit: number) =>
  database
    .select({
      id: connections.id,
      organizationId: connections.organizationId,
      sealed: connections.sealedCredential,
    })
    .from(connections)
    .where(
      and(
        isNotNull(connections.sealedCredential),
        ne(connections.vaultKeyId, keyId),
        gt(connections.id, after),
      ),
    )
    .orderBy(asc(connections.id))
    .limit(limit)

/** Stores an envelope, unless another one was stored meanwhile. The credential in it is the same: its version stays. */
export async function updateEnvelope(
  database: Database,
  { id, organizationId, before }: { id: string; organizationId: string; before: string },
  { sealed, vaultKeyId }: { sealed: string; vaultKeyId: string },
): Promise<void> {
  await database
    .update(connections)
    .set({ sealedCredential: sealed, vaultKeyId })
    .where(
      and(
        eq(connections.organizationId, organizationId),
        eq(connections.id, id),
        eq(connections.sealedCredential, before),
      ),
    )
}

/** Secrets of OAuth clients that are not sealed under the current key of the vault, by the id of their integration. */
export const selectOldClientSecrets = (database: Database, keyId: string, after: string, limit: number) =>
  database
    .select({
      id: integrations.id,
      organizationId: integrations.organizationId,
      sealed: integrations.sealedClientSecret,
    })
    .from(integrations)
    .where(
      and(
        isNotNull(integrations.sealedClientSecret),
        notLike(integrations.sealedClientSecret, `v1.${likeText(keyId)}.%`),
        gt(integrations.id, after),
      ),
    )
    .orderBy(asc(integrations.id))
    .limit(limit)

/** Ids of keys may have an underscore, which is a wildcard. */
const likeText = (text: string) => text.replace(/[\\%_]/g, '\\$&')

/** Stores a sealed secret, unless another one was stored meanwhile. */
export async function updateClientSecret(
  database: Database,
  { id, organizationId, before }: { id: string; organizationId: string; before: string },
  sealed: string,
): Promise<void> {
  await database
    .update(integrations)
    .set({ sealedClientSecret: sealed })
    .where(
      and(
        eq(integrations.organizationId, organizationId),
        eq(integrations.id, id),
        eq(integrations.sealedClientSecret, before),
      ),
    )
}
