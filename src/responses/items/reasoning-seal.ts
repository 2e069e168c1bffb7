import { z } from 'zod'
import { type KeyRing, seal, unseal } from '../../lib/crypto.ts'
import type { ReasoningSecret } from '../item-types/reasoning-secret.ts'
import type { Owner } from '../types.ts'

/** Tells what we sealed from what others did. */
const PREFIX = 'hgr1_'
/** Many times what a model can think in one answer, in UTF-16 units of JSON; base64 of UTF-8 takes up to four bytes for each. */
const LONGEST_SECRET = 8 * 1024 * 1024
const LONGEST_SEALED = 4 * LONGEST_SECRET + 1024

const reasoningSecret = z.array(
  z.strictObject({
    text: z.string(),
    signature: z.string().exactOptional(),
    redacted: z.string().exactOptional(),
    origin: z.string().exactOptional(),
  }),
)

/**
 * Seals reasoning for `encrypted_content`: its owner carries it, and only through us can it go back to a model, for the
 * same owner.
 *
 * @param ring `VAULT_KEYS`.
 * @returns null for more than 8 Mi UTF-16 units, which no model thinks.
 */
export function sealReasoning(ring: KeyRing, owner: Owner, secret: ReasoningSecret): string | null {
  const text = JSON.stringify(secret)
  if (text.length > LONGEST_SECRET) return null
  return PREFIX + seal(ring, text, contextOf(owner))
}

/**
 * Opens what `sealReasoning` made.
 * @returns null for everything else: another owner's, another gateway's, altered, or sealed under a key that is gone.
 */
export function openReasoning(ring: KeyRing, owner: Owner, text: string): ReasoningSecret | null {
  if (!text.startsWith(PREFIX) || text.length > LONGEST_SEALED) return null
  try {
    return reasoningSecret.parse(JSON.parse(unseal(ring, text.slice(PREFIX.length), contextOf(owner))))
  } catch {
    return null
  }
}

const contextOf = ({ organizationId, userId }: Owner) => JSON.stringify(['reasoning', organizationId, userId])
