import type { Database } from '../../../schema/database.ts'
import { currentKey, type KeyRing } from '../../lib/crypto.ts'
import type { RotatedPage } from '../../lib/rotated-page.ts'
import { openClientSecret, sealClientSecret } from './client-secret.ts'
import { resealEnvelope } from './envelope.ts'
import {
  selectOldClientSecrets,
  selectOldEnvelopes,
  updateClientSecret,
  updateEnvelope,
} from './rotate-vault.store.ts'

export interface RotationDeps {
  database: Database
  vaultRing: KeyRing
}

const LEAST_UUID = '00000000-0000-0000-0000-000000000000'

/** Seals data keys of connections anew, one page by id. What does not open is counted and passed over. */
export async function rotateConnections(
  { database, vaultRing }: RotationDeps,
  after: string | null,
  limit: number,
): Promise<RotatedPage> {
  const { id: keyId } = currentKey(vaultRing)
  const rows = await selectOldEnvelopes(database, keyId, after ?? '', limit)
  let failed = 0
  for (const { id, organizationId, sealed } of rows) {
    const before = sealed ?? ''
    const resealed = orNull(() => resealEnvelope(vaultRing, { organizationId, connectionId: id }, before))
    if (resealed === null) failed += 1
    else await updateEnvelope(database, { id, organizationId, before }, resealed)
  }
  return { resealed: rows.length - failed, failed, next: nextOf(rows, limit) }
}

/** The same for the secrets of the OAuth clients of integrations. */
export async function rotateClientSecrets(
  { database, vaultRing }: RotationDeps,
  after: string | null,
  limit: number,
): Promise<RotatedPage> {
  const { id: keyId } = currentKey(vaultRing)
  const rows = await selectOldClientSecrets(database, keyId, after ?? LEAST_UUID, limit)
  let failed = 0
  for (const { id, organizationId, sealed } of rows) {
    const before = sealed ?? ''
    const secret = orNull(() => openClientSecret(vaultRing, id, before))
    if (secret === null) failed += 1
    else {
      const resealed = sealClientSecret(vaultRing, id, secret)
      await updateClientSecret(database, { id, organizationId, before }, resealed)
    }
  }
  return { resealed: rows.length - failed, failed, next: nextOf(rows, limit) }
}

/** What does not open was sealed under a key that is gone, or was altered. */
function orNull<Result>(open: () => Result): Result | null {
  try {
    return open()
  } catch {
    return null
  }
}

const nextOf = (rows: ReadonlyArray<{ id: string }>, limit: number): string | null =>
  rows.length < limit ? null : (rows.at(-1)?.id ?? null)
