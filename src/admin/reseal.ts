import type { Database } from '../../schema/database.ts'
import { inputsContext } from '../agents/runs/run-inputs.ts'
import { webhookSecretContext } from '../agents/triggers/webhook-signature.ts'
import { credentialContexts } from '../gateway/providers/credential.ts'
import { clientSecretContext } from '../integrations/vault/client-secret.ts'
import { resealEnvelope } from '../integrations/vault/envelope.ts'
import { currentKey, type KeyRing, seal, unseal } from '../lib/crypto.ts'
import type { RotatedTable } from '../wire/vault.ts'
import { providerSecretContext } from './identity-provider.ts'
import { type SealedRow, selectOldRows, updateSealedRow, webhookOf } from './sealed-rows.store.ts'

/** The result of one page of rows whose secrets were sealed under the current key of the vault. */
interface ResealedPage {
  resealed: number
  /** Rows that do not open: their key is not in the ring. */
  failed: number
  /** The id after which the next page begins; null after the last. */
  next: string | null
}

type OldRow = SealedRow & { sealed: string }

/** Seals one row anew under the current key. @throws for one that does not open. */
type Reseal = (ring: KeyRing, row: OldRow) => string

const RESEALS: Record<RotatedTable, Reseal> = {
  connections: (ring, { id, organizationId, sealed }) =>
    resealEnvelope(ring, { organizationId: organizationId ?? '', connectionId: id }, sealed),
  client_secrets: (ring, row) => resealText(ring, row, [clientSecretContext(row.id)]),
  providers: (ring, row) => resealText(ring, row, credentialContexts(row.id)),
  webhook_secrets: (ring, row) => {
    const { agentId, name } = webhookOf(row.id)
    return resealText(ring, row, [webhookSecretContext(agentId, name)])
  },
  run_inputs: (ring, row) => resealText(ring, row, [inputsContext(row.id)]),
  identity_providers: (ring, row) => resealText(ring, row, [providerSecretContext(row.id)]),
}

/**
 * Seals one kind of secrets under the current key of the vault, one page by id. A value that cannot be opened is counted and
 * skipped. Caches need no change, since isolates open either form.
 * @param after the id before the page; null for the first one. @throws errors of the database.
 */
export async function resealPage(
  { database, vaultRing }: { database: Database; vaultRing: KeyRing },
  kind: RotatedTable,
  page: { after: string | null; limit: number },
): Promise<ResealedPage> {
  const { id: keyId } = currentKey(vaultRing)
  const rows = await selectOldRows(database, kind, keyId, page)
  const old = rows.filter((row): row is OldRow => row.sealed !== null)
  let failed = 0
  for (const row of old) {
    const sealed = resealedOrNull(vaultRing, kind, row)
    if (sealed === null) failed += 1
    else await updateSealedRow(database, kind, row, { sealed, keyId })
  }
  const next = rows.length < page.limit ? null : (rows.at(-1)?.id ?? null)
  return { resealed: old.length - failed, failed, next }
}

/** A value that cannot be opened was sealed under a key that is gone, or was altered. */
function resealedOrNull(ring: KeyRing, kind: RotatedTable, row: OldRow): string | null {
  try {
    return RESEALS[kind](ring, row)
  } catch {
    return null
  }
}

/** @param contexts under one of which the text was sealed. @throws when it opens under none. */
function resealText(ring: KeyRing, { sealed }: OldRow, contexts: readonly string[]): string {
  for (const context of contexts) {
    try {
      return seal(ring, unseal(ring, sealed, context), context)
    } catch {}
  }
  throw new Error('a sealed text does not open')
}
