import type { Database } from '../../schema/database.ts'
import { currentKey, type KeyRing, seal, unseal } from '../lib/crypto.ts'
import type { RotatedPage } from '../lib/rotated-page.ts'
import {
  selectOldInputs,
  selectOldWebhookSecrets,
  updateSealedInputs,
  updateWebhookSecret,
} from './rotate-secrets.store.ts'
import { inputsContext } from './runs/run-inputs.ts'
import { webhookSecretContext } from './triggers/webhook-signature.ts'

interface RotationDeps {
  database: Database
  vaultRing: KeyRing
}

const LEAST_UUID = '00000000-0000-0000-0000-000000000000'

/** Seals the secrets of webhooks anew, one page at a time. What does not open is counted and passed over. */
export async function rotateWebhookSecrets(
  { database, vaultRing }: RotationDeps,
  after: string | null,
  limit: number,
): Promise<RotatedPage> {
  const rows = await selectOldWebhookSecrets(database, currentKey(vaultRing).id, after ?? '', limit)
  let failed = 0
  for (const row of rows) {
    const sealed = resealed(vaultRing, row.sealed, webhookSecretContext(row.agentId, row.name))
    if (sealed === null) failed += 1
    else await updateWebhookSecret(database, row, sealed)
  }
  return { resealed: rows.length - failed, failed, next: nextOf(rows, limit) }
}

/** The same for the inputs of runs. */
export async function rotateRunInputs(
  { database, vaultRing }: RotationDeps,
  after: string | null,
  limit: number,
): Promise<RotatedPage> {
  const rows = await selectOldInputs(database, currentKey(vaultRing).id, after ?? LEAST_UUID, limit)
  let failed = 0
  for (const row of rows) {
    const sealed = resealed(vaultRing, row.sealed, inputsContext(row.id))
    if (sealed === null) failed += 1
    else await updateSealedInputs(database, row, sealed)
  }
  return { resealed: rows.length - failed, failed, next: nextOf(rows, limit) }
}

/** What does not open was sealed under a key that is gone, or was altered. */
function resealed(ring: KeyRing, sealed: string, context: string): string | null {
  try {
    return seal(ring, unseal(ring, sealed, context), context)
  } catch {
    return null
  }
}

const nextOf = (rows: ReadonlyArray<{ id: string }>, limit: number): string | null =>
  rows.length < limit ? null : (rows.at(-1)?.id ?? null)
