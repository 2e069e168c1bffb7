import { createApiKey } from '../identity/api-key.ts'
import { digestToken } from '../identity/secret-token.ts'
import { audited, type ChangeScope, changeRights, conflict } from '../ledger/changes/audited-change.ts'
import { isStorableInstant } from '../ledger/changes/scoped-statements.store.ts'
import { notFound, unprocessable } from '../lib/api-error.ts'
import type { Compatibility } from '../wire/compatibility.ts'
import type { KeyScope } from '../wire/key-scopes.ts'
import { insertKey, type KeyRow, selectKey, updateKeyCompatibility, updateKeyRevoked } from './keys.store.ts'
import { readMember } from './members.ts'

interface NewKey {
  userId: string
  label: string
  scopes: KeyScope[]
  compatibility: Compatibility
  expiresAt: Date | null
}

/**
 * Makes a key of a user.
 * @returns the row, and the key itself: only its digest is stored, so it cannot be shown again.
 * @throws ApiError `not_found` for the user; `unprocessable` when that is disabled; `unprocessable` for an expiry
 * that has passed.
 */
export async function createKey(scope: ChangeScope, values: NewKey): Promise<{ row: KeyRow; key: string }> {
  const { userId, label, scopes, compatibility, expiresAt } = values
  const member = await readMember(scope, userId)
  if (member.disabledAt !== null) throw conflict(`User ${userId} is disabled.`)
  if (expiresAt !== null && expiresAt.getTime() <= scope.clock()) {
    throw unprocessable('expires_at: must be in the future')
  }
  if (expiresAt !== null && !isStorableInstant(expiresAt)) {
    throw unprocessable('expires_at: must be before the year 10000')
  }
  const { id, key } = createApiKey()
  const detail = { user_id: userId, label, scopes, compatibility, expires_at: expiresAt }
  const row = await audited(scope, { action: 'api_key.created', resource: `keys/${id}`, detail }, () =>
    insertKey(scope, { ...values, id, ...digestToken(scope.pepperRing, key) }),
  )
  return { row, key }
}

/** @throws ApiError `not_found` for a key of another organization, too. */
export async function readKey(scope: ChangeScope, keyId: string): Promise<KeyRow> {
  const row = await selectKey(scope, keyId)
  if (row === null) throw notFound('Key', keyId)
  return row
}

/** Changes the form of responses to a key, from its next call on. @throws ApiError `not_found`. */
export async function changeKey(
  scope: ChangeScope,
  keyId: string,
  { compatibility }: { compatibility: Compatibility },
): Promise<KeyRow> {
  const { userId, label } = await readKey(scope, keyId)
  const detail = { user_id: userId, label, compatibility }
  await changeRights(scope, { action: 'api_key.updated', resource: `keys/${keyId}`, detail }, () =>
    updateKeyCompatibility(scope, keyId, compatibility),
  )
  return readKey(scope, keyId)
}

/** Revokes a key: its next call fails. A second time only publishes the epoch again. @throws ApiError `not_found`. */
export async function revokeKey(scope: ChangeScope, keyId: string): Promise<KeyRow> {
  const { userId, label } = await readKey(scope, keyId)
  const detail = { user_id: userId, label }
  await changeRights(scope, { action: 'api_key.revoked', resource: `keys/${keyId}`, detail }, () =>
    updateKeyRevoked(scope, keyId),
  )
  return readKey(scope, keyId)
}
