import { randomBytes } from 'node:crypto'
import { type KeyRing, seal, unseal } from '../../lib/crypto.ts'
import { newId } from '../../lib/ids.ts'
import { CEREMONY_MS } from './ceremony.ts'
import type { ProviderRequest } from './oidc-client.ts'

/**
 * A sign-in with an identity provider in progress, sealed in a cookie as the ceremony of a passkey is: only the browser that began it
 * can end it, and the session that it makes carries its id.
 */
export interface OidcRound extends ProviderRequest {
  id: string
  organizationId: string
  /** Issuer and client when it began: a return is taken from no other. */
  issuer: string
  clientId: string
  /** The setup link that links the account; null for a sign-in. */
  linkId: string | null
  /** The user of that link. */
  userId: string | null
  /** The page of the console to go to. */
  to: string
  /** Milliseconds since the epoch. */
  begunAt: number
}

const SEAL = 'sign-in with an identity provider'

const randomText = () => randomBytes(32).toString('base64url')

/** A new round. @param now milliseconds since the epoch. */
export const newRound = (
  now: number,
  values: Omit<OidcRound, 'id' | 'begunAt' | 'state' | 'nonce' | 'verifier'>,
): OidcRound => ({
  id: newId('ceremony'),
  begunAt: now,
  state: randomText(),
  nonce: randomText(),
  verifier: randomText(),
  ...values,
})

/** The round as a cookie holds it. */
export const sealRound = (ring: KeyRing, round: OidcRound): string => seal(ring, JSON.stringify(round), SEAL)

/** @returns null for a text that is no round, and for one that has expired. */
export function openRound(ring: KeyRing, sealed: string | undefined, now: number): OidcRound | null {
  if (sealed === undefined) return null
  try {
    const round = JSON.parse(unseal(ring, sealed, SEAL)) as OidcRound
    return now < round.begunAt + CEREMONY_MS ? round : null
  } catch {
    return null
  }
}
