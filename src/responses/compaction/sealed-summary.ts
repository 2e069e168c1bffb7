import { ApiError } from '../../lib/api-error.ts'
import type { KeyRing } from '../../lib/crypto.ts'
import { type CompactionSecret, sealCompaction } from '../items/compaction-seal.ts'
import type { Owner } from '../model/types.ts'

/** The `encrypted_content` of a compaction. @throws ApiError internal for a summary that is too long to be sealed. */
export function sealedSummary(
  { configuration }: { configuration: { VAULT_KEYS: KeyRing } },
  owner: Owner,
  secret: CompactionSecret,
): string {
  const sealed = sealCompaction(configuration.VAULT_KEYS, owner, secret)
  if (sealed === null) throw new ApiError('internal', 'The summary of the conversation is too long.')
  return sealed
}
