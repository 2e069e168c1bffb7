import { createApiKey } from '../identity/api-key.ts'
import { digestToken } from '../identity/secret-token.ts'
import { audited, type ChangeScope, changeRights, conflict } from '../ledger/changes/audited-change.ts'
import { isStorableInstant } from '../ledger/changes/scoped-statements.store.ts'
import { notFound, unprocessable } from '../lib/api-error.ts'
import type { Compatibility } from '../wire/compatibility.ts'
import type { KeyScope } from '../wire/key-scopes.ts'
import { insertKey, type KeyRow, replaceKey, selectKey, updateKey, updateKeyRevoked } from './keys.store.ts'
import { readMember } from './members.ts'

// Labels stay out of the audit records, which the erasure of a person leaves.

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
  const { userId, scopes, compatibility, expiresAt } = values
  await checkUser(scope, userId)
  checkExpiry(scope, expiresAt)
  const { id, key } = createApiKey()
  const detail = { user_id: userId, scopes, compatibility, expires_at: expiresAt }
  const row = await audited(scope, { action: 'api_key.created', resource: `keys/${id}`, detail }, () =>
    insertKey(scope, { ...values, id, ...digestToken(scope.pepperRing, key) }),
  )
  return { row, key }
}

async function checkUser(scope: ChangeScope, userId: string): Promise<void> {
  const member = await readMember(scope, userId)
  if (member.disabledAt !== null) throw conflict(`User ${userId} is disabled.`)
}

function checkExpiry({ clock }: ChangeScope, expiresAt: Date | null): void {
  if (expiresAt === null) return
  if (expiresAt.getTime() <= clock()) throw unprocessable('expires_at: must be in the future')
  if (!isStorableInstant(expiresAt)) throw unprocessable('expires_at: must be before the year 10000')
}

/** @throws ApiError `not_found` for a key of another organization, too. */
export async function readKey(scope: ChangeScope, keyId: string): Promise<KeyRow> {
  const row = await selectKey(scope, keyId)
  if (row === null) throw notFound('Key', keyId)
  return row
}

/** Changes the label of a key, or the form of responses to it, from its next call on. @throws ApiError `not_found`. */
export async function changeKey(
  scope: ChangeScope,
  keyId: string,
  values: { label?: string | undefined; compatibility?: Compatibility | undefined },
): Promise<KeyRow> {
  const { userId } = await readKey(scope, keyId)
  const { label, compatibility } = values
  const detail = { user_id: userId, label_changed: label !== undefined, compatibility }
  await changeRights(scope, { action: 'api_key.updated', resource: `keys/${keyId}`, detail }, () =>
    updateKey(scope, keyId, values),
  )
  return readKey(scope, keyId)
}

/**
 * Makes a key in the place of another one, with the same user, label, scopes and compatibility.
 * @param endsInSeconds time for which the other key still works. @param expiresAt of the new key; undefined for as long a life as
 * the other one was given.
 * @returns as `createKey`. @throws ApiError `not_found`; `unprocessable` for a key that is revoked, expired or was replaced before, for
 * a disabled user, and for an expiry as `createKey`.
 */
export async function rotateKey(
  scope: ChangeScope,
  keyId: string,
  { endsInSeconds, expiresAt }: { endsInSeconds: number; expiresAt: Date | null | undefined },
): Promise<{ row: KeyRow; key: string }> {
  const old = await readKey(scope, keyId)
  const { userId } = old
  await checkUser(scope, userId)
  const now = new Date(scope.clock())
  const endsAt = new Date(now.getTime() + endsInSeconds * 1_000)
  const nextExpiry = expiresAt === undefined ? sameLife(old, now) : expiresAt
  checkExpiry(scope, nextExpiry)
  const { id, key } = createApiKey()
  const detail = { user_id: userId, replaces: keyId, ends_at: endsAt, expires_at: nextExpiry }
  await changeRights(scope, { action: 'api_key.rotated', resource: `keys/${id}`, detail }, async () => {
    const values = { id, ...digestToken(scope.pepperRing, key), expiresAt: nextExpiry }
    const replaced = await replaceKey(scope, keyId, values, { now, endsAt })
    if (!replaced.result) throw conflict(`Key ${keyId} is revoked, expired or replaced. Create a new one.`)
    return replaced
  })
  return { row: await readKey(scope, id), key }
}

/** The expiry that gives a key as much time as another one was given. */
const sameLife = ({ createdAt, expiresAt }: KeyRow, now: Date): Date | null =>
  expiresAt && new Date(now.getTime() + expiresAt.getTime() - createdAt.getTime())

/** Revokes a key: its next call fails. A second time only publishes the epoch again. @throws ApiError `not_found`. */
export async function revokeKey(scope: ChangeScope, keyId: string): Promise<KeyRow> {
  const { userId } = await readKey(scope, keyId)
  const detail = { user_id: userId }
  await changeRights(scope, { action: 'api_key.revoked', resource: `keys/${keyId}`, detail }, () =>
    updateKeyRevoked(scope, keyId),
  )
  return readKey(scope, keyId)
}
