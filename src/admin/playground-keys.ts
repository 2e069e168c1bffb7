import { createApiKey } from '../identity/api-key.ts'
import { digestToken } from '../identity/secret-token.ts'
import { audited, type ChangeScope, conflict } from '../ledger/changes/audited-change.ts'
import type { KeyScope } from '../wire/key-scopes.ts'
import { insertPlaygroundKey } from './playground-keys.store.ts'

/** Time for which the key of a playground works. A page asks for the next one before. */
const LIFETIME_MS = 10 * 60_000

const SCOPES: KeyScope[] = ['models']

/**
 * Makes a key with which the page of a session calls models, as any client does, with the rights of its user. It ends with the session,
 * at most ten minutes later.
 * @returns the key: only its digest is stored. @throws ApiError `unprocessable` for a session with many of them.
 */
export async function createPlaygroundKey(
  scope: ChangeScope,
  { userId, sessionId }: { userId: string; sessionId: string },
): Promise<{ id: string; key: string; scopes: KeyScope[]; expiresAt: Date }> {
  const { id, key } = createApiKey()
  const now = new Date(scope.clock())
  const expiresAt = new Date(now.getTime() + LIFETIME_MS)
  const change = {
    action: 'playground_key.created',
    resource: `keys/${id}`,
    detail: { user_id: userId, expires_at: expiresAt },
  }
  const values = {
    id,
    userId,
    sessionId,
    label: 'Playground',
    scopes: SCOPES,
    expiresAt,
    ...digestToken(scope.pepperRing, key),
  }
  await audited(scope, change, async () => {
    if (await insertPlaygroundKey(scope, values, now)) return
    throw conflict('This session has many keys of playgrounds. They end after ten minutes.')
  })
  return { id, key, scopes: SCOPES, expiresAt }
}
