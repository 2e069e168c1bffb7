import { type KeyRing, seal, unseal } from '../../lib/crypto.ts'
import { newId } from '../../lib/ids.ts'

/**
 * A ceremony of WebAuthn in progress: the challenge that a browser has to answer. It is sealed in a cookie, so that only the
 * browser that began it can end it, and nothing is stored for a visitor who never does. That it signs in once is
 * kept by its effect: the session that it makes carries its id, which is unique. A passkey that is added makes no session: its challenge
 * can be answered again, with another credential, within the same session.
 */
export interface Ceremony {
  id: string
  purpose: 'setup' | 'sign_in' | 'add'
  /** As the authenticator signs it, base64url. */
  challenge: string
  /** The setup link, or the session, that may end it; null for a sign-in. */
  holder: string | null
  /** Milliseconds since the epoch. */
  expiresAt: number
}

/** Time in which a browser has to answer, in milliseconds. */
export const CEREMONY_MS = 10 * 60_000

const SEAL = 'sign-in ceremony'

/** A new ceremony. @param now milliseconds since the epoch. */
export const newCeremony = (
  now: number,
  values: Pick<Ceremony, 'purpose' | 'challenge' | 'holder'>,
): Ceremony => ({ id: newId('ceremony'), expiresAt: now + CEREMONY_MS, ...values })

/** The ceremony as a cookie holds it. */
export const sealCeremony = (ring: KeyRing, ceremony: Ceremony): string =>
  seal(ring, JSON.stringify(ceremony), SEAL)

/** @returns null for a text that is no ceremony of this purpose, and for one that has expired. */
export function openCeremony(
  ring: KeyRing,
  sealed: string | undefined,
  purpose: Ceremony['purpose'],
  now: number,
): Ceremony | null {
  if (sealed === undefined) return null
  try {
    const ceremony = JSON.parse(unseal(ring, sealed, SEAL)) as Ceremony
    return ceremony.purpose === purpose && now < ceremony.expiresAt ? ceremony : null
  } catch {
    return null
  }
}
