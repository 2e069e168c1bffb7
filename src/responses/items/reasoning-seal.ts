import { z } from 'zod'
import { isBase64 } from '../../gateway/protocols/text-fields.ts'
import { type KeyRing, seal, unseal } from '../../lib/crypto.ts'
import type { Owner } from '../types.ts'

/** Distinguishes content that this service has sealed from that of others. */
const PREFIX = 'hgr1_'
/** In UTF-16 units of JSON: many times the reasoning of one answer. */
const LONGEST_SECRET = 8 * 1024 * 1024
/** Base64 of UTF-8 takes up to four bytes for each UTF-16 unit. */
const LONGEST_SEALED = 4 * LONGEST_SECRET + 1024

const reasoningSecret = z.array(
  z.strictObject({
    /** Empty where the family does not disclose it. */
    text: z.string(),
    /** By which the family verifies the block. */
    signature: z.string().exactOptional(),
    /** In place of text and signature. */
    redacted: z.string().exactOptional(),
    /** The family of the signature. */
    origin: z.string().exactOptional(),
  }),
)

/**
 * The blocks of a model's reasoning, with what its family requires to accept them again. Callers get and return it sealed.
 */
export type ReasoningSecret = z.infer<typeof reasoningSecret>

/**
 * Seals reasoning as `encrypted_content`. Only this service can open it, and only for the same owner.
 * @param ring `VAULT_KEYS`.
 * @returns null for more than 8 Mi UTF-16 units.
 */
export function sealReasoning(ring: KeyRing, owner: Owner, secret: ReasoningSecret): string | null {
  const text = JSON.stringify(secret)
  if (text.length > LONGEST_SECRET) return null
  return PREFIX + seal(ring, text, contextOf(owner))
}

/**
 * Opens a result of `sealReasoning`.
 * @returns null for any other text: of another owner or service, changed, or sealed with a key that was removed.
 */
export function openReasoning(ring: KeyRing, owner: Owner, text: string): ReasoningSecret | null {
  if (!text.startsWith(PREFIX) || text.length > LONGEST_SEALED) return null
  try {
    return reasoningSecret.parse(JSON.parse(unseal(ring, text.slice(PREFIX.length), contextOf(owner))))
  } catch {
    return null
  }
}

/** Whether content of an item has the form of what `sealReasoning` returns, which holds no readable text. */
export function isSealed(contents: Uint8Array): boolean {
  const head = SEALED_HEAD.exec(String.fromCharCode(...contents.subarray(0, SEALED_HEAD_BYTES)))
  return head !== null && isBase64(contents, head[0].length, contents.length)
}

/** The prefix, then version, key id and initialization vector of `seal`. */
const SEALED_HEAD = /^hgr1_v1\.[\w-]{1,64}\.[\w-]{16}\./
const SEALED_HEAD_BYTES = 100

const contextOf = ({ organizationId, userId }: Owner) => JSON.stringify(['reasoning', organizationId, userId])
