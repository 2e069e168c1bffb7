import { resealPage } from '../../../admin/reseal.ts'
import { audited } from '../../../ledger/changes/audited-change.ts'
import { currentKey } from '../../../lib/crypto.ts'
import { encodeJsonCursor } from '../../../wire/page-cursor.ts'
import { ROTATED_TABLES, type RotatedTable, type RotationPosition } from '../../../wire/vault.ts'
import type { HandlersOf } from './mount-endpoints.ts'

/**
 * Rotation of the vault, a page of one kind of secrets at a time. It can be repeated from the beginning: values sealed under the
 * current key are skipped.
 */
export const vaultHandlers: HandlersOf<'vault'> = {
  'vault.rotate': async ({ scope, body: { limit, cursor: position } }) => {
    const { id: keyId } = currentKey(scope.vaultRing)
    const page = await audited(
      scope,
      {
        action: 'vault.rotated',
        resource: `vault/${position.table}`,
        detail: { key_id: keyId, after: position.after, limit },
      },
      () => resealPage(scope, position.table, { after: position.after, limit }),
    )
    const next = nextPosition(position.table, page.next)
    return {
      key_id: keyId,
      kind: position.table,
      resealed: page.resealed,
      failed: page.failed,
      next_cursor: next && encodeJsonCursor(next),
    }
  },
}

function nextPosition(table: RotatedTable, after: string | null): RotationPosition | null {
  if (after !== null) return { table, after }
  const next = ROTATED_TABLES[ROTATED_TABLES.indexOf(table) + 1]
  return next === undefined ? null : { table: next, after: null }
}
