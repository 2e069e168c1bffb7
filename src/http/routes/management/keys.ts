import { Hono } from 'hono'
import { type KeyRow, selectKeys } from '../../../admin/keys.store.ts'
import { changeKey, createKey, readKey, revokeKey } from '../../../admin/keys.ts'
import { keyCreation, keyListQuery, keyUpdate } from '../../../wire/management.ts'
import { noQuery } from '../../../wire/management-fields.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppEnv } from '../../context.ts'
import { jsonBody, query, unknownId } from '../../validated-request.ts'
import { changeScope, pageRequest } from './request.ts'

const KEYS = '/organizations/:organizationId/keys'
const KEY = '/organizations/:organizationId/keys/:keyId'

const present = (row: KeyRow) => ({
  id: row.id,
  user_id: row.userId,
  label: row.label,
  scopes: row.scopes,
  compatibility: row.compatibility,
  expires_at: row.expiresAt,
  revoked_at: row.revokedAt,
  created_at: row.createdAt,
})

export const keyRoutes = new Hono<AppEnv>()
  .get(KEYS, query(keyListQuery), async (context) => {
    const { user_id: userId, ...paging } = context.req.valid('query')
    const page = await selectKeys(changeScope(context), { userId }, pageRequest(paging))
    return context.json(listBody(page, present))
  })
  .post(KEYS, query(noQuery), jsonBody(keyCreation), async (context) => {
    const { user_id: userId, expires_at: expiresAt, ...values } = context.req.valid('json')
    const { row, key } = await createKey(changeScope(context), { ...values, userId, expiresAt })
    context.header('cache-control', 'no-store')
    return context.json({ ...present(row), key }, 201)
  })
  .get(KEY, query(noQuery), async (context) => {
    const id = keyParameter(context.req.param('keyId'))
    return context.json(present(await readKey(changeScope(context), id)))
  })
  .put(KEY, query(noQuery), jsonBody(keyUpdate), async (context) => {
    const id = keyParameter(context.req.param('keyId'))
    const changes = context.req.valid('json')
    return context.json(present(await changeKey(changeScope(context), id, changes)))
  })
  .delete(KEY, query(noQuery), async (context) => {
    const id = keyParameter(context.req.param('keyId'))
    return context.json(present(await revokeKey(changeScope(context), id)))
  })

function keyParameter(text: string): string {
  if (!/^[0-9A-Za-z]{1,40}$/.test(text)) throw unknownId('Key', text)
  return text
}
