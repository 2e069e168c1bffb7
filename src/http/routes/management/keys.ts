import { type KeyRow, selectKeys } from '../../../admin/keys.store.ts'
import { changeKey, createKey, readKey, revokeKey, rotateKey } from '../../../admin/keys.ts'
import { checkActsFor } from '../../../admin/member-rules.ts'
import { readMember } from '../../../admin/members.ts'
import { createPlaygroundKey } from '../../../admin/playground-keys.ts'
import type { ChangeScope } from '../../../ledger/changes/audited-change.ts'
import { notFound, unprocessable } from '../../../lib/api-error.ts'
import type { KeyScope } from '../../../wire/key-scopes.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppContext } from '../../context.ts'
import { pageRequest } from './change-scope.ts'
import { signedInUser } from './me.ts'
import type { HandlersOf } from './mount-endpoints.ts'
import { authorOf, missing } from './require-permission.ts'

const present = (row: KeyRow) => ({
  id: row.id,
  user_id: row.userId,
  label: row.label,
  scopes: row.scopes as KeyScope[],
  compatibility: row.compatibility,
  expires_at: row.expiresAt,
  revoked_at: row.revokedAt,
  replaced_by: row.replacedBy,
  last_used_at: row.lastUsedAt,
  created_at: row.createdAt,
})

/** A key that the caller may see. @throws ApiError `not_found` for a key of another user, where only one's own are in reach. */
async function reachedKey(scope: ChangeScope, own: string | null, keyId: string): Promise<KeyRow> {
  const key = await readKey(scope, keyId)
  if (own !== null && key.userId !== own) throw notFound('Key', keyId)
  return key
}

/**
 * The user of a new key: the one that is named, else that of the session.
 * @throws ApiError `unprocessable` where nobody is named; `forbidden` for another person, and for any other user where only one's own keys are in reach.
 */
async function newKeyUser(
  { context, scope, own }: { context: AppContext; scope: ChangeScope; own: string | null },
  userId: string | undefined,
): Promise<string> {
  const author = authorOf(context, 'keys.create')
  if (author === null) {
    if (userId !== undefined) return userId
    // The schema leaves it out for sessions.
    throw unprocessable('user_id: is required from the administration token, which is no user.')
  }
  const subject = userId ?? author.userId
  if (own !== null && subject !== own) throw missing('keys.create', ONLY_OWN)
  if (subject !== author.userId) checkActsFor(author, await readMember(scope, subject))
  return subject
}

const ONLY_OWN = 'Your permission keys.create is for your own keys only.'
const NO_KEYS = { rows: [], next: null }

export const keyHandlers: HandlersOf<'keys' | 'playground-keys'> = {
  'keys.list': async ({ scope, own, query: { user_id: userId, ...paging } }) => {
    const isReached = own === null || userId === undefined || userId === own
    const filter = { userId: own ?? userId }
    return listBody(isReached ? await selectKeys(scope, filter, pageRequest(paging)) : NO_KEYS, present)
  },
  'keys.create': async (call) => {
    const { user_id: userId, expires_at: expiresAt, ...values } = call.body
    const key = { ...values, userId: await newKeyUser(call, userId), expiresAt }
    const created = await createKey(call.scope, key)
    return { ...present(created.row), key: created.key }
  },
  'keys.show': async ({ scope, own, path }) => present(await reachedKey(scope, own, path.keyId)),
  'keys.change': async ({ scope, own, path, body }) => {
    await reachedKey(scope, own, path.keyId)
    return present(await changeKey(scope, path.keyId, body))
  },
  'keys.rotate': async ({ context, scope, own, path: { keyId }, body }) => {
    const { userId } = await reachedKey(scope, own, keyId)
    const author = authorOf(context, 'keys.rotate')
    // The answer holds a key of that user.
    if (author && userId !== author.userId) checkActsFor(author, await readMember(scope, userId))
    const values = { endsInSeconds: body.ends_in_seconds, expiresAt: body.expires_at }
    const { row, key } = await rotateKey(scope, keyId, values)
    return { ...present(row), key, replaces: keyId }
  },
  'keys.revoke': async ({ scope, own, path }) => {
    await reachedKey(scope, own, path.keyId)
    return present(await revokeKey(scope, path.keyId))
  },
  'playground-keys.create': async ({ context, scope }) => {
    const { id, key, scopes, expiresAt } = await createPlaygroundKey(scope, signedInUser(context))
    return { id, key, scopes, expires_at: expiresAt }
  },
}
