import type { CallPolicy } from '../../governance/dlp/policy/call-policy.ts'
import { type ContentStore, LARGE_ITEM_BYTES } from '../content/content-store.ts'
import type { ContextItem, Owner } from '../types.ts'
import type { StoredItem } from './items.store.ts'
import { redactedItem } from './redaction.ts'

export interface ItemDeps {
  contentStore: ContentStore
}

const encoder = new TextEncoder()

/**
 * Where an item is stored. What a policy takes out of a text for good is taken out before: nobody gets it back, so
 * nobody keeps it. A large one goes to the content store.
 * @returns its bytes, or the key that it lies under. @throws when the content store is away.
 */
export async function placedItem(
  { contentStore }: ItemDeps,
  owner: Owner,
  { id, bytes: given }: ContextItem,
  policy: CallPolicy,
): Promise<{ bytes: Uint8Array; contentKey: null } | { bytes: null; contentKey: string }> {
  const bytes = redactedItem(policy, given)
  if (bytes.length <= LARGE_ITEM_BYTES) return { bytes, contentKey: null }
  return { bytes: null, contentKey: await contentStore.put(owner, id, bytes) }
}

/** The JSON of a stored item. @throws when its content is away. */
export async function itemBytes({ contentStore }: ItemDeps, item: StoredItem): Promise<Uint8Array> {
  if (item.body !== null) return encoder.encode(item.body)
  if (item.contentKey === null) throw new Error(`the item ${item.id} has no content`)
  return contentStore.get(item.contentKey)
}
