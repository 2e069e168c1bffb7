import type { SessionCaller } from '../../identity/principal.ts'
import type { ChangeScope } from '../../ledger/changes/audited-change.ts'
import { codedRefusal, notFound } from '../../lib/api-error.ts'
import { secretsEqual, sha256Hex } from '../../lib/crypto.ts'
import { isUniqueViolation } from '../../lib/database-error.ts'
import { newId } from '../../lib/ids.ts'
import { insertLocalSession, selectIsLocalSession, updateSessionEnded } from './sessions.store.ts'
import { type SignedIn, startSession, type Visit } from './sign-in.ts'
import { type MembershipId, type SignInMember, selectSignInMember } from './sign-in-members.store.ts'
import { START_CEREMONY } from './sweep.store.ts'

/** Signing in to a local system without a passkey (LOCAL_SIGN_IN): as its members, and as no others. */
export interface LocalSignIn {
  token: string
  /** The first one is that of the start token. */
  members: readonly MembershipId[]
}

/**
 * Signs in with the start token. Its digest is the ceremony of the session, so that it works once.
 * @throws ApiError `unauthorized` for another token, and for one that was used.
 */
export async function signInLocally(visit: Visit, local: LocalSignIn, token: string): Promise<SignedIn> {
  const [first] = local.members
  if (first === undefined || !secretsEqual(token, local.token)) throw unusableStart()
  return signInAs(visit, first, START_CEREMONY + sha256Hex(token))
}

const unusableStart = () =>
  codedRefusal(
    'unauthorized',
    'start_token_unusable',
    'This start token is wrong or was used. Start the local system again.',
  )

/** The members that a session of the start token can become. @throws ApiError `forbidden` for another session. */
export async function selectLocalMembers(
  scope: ChangeScope,
  { members }: LocalSignIn,
  sessionId: string,
): Promise<SignInMember[]> {
  await checkLocalSession(scope, sessionId)
  const found = await Promise.all(members.map((member) => selectSignInMember(scope.database, member)))
  return found.filter((member) => member !== null)
}

/**
 * Signs in as another member, and ends the session.
 * @throws ApiError `forbidden` for a session that was not made with the start token; `not_found` for a member that is not listed.
 */
export async function switchMember(
  visit: Visit,
  { members }: LocalSignIn,
  { sessionId, principal }: SessionCaller,
  { organizationId, userId }: MembershipId,
): Promise<SignedIn> {
  const scope = { ...visit.scope, organizationId: principal.organizationId }
  await checkLocalSession(scope, sessionId)
  const member = members.find((each) => each.organizationId === organizationId && each.userId === userId)
  if (member === undefined) throw notFound('User', userId)
  const signedIn = await signInAs(visit, member, newId('ceremony'))
  await updateSessionEnded(scope, principal.userId, sessionId)
  return signedIn
}

async function checkLocalSession(scope: ChangeScope, sessionId: string): Promise<void> {
  if (await selectIsLocalSession(scope, sessionId)) return
  throw codedRefusal('forbidden', 'not_local', 'This session was not made with the start token.')
}

/** @throws ApiError `unauthorized` for a ceremony that has made a session, and for a member that is disabled. */
async function signInAs(visit: Visit, id: MembershipId, ceremonyId: string): Promise<SignedIn> {
  const member = await selectSignInMember(visit.scope.database, id)
  if (member === null) throw unusableStart()
  return startSession(visit, member, { id: ceremonyId }, { method: 'local' }, async (scope, session) => {
    const isStarted = await insertLocalSession(scope, id.userId, session).catch((error: unknown) => {
      throw isUniqueViolation(error) ? unusableStart() : error
    })
    if (!isStarted) throw unusableStart()
  })
}
