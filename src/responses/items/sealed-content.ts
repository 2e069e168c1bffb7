import type { KeyRing } from '../../lib/crypto.ts'
import { scanJson } from '../../lib/json-scan.ts'
import { decodeString } from '../../lib/json-string.ts'
import type { Owner } from '../model/types.ts'
import { type CompactionSecret, openCompaction } from './compaction-seal.ts'
import { openReasoning, type ReasoningSecret } from './reasoning-seal.ts'

/** Opens the sealed content of items for one owner. Each function returns null for content that cannot be opened. */
export interface SealOpener {
  reasoning: (sealed: string) => ReasoningSecret | null
  compaction: (sealed: string) => CompactionSecret | null
}

export const sealOpener = (
  { configuration }: { configuration: { VAULT_KEYS: KeyRing } },
  owner: Owner,
): SealOpener => ({
  reasoning: (sealed) => openReasoning(configuration.VAULT_KEYS, owner, sealed),
  compaction: (sealed) => openCompaction(configuration.VAULT_KEYS, owner, sealed),
})

/** The `encrypted_content` of an item; null where it is no string. @param bytes of the item as JSON. */
export function sealedText(bytes: Uint8Array): string | null {
  let text: string | null = null
  scanJson(bytes, {
    value(path, kind, start, end) {
      if (path.length !== 1 || path[0] !== 'encrypted_content') return
      text = kind === 'string' ? decodeString(bytes, start + 1, end - 1) : null
    },
  })
  return text
}
