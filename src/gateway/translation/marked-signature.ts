import { sha256Hex } from '../../lib/crypto.ts'
import { SIGNATURE_MARK } from '../protocols/signature-mark.ts'

/**
 * Signatures that callers of chat completions and messages send back by themselves name no origin, and a vendor refuses
 * those of another model or endpoint. So each is sent to the caller with a mark of its origin. Responses need none: the
 * gateway stores the origin with the signature.
 */

const HASH_LENGTH = 16

const headOf = (origin: string): string => `${SIGNATURE_MARK}${sha256Hex(origin).slice(0, HASH_LENGTH)}.`

/** @param origin from `signatureOrigin`. */
export const markedSignature = (signature: string, origin: string): string => headOf(origin) + signature

/**
 * The signature in a marked one. @param marked as a caller sent it. @param origin of the model that the request is for.
 * @returns null for one of another origin, without a mark, and where the model's origin is unknown.
 */
export function ownSignature(marked: string, origin: string | undefined): string | null {
  if (origin === undefined) return null
  const head = headOf(origin)
  return marked.startsWith(head) && marked.length > head.length ? marked.slice(head.length) : null
}
