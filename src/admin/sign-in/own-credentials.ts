import { audited, type ChangeScope } from '../../ledger/changes/audited-change.ts'
import { codedRefusal, notFound, unprocessable } from '../../lib/api-error.ts'
import { type Ceremony, newCeremony, openCeremony } from './ceremony.ts'
import { deletePasskey, insertPasskey, type PasskeyRow, selectPasskeys } from './passkeys.store.ts'
import {
  type BrowserCredential,
  type RelyingParty,
  registrationOptions,
  verifyRegistration,
} from './passkeys.ts'
import { selectOpenSessions, updateSessionEnded } from './sessions.store.ts'
import { selectSignInMember } from './sign-in-members.store.ts'

/** What a signed-in user does with its own sessions and passkeys. */

/** Lists of them have no pages. */
const MOST_PASSKEYS = 20

/** The user of a session. */
interface SessionUser {
  userId: string
  sessionId: string
}

/** Ends a session of the user: its next request is refused. @throws ApiError `not_found`. */
export async function endSession(scope: ChangeScope, userId: string, sessionId: string): Promise<void> {
  const open = await selectOpenSessions(scope, userId, new Date(scope.clock()))
  if (!open.some(({ id }) => id === sessionId)) throw notFound('Session', sessionId)
  const intent = { action: 'session.ended', resource: `sessions/${sessionId}`, detail: { user_id: userId } }
  await audited(scope, intent, () => updateSessionEnded(scope, userId, sessionId))
}

/** Begins to register another passkey of the user. */
export async function beginPasskey(
  scope: ChangeScope,
  party: RelyingParty,
  { userId, sessionId }: SessionUser,
) {
  const { database, organizationId } = scope
  const member = await selectSignInMember(database, { organizationId, userId })
  if (member === null) throw notFound('User', userId)
  const options = await registrationOptions(party, member, await selectPasskeys(scope, userId))
  const values = { purpose: 'add', challenge: options.challenge, holder: sessionId } as const
  return { options, ceremony: newCeremony(scope.clock(), values) }
}

/** Registers another passkey. @throws ApiError `unauthorized` for a ceremony of another session, and for a wrong answer. */
export async function finishPasskey(
  scope: ChangeScope,
  party: RelyingParty,
  { userId, sessionId }: SessionUser,
  request: { ceremony: string | undefined; name: string; credential: BrowserCredential },
): Promise<PasskeyRow> {
  const ceremony: Ceremony | null = openCeremony(scope.vaultRing, request.ceremony, 'add', scope.clock())
  if (ceremony?.holder !== sessionId) {
    throw codedRefusal(
      'unauthorized',
      'sign_in_expired',
      'Registering the passkey took too long. Begin again.',
    )
  }
  await checkPasskeyCount(scope, userId)
  const verified = await verifyRegistration(party, ceremony.challenge, request.credential)
  // The name is the person's, and stays out of the record, which its erasure leaves.
  const detail = { user_id: userId }
  return audited(scope, { action: 'passkey.registered', resource: `users/${userId}`, detail }, async () => {
    const limits = { sessionId, most: MOST_PASSKEYS }
    const row = await insertPasskey(scope, limits, { userId, name: request.name, ...verified })
    if (row !== null) return row
    // Another request may have added one meanwhile.
    await checkPasskeyCount(scope, userId)
    throw codedRefusal('unauthorized', 'session_ended', 'The session has ended. Sign in again.')
  })
}

async function checkPasskeyCount(scope: ChangeScope, userId: string): Promise<void> {
  if ((await selectPasskeys(scope, userId)).length >= MOST_PASSKEYS)
    throw unprocessable(`A user has at most ${MOST_PASSKEYS} passkeys. Remove one first.`)
}

/** Removes a passkey. Sessions that it has made go on. @throws ApiError `not_found`. */
export async function removePasskey(scope: ChangeScope, userId: string, passkeyId: string): Promise<void> {
  const known = await selectPasskeys(scope, userId)
  if (!known.some(({ id }) => id === passkeyId)) throw notFound('Passkey', passkeyId)
  const intent = { action: 'passkey.removed', resource: `passkeys/${passkeyId}`, detail: { user_id: userId } }
  await audited(scope, intent, () => deletePasskey(scope, userId, passkeyId))
}
