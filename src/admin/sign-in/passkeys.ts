import { codedRefusal } from '../../lib/api-error.ts'
import type { PasskeyRow } from './passkeys.store.ts'
import type { SignInMember } from './sign-in-members.store.ts'

/**
 * The two ceremonies of WebAuthn (https://www.w3.org/TR/webauthn-3/). Credentials are discoverable and need user verification;
 * no attestation is asked for, because no kind of authenticator is refused.
 */

/** The library is loaded by the first sign-in: a Worker that serves calls of models never evaluates it. */
const webauthn = () => import('@simplewebauthn/server')

/** Where the ceremonies run: the origin of the web terminal. */
export interface RelyingParty {
  /** With scheme and port. */
  origin: string
}

const idOf = ({ origin }: RelyingParty): string => new URL(origin).hostname

/** What a browser answered: JSON as `PublicKeyCredential.toJSON` makes it, checked for its shape only. */
export type BrowserCredential = Record<string, unknown>

/** A credential that was verified, as it is stored. */
type VerifiedCredential = Pick<PasskeyRow, 'credentialId' | 'publicKey' | 'counter' | 'transports'>

/** The user handle: the membership. A user has one for each organization, so that its browser lists them side by side. */
export const userHandle = ({ organizationId, userId }: { organizationId: string; userId: string }) =>
  Buffer.from((organizationId + userId).replaceAll('-', ''), 'hex')

/** Options of `navigator.credentials.create`. @param known credentials of the member, which are not registered twice. */
export async function registrationOptions(
  party: RelyingParty,
  member: SignInMember,
  known: readonly Pick<PasskeyRow, 'credentialId' | 'transports'>[],
) {
  const { generateRegistrationOptions } = await webauthn()
  return generateRegistrationOptions({
    rpName: 'Headgate',
    rpID: idOf(party),
    userID: new Uint8Array(userHandle(member)),
    userName: `${member.email} · ${member.organizationName}`,
    userDisplayName: `${member.name} · ${member.organizationName}`,
    attestationType: 'none',
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    excludeCredentials: known.map(({ credentialId, transports }) => ({ id: credentialId, transports })),
  })
}

/** @throws ApiError `unauthorized` for an answer that does not verify. */
export async function verifyRegistration(
  party: RelyingParty,
  challenge: string,
  credential: BrowserCredential,
): Promise<VerifiedCredential> {
  const { verifyRegistrationResponse } = await webauthn()
  const { registrationInfo } = await verified(() =>
    verifyRegistrationResponse({
      response: credential as never,
      expectedChallenge: challenge,
      expectedOrigin: party.origin,
      expectedRPID: idOf(party),
      requireUserVerification: true,
    }),
  )
  if (!registrationInfo) throw refused()
  const { id, publicKey, counter, transports } = registrationInfo.credential
  return {
    credentialId: id,
    publicKey: Buffer.from(publicKey).toString('base64url'),
    counter,
    transports: knownTransports(transports),
  }
}

const TRANSPORT = /^[a-z-]{1,20}$/
const MOST_TRANSPORTS = 8

/** Names of transports. The browser says them beside what it signs, so that they can be anything. */
function knownTransports(said: unknown): string[] {
  if (!Array.isArray(said)) return []
  return said.filter((name) => typeof name === 'string' && TRANSPORT.test(name)).slice(0, MOST_TRANSPORTS)
}

/** Options of `navigator.credentials.get`, for any passkey of this gateway. */
export async function authenticationOptions(party: RelyingParty) {
  const { generateAuthenticationOptions } = await webauthn()
  return generateAuthenticationOptions({ rpID: idOf(party), userVerification: 'required' })
}

/** @returns the authenticator's new count of signatures. @throws ApiError for an answer that does not verify. */
export async function verifyAuthentication(
  party: RelyingParty,
  challenge: string,
  credential: BrowserCredential,
  passkey: PasskeyRow,
): Promise<number> {
  const { verifyAuthenticationResponse } = await webauthn()
  const { authenticationInfo } = await verified(() =>
    verifyAuthenticationResponse({
      response: credential as never,
      expectedChallenge: challenge,
      expectedOrigin: party.origin,
      expectedRPID: idOf(party),
      requireUserVerification: true,
      credential: {
        id: passkey.credentialId,
        publicKey: new Uint8Array(Buffer.from(passkey.publicKey, 'base64url')),
        counter: passkey.counter,
        transports: passkey.transports,
      },
    }),
  )
  return authenticationInfo.newCounter
}

/** The library throws for every fault of an answer, and its texts quote the answer. */
async function verified<Result extends { verified: boolean }>(
  verify: () => Promise<Result>,
): Promise<Result> {
  const result = await verify().catch(() => null)
  if (!result?.verified) throw refused()
  return result
}

const refused = () =>
  codedRefusal('unauthorized', 'passkey_refused', 'The passkey was not accepted. Begin again.')
