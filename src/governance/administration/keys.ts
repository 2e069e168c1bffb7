import { invalidRequest, notFound } from '../../lib/api-error.ts'
import type { Page, PageRequest } from '../../wire/page-cursor.ts'
import { createApiKey, digestApiKey } from '../identity/api-key.ts'
import type { KeyScope } from '../principal.ts'
import { isStorableInstant } from './administration.store.ts'
import { type Administration, audited, conflict } from './administration.ts'
import { insertKey, type KeyRow, selectKey, selectKeys, updateKeyRevoked } from './keys.store.ts'
import { readMember } from './members.ts'
import { publishRights } from './propagation.ts'

export type { KeyRow } from './keys.store.ts'

export interface KeyValues {
  userId: string
  label: string
  scopes: KeyScope[]
  expiresAt: Date | null
}

/**
 * Makes a key that speaks for a user.
 * @returns the row, and the key itself: the only time it is told, since only its digest is kept.
 * @throws ApiError `not_found` for the user; `unprocessable` when that is disabled; `invalid_request` for an expiry
 * that has passed.
 */
export async function createKey(
  administration: Administration,
  organizationId: string,
  values: KeyValues,
): Promise<{ row: KeyRow; key: string }> {
  const member = await readMember(administration, organizationId, values.userId)
  if (member.disabledAt !== null) throw conflict(`User ${values.userId} is disabled.`)
  if (values.expiresAt !== null && values.expiresAt.getTime() <= administration.clock()) {
    throw invalidRequest('expires_at: must be in the future')
  }
  if (values.expiresAt !== null && !isStorableInstant(values.expiresAt)) {
    throw invalidRequest('expires_at: must be before the year 10000')
  }
  const { id, key } = createApiKey()
  const { userId, label, scopes, expiresAt } = values
  const row = await audited(
    administration,
    {
      organizationId,
      action: 'api_key.created',
      resource: `keys/${id}`,
      detail: { user_id: userId, label, scopes, expires_at: expiresAt },
    },
    () =>
      insertKey(administration.database, organizationId, {
        id,
        userId,
        label,
        scopes,
        expiresAt,
        ...digestApiKey(administration.pepperRing, key),
      }),
  )
  return { row, key }
}

export function listKeys(
  administration: Administration,
  organizationId: string,
  filter: { userId?: string | undefined },
  page: PageRequest,
): Promise<Page<KeyRow>> {
  return selectKeys(administration.database, organizationId, filter, page)
}

/** @throws ApiError `not_found` for a key of another organization, too. */
export async function readKey(
  administration: Administration,
  organizationId: string,
  keyId: string,
): Promise<KeyRow> {
  const row = await selectKey(administration.database, organizationId, keyId)
  if (row === null) throw notFound('Key', keyId)
  return row
}

/** Revokes a key: its next call fails. A second time only tells Redis again. @throws ApiError `not_found`. */
export async function revokeKey(
  administration: Administration,
  organizationId: string,
  keyId: string,
): Promise<KeyRow> {
  const { userId, label } = await readKey(administration, organizationId, keyId)
  const epoch = await audited(
    administration,
    {
      organizationId,
      action: 'api_key.revoked',
      resource: `keys/${keyId}`,
      detail: { user_id: userId, label },
    },
    () => updateKeyRevoked(administration.database, organizationId, keyId),
  )
  await publishRights(administration, organizationId, epoch)
  return readKey(administration, organizationId, keyId)
}
