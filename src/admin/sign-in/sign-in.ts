import { createToken, digestsFor, digestToken, parseToken } from '../../identity/secret-token.ts'
import { LONGEST_MS } from '../../identity/session.ts'
import { audited, type ChangeScope } from '../../ledger/changes/audited-change.ts'
import { codedRefusal } from '../../lib/api-error.ts'
import { isUniqueViolation } from '../../lib/database-error.ts'
import { type Ceremony, newCeremony, openCeremony } from './ceremony.ts'
import { insertPasskeySession, selectPasskeyOfCredential } from './passkeys.store.ts'
import {
  authenticationOptions,
  type BrowserCredential,
  type RelyingParty,
  registrationOptions,
  userHandle,
  verifyAuthentication,
  verifyRegistration,
} from './passkeys.ts'
import { type NewSession, selectSessionOfToken, updateSessionEnded } from './sessions.store.ts'
import { selectSetupLink, spendSetupLink } from './setup-links.store.ts'
import { type MembershipId, type SignInMember, selectSignInMember } from './sign-in-members.store.ts'

/** Signing in: with the passkey of a membership, or with a setup link that registers the first one. */

/** The scope of a visitor, until the member is known (`ofMember`). */
type VisitorScope = Omit<ChangeScope, 'organizationId'>

/** What a sign-in needs of its request. */
export interface Visit {
  scope: VisitorScope
  party: RelyingParty
  /** The sealed ceremony of the request's cookie. */
  ceremony: string | undefined
  /** The session of the request's cookie, which ends if it is of the same membership. */
  session: string | undefined
  userAgent: string
}

/** A member that has signed in. */
export interface SignedIn {
  member: SignInMember
  sessionId: string
  /** The value of the session's cookie. */
  token: string
  /** Milliseconds since the epoch. */
  expiresAt: number
}

const USER_AGENT_LENGTH = 200

/** @throws ApiError `unauthorized` for a link that is unknown, used or expired, or whose member may not sign in. */
export async function readSetupLink(
  { scope }: Pick<Visit, 'scope'>,
  token: string,
): Promise<{ linkId: string; expiresAt: Date; member: SignInMember }> {
  const digests = parseToken('hgl', token) ? digestsFor(scope.pepperRing, token) : []
  const link =
    digests.length === 0
      ? null
      : await selectSetupLink(
          scope.database,
          digests.map(({ digest }) => digest),
        )
  const isUsable = link !== null && link.usedAt === null && link.expiresAt.getTime() > scope.clock()
  const member = isUsable ? await selectSignInMember(scope.database, link) : null
  if (!isUsable || member === null) throw unusableLink()
  return { linkId: link.id, expiresAt: link.expiresAt, member }
}

const unusableLink = () =>
  codedRefusal(
    'unauthorized',
    'setup_link_unusable',
    'This setup link has expired or was used. Ask an administrator of your organization for another one.',
  )

/** Begins to register the passkey of a setup link. @throws ApiError as `readSetupLink`. */
export async function beginSetup(visit: Omit<Visit, 'ceremony' | 'session' | 'userAgent'>, token: string) {
  const { linkId, member } = await readSetupLink(visit, token)
  const options = await registrationOptions(visit.party, member, [])
  const values = { purpose: 'setup', challenge: options.challenge, holder: linkId } as const
  return { options, ceremony: newCeremony(visit.scope.clock(), values) }
}

/**
 * Registers the passkey of a setup link, and signs in.
 * @throws ApiError as `readSetupLink`; `unauthorized` for another browser than the one that began, and for a wrong answer.
 */
export async function finishSetup(
  visit: Visit,
  request: { token: string; name: string; credential: BrowserCredential },
): Promise<SignedIn> {
  const { linkId, member } = await readSetupLink(visit, request.token)
  const ceremony = ceremonyOf(visit, 'setup')
  if (ceremony.holder !== linkId) throw lateCeremony()
  const verified = await verifyRegistration(visit.party, ceremony.challenge, request.credential)
  return startSession(
    visit,
    member,
    ceremony,
    { method: 'setup_link', link_id: linkId },
    async (scope, session) => {
      const passkey = { name: request.name, ...verified }
      if (!(await spendSetupLink(scope, { id: linkId, userId: member.userId }, passkey, session)))
        throw unusableLink()
    },
  )
}

/** Begins to sign in with a passkey. The browser offers those that it has for this host. */
export async function beginSignIn({ scope, party }: Pick<Visit, 'scope' | 'party'>) {
  const options = await authenticationOptions(party)
  const values = { purpose: 'sign_in', challenge: options.challenge, holder: null } as const
  return { options, ceremony: newCeremony(scope.clock(), values) }
}

/**
 * Signs in with a passkey. One error for an unknown passkey, a wrong answer and a member that is disabled.
 * @throws ApiError `unauthorized`.
 */
export async function finishSignIn(visit: Visit, credential: BrowserCredential): Promise<SignedIn> {
  const ceremony = ceremonyOf(visit, 'sign_in')
  const passkey = await selectPasskeyOfCredential(visit.scope.database, String(credential.id))
  const member =
    passkey && isOwnHandle(credential, passkey)
      ? await selectSignInMember(visit.scope.database, passkey)
      : null
  if (!passkey || !member) throw refusedPasskey()
  const counter = await verifyAuthentication(visit.party, ceremony.challenge, credential, passkey)
  const detail = { method: 'passkey', passkey_id: passkey.id }
  return startSession(visit, member, ceremony, detail, async (scope, session) => {
    if (!(await insertPasskeySession(scope, { ...passkey, counter }, session))) throw refusedPasskey()
  })
}

const refusedPasskey = () =>
  codedRefusal('unauthorized', 'passkey_refused', 'The passkey was not accepted. Begin again.')

/** Whether the authenticator names the membership that the passkey belongs to (WebAuthn 7.2, step 6). */
function isOwnHandle({ response }: BrowserCredential, passkey: MembershipId): boolean {
  const handle = (response as { userHandle?: unknown } | undefined)?.userHandle
  return handle === userHandle(passkey).toString('base64url')
}

/** @throws ApiError `unauthorized` for a request without the cookie of the browser that began. */
function ceremonyOf({ scope, ceremony }: Visit, purpose: Ceremony['purpose']): Ceremony {
  const opened = openCeremony(scope.vaultRing, ceremony, purpose, scope.clock())
  if (opened === null) throw lateCeremony()
  return opened
}

const lateCeremony = () =>
  codedRefusal(
    'unauthorized',
    'sign_in_expired',
    'The sign-in took too long, or began in another browser. Begin again.',
  )

/**
 * Records the sign-in, then stores its session.
 * @param ceremony its id makes one session; `authenticatedAt` is when the user proved who it is, if that was before (milliseconds since
 * the epoch).
 */
export async function startSession(
  { scope, userAgent, session: earlier }: Visit,
  member: SignInMember,
  { id: ceremonyId, authenticatedAt = null }: { id: string; authenticatedAt?: number | null },
  detail: Record<string, unknown>,
  store: (scope: ChangeScope, session: NewSession) => Promise<void>,
): Promise<SignedIn> {
  const { organizationId, userId } = member
  const { id, token } = createToken('hgs')
  const now = scope.clock()
  const expiresAt = now + LONGEST_MS
  const session: NewSession = {
    id,
    ...digestToken(scope.pepperRing, token),
    ceremonyId,
    userAgent: userAgent.slice(0, USER_AGENT_LENGTH),
    signedInAt: new Date(now),
    authenticatedAt: authenticatedAt === null ? null : new Date(authenticatedAt),
    expiresAt: new Date(expiresAt),
  }
  const ofMember: ChangeScope = {
    ...scope,
    organizationId,
    actor: { ...scope.actor, userId, session: id },
  }
  const replaced = await sessionOf(ofMember, userId, earlier)
  const intent = {
    action: 'session.started',
    resource: `sessions/${id}`,
    detail: { user_id: userId, ...detail, ...(replaced !== null && { replaces: replaced }) },
  }
  await audited(ofMember, intent, async () => {
    await store(ofMember, session).catch(refuseRepeated)
    // The browser loses its cookie of the earlier session: nobody could end it any more by signing out.
    if (replaced !== null) await updateSessionEnded(ofMember, userId, replaced)
  })
  return { member, sessionId: id, token, expiresAt }
}

/** The open session of a member that the cookie of a request is of; null for none, and for that of another member. */
async function sessionOf(
  scope: ChangeScope,
  userId: string,
  token: string | undefined,
): Promise<string | null> {
  if (token === undefined || parseToken('hgs', token) === null) return null
  const digests = digestsFor(scope.pepperRing, token).map(({ digest }) => digest)
  return selectSessionOfToken(scope, userId, digests)
}

/** An answer to a challenge makes one session. */
function refuseRepeated(error: unknown): never {
  throw isUniqueViolation(error) ? lateCeremony() : error
}
