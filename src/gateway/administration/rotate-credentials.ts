import type { Database } from '../../../schema/database.ts'
import { currentKey, type KeyRing } from '../../lib/crypto.ts'
import type { RotatedPage } from '../../lib/rotated-page.ts'
import { resealCredential } from '../providers/credential.ts'
import { selectOldCredentials, updateSealedCredential } from './rotate-credentials.store.ts'

const LEAST_UUID = '00000000-0000-0000-0000-000000000000'

/**
 * Seals credentials of providers under the current key of the vault, one page by id. What does not open is counted and passed
 * over. The catalogue stays as it is, since isolates open either form.
 */
export async function rotateProviderCredentials(
  { database, vaultRing }: { database: Database; vaultRing: KeyRing },
  after: string | null,
  limit: number,
): Promise<RotatedPage> {
  const rows = await selectOldCredentials(database, currentKey(vaultRing).id, after ?? LEAST_UUID, limit)
  let failed = 0
  for (const { id, sealed: before } of rows) {
    const resealed = resealCredential(vaultRing, id, before)
    if (resealed === null) failed += 1
    else await updateSealedCredential(database, { id, before }, resealed)
  }
  const next = rows.length < limit ? null : (rows.at(-1)?.id ?? null)
  return { resealed: rows.length - failed, failed, next }
}
