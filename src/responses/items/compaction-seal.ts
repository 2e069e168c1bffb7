import * as z from 'zod'
import type { KeyRing } from '../../lib/crypto.ts'
import type { Owner } from '../model/types.ts'
import { OwnerSeal } from './owner-seal.ts'

const compactionSecret = z.strictObject({
  /** Replaces the items before the compaction, but for those that are kept; null: all of them are kept. */
  summary: z.string().nullable(),
  /** Ids of the calls that are kept with their outputs, because the model has not continued after them. */
  calls: z.array(z.string()),
  /** JSON bytes of the user's messages that are kept, the newest first. The last ones are kept in any case. */
  userBytes: z.int().nonnegative(),
})

/**
 * Content of a compaction item: the summary, and the earlier items that are kept beside it. Callers get and return it
 * sealed.
 */
export type CompactionSecret = z.infer<typeof compactionSecret>

const SEAL = new OwnerSeal<CompactionSecret>({
  prefix: 'hgc1_',
  purpose: 'compaction',
  schema: compactionSecret,
})

/** Seals a compaction as `encrypted_content`. @param ring `VAULT_KEYS`. @returns as `OwnerSeal.seal`. */
export const sealCompaction = (ring: KeyRing, owner: Owner, secret: CompactionSecret): string | null =>
  SEAL.seal(ring, owner, secret)

/** Opens a result of `sealCompaction`. @returns as `OwnerSeal.open`. */
export const openCompaction = (ring: KeyRing, owner: Owner, text: string): CompactionSecret | null =>
  SEAL.open(ring, owner, text)
