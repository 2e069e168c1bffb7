import { selectProvider } from '../../../admin/identity-provider.store.ts'
import { sealCeremony } from '../../../admin/sign-in/ceremony.ts'
import { type LocalSignIn, signInLocally } from '../../../admin/sign-in/local-sign-in.ts'
import { sealRound } from '../../../admin/sign-in/oidc-round.ts'
import { beginOidc } from '../../../admin/sign-in/oidc-sign-in.ts'
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
import { hasIdentityProviders } from '../../../admin/sign-in/sign-in-methods.ts'
import type { ChangeScope } from '../../../ledger/changes/audited-change.ts'
import { ApiError, codedRefusal } from '../../../lib/api-error.ts'
import type { AppContext } from '../../context.ts'
import { isLocal, pageOrigin } from '../../own-origin.ts'
import {
  ceremonyCookie,
  clearCeremonyCookie,
  sessionCookie,
  setCeremonyCookie,
  setRoundCookie,
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

/** Where identity providers send browsers back to. Of the page's own host, which has the cookie. */
export const redirectUri = (context: AppContext): string => `${pageOrigin(context)}/api/sign-in/oidc/callback`

/** Setup links, passkeys and identity providers, for callers that nobody knows yet. */
export const signInHandlers: HandlersOf<'setup' | 'sign-in'> = {
  'setup.show': async ({ scope, body }) => {
    const { member, expiresAt } = await readSetupLink({ scope }, body.token)
    const provider = await selectProvider({ ...scope, organizationId: member.organizationId })
    return {
      ...presentOwner(member),
      expires_at: expiresAt,
      identity_provider: provider && { issuer: provider.issuer },
    }
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
  'sign-in.methods': async ({ context, scope }) => ({
    passkey: true,
    oidc: await hasIdentityProviders(scope),
    local: context.var.deps.configuration.LOCAL_SIGN_IN !== undefined,
  }),
  'sign-in.oidc-begin': async ({ context, scope, body }) => {
    const { url, round } = await beginOidc({ scope }, body, redirectUri(context))
    setRoundCookie(context, sealRound(scope.vaultRing, round))
    return { url }
  },
  'sign-in.local': async ({ context, scope, body }) => {
    const local = localSignIn(context)
    return signedIn(context, await signInLocally(visitOf(context, scope), local, body.token))
  },
  'sign-in.finish': async ({ context, scope, body }) =>
    signedIn(context, await finishSignIn(visitOf(context, scope), body.credential)),
}
