import { Hono } from 'hono'
import { resealPage } from '../../../admin/reseal.ts'
import { audited } from '../../../ledger/changes/audited-change.ts'
import { currentKey } from '../../../lib/crypto.ts'
import { noQuery } from '../../../wire/management-fields.ts'
import { encodeJsonCursor } from '../../../wire/page-cursor.ts'
import {
  ROTATED_TABLES,
  type RotatedTable,
  type RotationPosition,
  vaultRotation,
} from '../../../wire/vault.ts'
import type { AppEnv } from '../../context.ts'
import { jsonBody, query } from '../../validated-request.ts'
import { changeScope, deploymentScope } from './request.ts'

/**
 * Rotation of the vault, a page of one kind of secrets at a time. It can be repeated from the beginning: values sealed under the
 * current key are skipped.
 */
export const vaultRoutes = new Hono<AppEnv>()
  .use('/vault/*', deploymentScope())
  .post('/vault/rotate', query(noQuery), jsonBody(vaultRotation), async (context) => {
    const { limit, cursor: position } = context.req.valid('json')
    const scope = changeScope(context)
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
    return context.json({
      key_id: keyId,
      kind: position.table,
      resealed: page.resealed,
      failed: page.failed,
      next_cursor: next && encodeJsonCursor(next),
    })
  })

function nextPosition(table: RotatedTable, after: string | null): RotationPosition | null {
  if (after !== null) return { table, after }
  const next = ROTATED_TABLES[ROTATED_TABLES.indexOf(table) + 1]
  return next === undefined ? null : { table: next, after: null }
}
