import { Hono } from 'hono'
import {
  createKey,
  type KeyRow,
  listKeys,
  readKey,
  revokeKey,
} from '../../../governance/administration/keys.ts'
import { keyCreation, keyListQuery, noQuery } from '../../../wire/management.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppEnv } from '../../context.ts'
import { jsonBody, query, unknownId } from '../../validated-request.ts'
import { administrationOf, pageRequest } from './request.ts'

const KEYS = '/organizations/:organizationId/keys'
const KEY = '/organizations/:organizationId/keys/:keyId'

const present = (row: KeyRow) => ({
  id: row.id,
  user_id: row.userId,
  label: row.label,
  scopes: row.scopes,
  expires_at: row.expiresAt,
  revoked_at: row.revokedAt,
  created_at: row.createdAt,
})

export const keyRoutes = new Hono<AppEnv>()
  .get(KEYS, query(keyListQuery), async (context) => {
    const { organizationId } = context.req.param()
    const parameters = context.req.valid('query')
    const page = await listKeys(
      administrationOf(context),
      organizationId,
      { userId: parameters.user_id },
      pageRequest(parameters),
    )
    return context.json(listBody(page, present))
  })
  .post(KEYS, query(noQuery), jsonBody(keyCreation), async (context) => {
    const { organizationId } = context.req.param()
    const body = context.req.valid('json')
    const { row, key } = await createKey(administrationOf(context), organizationId, {
      userId: body.user_id,
      label: body.label,
      scopes: body.scopes,
      expiresAt: body.expires_at,
    })
    context.header('cache-control', 'no-store')
    return context.json({ ...present(row), key }, 201)
  })
  .get(KEY, query(noQuery), async (context) => {
    const { organizationId, keyId } = context.req.param()
    return context.json(
      present(await readKey(administrationOf(context), organizationId, keyParameter(keyId))),
    )
  })
  .delete(KEY, query(noQuery), async (context) => {
    const { organizationId, keyId } = context.req.param()
    const row = await revokeKey(administrationOf(context), organizationId, keyParameter(keyId))
    return context.json(present(row))
  })

function keyParameter(text: string): string {
  if (!/^[0-9A-Za-z]{1,40}$/.test(text)) throw unknownId('Key', text)
  return text
}
