import { sealCeremony } from '../../../admin/sign-in/ceremony.ts'
import { type LocalSignIn, signInLocally } from '../../../admin/sign-in/local-sign-in.ts'
import {
  beginSetup,
  beginSignIn,
  finishSetup,
  finishSignIn,
  readSetupLink,
  type SignedIn,
  type Visit,
} from '../../../admin/sign-in/sign-in.ts'
import type { SignInMember } from '../../../admin/sign-in/sign-in-members.store.ts'
import type { ChangeScope } from '../../../ledger/changes/audited-change.ts'
import { ApiError, codedRefusal } from '../../../lib/api-error.ts'
import type { AppContext } from '../../context.ts'
import { isLocal, pageOrigin } from '../../own-origin.ts'
import {
  ceremonyCookie,
  clearCeremonyCookie,
  sessionCookie,
  setCeremonyCookie,
  setSessionCookie,
} from '../../session-cookies.ts'
import type { HandlersOf } from './mount-endpoints.ts'

export const visitOf = (context: AppContext, scope: Omit<ChangeScope, 'organizationId'>): Visit => ({
  scope,
  party: { origin: pageOrigin(context) },
  ceremony: ceremonyCookie(context),
  session: sessionCookie(context),
  userAgent: context.req.header('user-agent') ?? '',
})

/** A member as what signs in, and the signed-in user, see it. */
export const presentOwner = (member: SignInMember) => ({
  user: { id: member.userId, email: member.email, name: member.name },
  organization: {
    id: member.organizationId,
    name: member.organizationName,
    slug: member.organizationSlug,
  },
  role: member.role,
})

/** Sets the cookie of a session; the ceremony has ended. */
export function signedIn(context: AppContext, { member, sessionId, token, expiresAt }: SignedIn) {
  setSessionCookie(context, token, expiresAt)
  clearCeremonyCookie(context)
  return { ...presentOwner(member), session: { id: sessionId, expires_at: new Date(expiresAt) } }
}

/** @throws ApiError `not_found` for a gateway that is no local system; `forbidden` for a request by another name than loopback. */
export function localSignIn(context: AppContext): LocalSignIn {
  const { LOCAL_SIGN_IN: local } = context.var.deps.configuration
  if (local === undefined) throw new ApiError('not_found', 'Not found.', { code: 'not_found' })
  if (isLocal(context)) return local
  throw codedRefusal('forbidden', 'not_local', 'This is for requests to localhost, at the port of BASE_URL.')
}

/** Setup links and passkeys, for callers that nobody knows yet. */
export const signInHandlers: HandlersOf<'setup' | 'sign-in'> = {
  'setup.show': async ({ scope, body }) => {
    const { member, expiresAt } = await readSetupLink({ scope }, body.token)
    return { ...presentOwner(member), expires_at: expiresAt }
  },
  'setup.begin': async ({ context, scope, body }) => {
    const { options, ceremony } = await beginSetup(visitOf(context, scope), body.token)
    setCeremonyCookie(context, sealCeremony(scope.vaultRing, ceremony))
    return { options: { ...options } }
  },
  'setup.finish': async ({ context, scope, body }) =>
    signedIn(context, await finishSetup(visitOf(context, scope), body)),
  'sign-in.begin': async ({ context, scope }) => {
    const { options, ceremony } = await beginSignIn(visitOf(context, scope))
    setCeremonyCookie(context, sealCeremony(scope.vaultRing, ceremony))
    return { options: { ...options } }
  },
  'sign-in.local': async ({ context, scope, body }) => {
    const local = localSignIn(context)
    return signedIn(context, await signInLocally(visitOf(context, scope), local, body.token))
  },
  'sign-in.finish': async ({ context, scope, body }) =>
    signedIn(context, await finishSignIn(visitOf(context, scope), body.credential)),
}
