import { type KeyRow, selectKeys } from '../../../admin/keys.store.ts'
import { changeKey, createKey, readKey, revokeKey } from '../../../admin/keys.ts'
import type { KeyScope } from '../../../wire/key-scopes.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { pageRequest } from './change-scope.ts'
import type { HandlersOf } from './mount-endpoints.ts'

const present = (row: KeyRow) => ({
  id: row.id,
  user_id: row.userId,
  label: row.label,
  scopes: row.scopes as KeyScope[],
  compatibility: row.compatibility,
  expires_at: row.expiresAt,
  revoked_at: row.revokedAt,
  created_at: row.createdAt,
})

export const keyHandlers: HandlersOf<'keys'> = {
  'keys.list': async ({ scope, query: { user_id: userId, ...paging } }) =>
    listBody(await selectKeys(scope, { userId }, pageRequest(paging)), present),
  'keys.create': async ({ scope, body }) => {
    const { user_id: userId, expires_at: expiresAt, ...values } = body
    const { row, key } = await createKey(scope, { ...values, userId, expiresAt })
    return { ...present(row), key }
  },
  'keys.show': async ({ scope, path }) => present(await readKey(scope, path.keyId)),
  'keys.change': async ({ scope, path, body }) => present(await changeKey(scope, path.keyId, body)),
  'keys.revoke': async ({ scope, path }) => present(await revokeKey(scope, path.keyId)),
}
