import * as z from 'zod'
import type { KeyRing } from '../../lib/crypto.ts'
import type { Owner } from '../model/types.ts'
import { OwnerSeal } from './owner-seal.ts'

const reasoningSecret = z.array(
  z.strictObject({
    /** Empty where the family does not disclose it. */
    text: z.string(),
    /** The signature by which the family verifies the block. */
    signature: z.string().exactOptional(),
    /** Redacted content, in place of text and signature. */
    redacted: z.string().exactOptional(),
    /** The family of the signature. */
    origin: z.string().exactOptional(),
  }),
)

/**
 * The blocks of a model's reasoning, with what its family requires to accept them again. Callers get and return it sealed.
 */
export type ReasoningSecret = z.infer<typeof reasoningSecret>

const SEAL = new OwnerSeal<ReasoningSecret>({
  prefix: 'hgr1_',
  purpose: 'reasoning',
  schema: reasoningSecret,
})

/** Seals reasoning as `encrypted_content`. @param ring `VAULT_KEYS`. @returns as `OwnerSeal.seal`. */
export const sealReasoning = (ring: KeyRing, owner: Owner, secret: ReasoningSecret): string | null =>
  SEAL.seal(ring, owner, secret)

/** Opens a result of `sealReasoning`. @returns as `OwnerSeal.open`. */
export const openReasoning = (ring: KeyRing, owner: Owner, text: string): ReasoningSecret | null =>
  SEAL.open(ring, owner, text)
