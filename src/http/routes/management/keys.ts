import { type KeyRow, selectKeys } from '../../../admin/keys.store.ts'
import { changeKey, createKey, readKey, revokeKey } from '../../../admin/keys.ts'
import type { KeyScope } from '../../../wire/management.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { pageRequest } from './administration.ts'
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
  'keys.list': async ({ administration, query: { user_id: userId, ...paging } }) =>
    listBody(await selectKeys(administration, { userId }, pageRequest(paging)), present),
  'keys.create': async ({ administration, body }) => {
    const { user_id: userId, expires_at: expiresAt, ...values } = body
    const { row, key } = await createKey(administration, { ...values, userId, expiresAt })
    return { ...present(row), key }
  },
  'keys.show': async ({ administration, path }) => present(await readKey(administration, path.keyId)),
  'keys.change': async ({ administration, path, body }) =>
    present(await changeKey(administration, path.keyId, body)),
  'keys.revoke': async ({ administration, path }) => present(await revokeKey(administration, path.keyId)),
}
