import type { ContentStore } from '../content/content-store.ts'
import type { StoredItem } from '../model/stored-items.ts'
import type { ContextItem } from '../model/types.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })

/** An item of any size with its JSON in it, as the object of a response stores it. */
export const storedItemOf = ({ bytes, ...item }: ContextItem): StoredItem => ({
  ...item,
  body: decoder.decode(bytes),
  contentKey: null,
})

/** The JSON of a stored item. @throws when the content store is not available. */
export async function itemBytes(
  { contentStore }: { contentStore: Pick<ContentStore, 'get'> },
  { id, body, contentKey }: StoredItem,
): Promise<Uint8Array> {
  if (body !== null) return encoder.encode(body)
  if (contentKey === null) throw new Error(`the item ${id} has no content`)
  return contentStore.get(contentKey)
}
