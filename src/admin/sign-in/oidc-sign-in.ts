import type { ChangeScope } from '../../ledger/changes/audited-change.ts'
import { codedRefusal } from '../../lib/api-error.ts'
import { secretsEqual } from '../../lib/crypto.ts'
import { type IdentityProviderRow, selectProvider, selectProviderOfSlug } from '../identity-provider.store.ts'
import { openProviderSecret } from '../identity-provider.ts'
import {
  type Identity,
  insertLinkedSession,
  linkByAddress,
  linkBySetupLink,
  selectLinkedUser,
  selectUserOfAddress,
} from './identities.store.ts'
import { accountOf, authorizationUrl, type ProviderAccount, ProviderError } from './oidc-client.ts'
import { newRound, type OidcRound, openRound } from './oidc-round.ts'
import type { NewSession } from './sessions.store.ts'
import { readSetupLink, type SignedIn, startSession, type Visit } from './sign-in.ts'
import { selectSignInMember } from './sign-in-members.store.ts'

/** Signing in with the account of an organization's identity provider. */

/** Which organization's provider is asked: by its slug, or by the setup link of one of its members. */
interface OidcStart {
  organization?: string | undefined
  token?: string | undefined
  reauthenticate: boolean
  /** A page of the console. */
  to: string
}

/**
 * Begins a sign-in.
 * @param redirectUri where the provider sends the browser back to.
 * @returns the address of the provider's page.
 * @throws ApiError `unprocessable` (`sso_unavailable`), the same for an organization that does not exist, is disabled or has no
 * provider; `upstream` for a provider that cannot be used; as `readSetupLink`.
 */
export async function beginOidc(
  { scope }: Pick<Visit, 'scope'>,
  { organization, token, reauthenticate, to }: OidcStart,
  redirectUri: string,
): Promise<{ url: string; round: OidcRound }> {
  const link = token === undefined ? null : await readSetupLink({ scope }, token)
  const provider =
    link === null
      ? await selectProviderOfSlug(scope.database, organization ?? '')
      : await selectProvider({ ...scope, organizationId: link.member.organizationId })
  if (provider === null) throw unavailable()
  const { organizationId, issuer, clientId } = provider
  const round = newRound(scope.clock(), {
    ...{ organizationId, issuer, clientId, redirectUri, to, reauthenticates: reauthenticate },
    linkId: link?.linkId ?? null,
    userId: link?.member.userId ?? null,
  })
  const url = await authorizationUrl(scope, clientOf(scope, provider), round).catch(refuseProvider)
  return { url, round }
}

const clientOf = (scope: Visit['scope'], provider: IdentityProviderRow) => ({
  issuer: provider.issuer,
  clientId: provider.clientId,
  clientSecret: openProviderSecret(scope, provider),
})

const unavailable = () =>
  codedRefusal(
    'unprocessable',
    'sso_unavailable',
    'There is no sign-in with a company account for this organization.',
  )

const lateRound = () =>
  codedRefusal(
    'unauthorized',
    'sign_in_expired',
    'The sign-in took too long, or began in another browser. Begin again.',
  )

const noMember = () =>
  codedRefusal(
    'unauthorized',
    'sso_no_member',
    'This account belongs to no member of the organization who may sign in.',
  )

function refuseProvider(error: unknown): never {
  if (!(error instanceof ProviderError)) throw error
  switch (error.failure) {
    case 'unreachable':
    case 'unusable':
      throw codedRefusal(
        'upstream',
        'sso_unreachable',
        'The identity provider cannot be used. Try again later.',
      )
    case 'declined':
      throw codedRefusal('unauthorized', 'sso_declined', 'The identity provider did not sign you in.')
    case 'refused':
      throw codedRefusal('unauthorized', 'sso_refused', "The identity provider's answer was not accepted.")
  }
}

/** The round that a browser comes back from. @throws ApiError `unauthorized` for none, for one that is over, and for another `state`. */
export function returnedRound(
  { vaultRing, clock }: Pick<Visit['scope'], 'vaultRing' | 'clock'>,
  sealed: string | undefined,
  returned: URLSearchParams,
): OidcRound {
  const round = openRound(vaultRing, sealed, clock())
  if (round === null || !secretsEqual(returned.get('state') ?? '', round.state)) throw lateRound()
  return round
}

/**
 * Ends a sign-in: exchanges the code, finds or links the member of the account, and stores a session.
 * @throws ApiError `unauthorized` for an answer that does not verify, and for an account without a member; `upstream`;
 * `unprocessable` when the organization has another provider meanwhile.
 */
export async function finishOidc(
  visit: Visit,
  round: OidcRound,
  returned: URLSearchParams,
): Promise<SignedIn> {
  const scope = { ...visit.scope, organizationId: round.organizationId }
  const provider = await selectProvider(scope)
  if (provider?.issuer !== round.issuer || provider.clientId !== round.clientId) throw unavailable()
  const account = await accountOf(
    scope,
    clientOf(scope, provider),
    round,
    returned,
    maxAgeOf(scope, round),
  ).catch(refuseProvider)
  const { userId, linkedBy, store } = await linkOf(scope, round, account)
  const member = await selectSignInMember(scope.database, { organizationId: round.organizationId, userId })
  if (member === null) throw noMember()
  const detail = { method: 'oidc', issuer: round.issuer, ...(linkedBy && { linked_by: linkedBy }) }
  const ceremony = { id: round.id, authenticatedAt: provedAt(scope, round, account) }
  return startSession(visit, member, ceremony, detail, async (ofMember, session) => {
    if (!(await store(ofMember, session))) throw noMember()
  })
}

/** Seconds since a round began in which the person proves who it is again; null where no proof is asked for. */
const maxAgeOf = ({ clock }: Pick<ChangeScope, 'clock'>, { reauthenticates, begunAt }: OidcRound) =>
  reauthenticates ? Math.ceil((clock() - begunAt) / 1_000) : null

/**
 * When the person proved who it is, if that was before: a session of the provider may be days old, which is no recent sign-in. A
 * provider that does not say is taken to have asked just now.
 */
function provedAt(
  { clock }: Pick<ChangeScope, 'clock'>,
  { reauthenticates }: OidcRound,
  { authenticatedAt }: ProviderAccount,
): number | null {
  if (reauthenticates || authenticatedAt === null) return null
  return Math.min(authenticatedAt, clock())
}

/** The user of an account, and the statement that lets it in. */
interface Link {
  userId: string
  /** What makes the link now; null where there is one. */
  linkedBy: 'setup_link' | 'address' | null
  store: (scope: ChangeScope, session: NewSession) => Promise<boolean>
}

/**
 * The member of an account: that of the setup link, the one that it is linked to, or once the one with its verified address.
 * @throws ApiError `unauthorized` for none.
 */
async function linkOf(
  scope: { database: ChangeScope['database']; organizationId: string },
  { issuer, clientId, linkId, userId: invited }: OidcRound,
  account: ProviderAccount,
): Promise<Link> {
  const ofUser = (userId: string): Identity => ({ userId, issuer, clientId, subject: account.subject })
  if (linkId !== null && invited !== null) {
    const identity = { ...ofUser(invited), linkId }
    return {
      userId: invited,
      linkedBy: 'setup_link',
      store: (to, session) => linkBySetupLink(to, identity, session),
    }
  }
  const linked = await selectLinkedUser(scope, { issuer, subject: account.subject })
  if (linked !== null) {
    const identity = ofUser(linked)
    return {
      userId: linked,
      linkedBy: null,
      store: (to, session) => insertLinkedSession(to, identity, session),
    }
  }
  const address = await account.verifiedAddress().catch(refuseProvider)
  if (address === null) {
    throw codedRefusal(
      'unauthorized',
      'sso_unverified',
      'The identity provider has not verified the address of this account.',
    )
  }
  const userId = await selectUserOfAddress(scope, address)
  if (userId === null) throw noMember()
  const identity = { ...ofUser(userId), address }
  return { userId, linkedBy: 'address', store: (to, session) => linkByAddress(to, identity, session) }
}
