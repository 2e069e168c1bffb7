import type { CallPolicy } from '../../governance/dlp/policy/call-policy.ts'
import { joinBytes } from '../../lib/byte-edits.ts'
import type { ContentStore } from '../content/content-store.ts'
import type { ItemPage, ItemPageRequest } from './items.store.ts'
import { redactedItem, sealedMemberOf, withoutSealed } from './redaction.ts'
import { itemBytes } from './stored-items.ts'

/** An item of a list; its content is fetched when its turn comes. */
export interface ListedItem {
  id: string
  type: string
  /** @returns the item as JSON. */
  read(): Promise<Uint8Array>
}

export interface ListedItems {
  items: ListedItem[]
  hasMore: boolean
}

/** How items are told to their owner. */
export interface Telling {
  /** The policies that hold for an item. */
  policyOf: (itemId: string) => Promise<CallPolicy>
  /** Whether reasoning is told with what is sealed in it. */
  encryptedContent: boolean
}

/** A longer list is not put together here: it leaves while it is read. In bytes. */
const LONGEST_HELD_LIST = 8 * 1024 * 1024
/** Of a page that leaves an object: at two bytes each it stays below the 32 MiB of one answer of an object. */
const LARGEST_PAGE_CHARACTERS = 12 * 1024 * 1024

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })

/** Items as they are stored. */
export function listedItems(deps: { contentStore: ContentStore }, page: ItemPage): ListedItems {
  const items = page.items.map((item) => ({
    id: item.id,
    type: item.type,
    read: () => itemBytes(deps, item),
  }))
  return { items, hasMore: page.hasMore }
}

/**
 * A page of items that are all here, cut as Postgres cuts it: large ones shorten it, and the first is always there.
 * @param items every one, oldest first; `length` of what is here of it, in characters or bytes.
 * @returns `unknown_item` when there is none to begin after.
 */
export function pageOfItems<Item extends { id: string; length: number | null }>(
  items: readonly Item[],
  { limit, order, after }: ItemPageRequest,
): { items: Item[]; hasMore: boolean } | 'unknown_item' {
  const ordered = order === 'desc' ? items.toReversed() : items
  const before = after == null ? -1 : ordered.findIndex(({ id }) => id === after)
  if (after != null && before < 0) return 'unknown_item'
  const rest = ordered.slice(before + 1)
  let characters = 0
  const end = rest.slice(0, limit).findIndex(({ length }, index) => {
    characters += length ?? 0
    return index > 0 && characters > LARGEST_PAGE_CHARACTERS
  })
  const page = rest.slice(0, end < 0 ? limit : end)
  return { items: page, hasMore: rest.length > page.length }
}

/** One item as it is told. @throws when its content is away. */
export async function renderItem(
  item: ListedItem,
  { policyOf, encryptedContent }: Telling,
): Promise<Uint8Array> {
  const bytes = redactedItem(await policyOf(item.id), await item.read())
  if (encryptedContent || sealedMemberOf(item) === undefined) return bytes
  return encoder.encode(JSON.stringify(withoutSealed(JSON.parse(decoder.decode(bytes)))))
}

/**
 * The list envelope as JSON; its last three members are always there (interface: Conversation and conversation items).
 * @returns a stream for a list that is too long to be held. @throws when content is away; a stream breaks off then.
 */
export async function renderList(
  { items, hasMore }: ListedItems,
  telling: Telling,
): Promise<Uint8Array | ReadableStream<Uint8Array>> {
  const end = { first_id: items[0]?.id ?? null, last_id: items.at(-1)?.id ?? null, has_more: hasMore }
  async function* parts(): AsyncGenerator<Uint8Array, void> {
    yield encoder.encode('{"object":"list","data":[')
    for (const [index, item] of items.entries()) {
      if (index > 0) yield encoder.encode(',')
      yield await renderItem(item, telling)
    }
    yield encoder.encode(`],${JSON.stringify(end).slice(1)}`)
  }
  return heldOrStreamed(parts())
}

async function heldOrStreamed(
  parts: AsyncGenerator<Uint8Array, void>,
): Promise<Uint8Array | ReadableStream<Uint8Array>> {
  const held: Uint8Array[] = []
  for (let bytes = 0; bytes <= LONGEST_HELD_LIST; ) {
    const { done, value } = await parts.next()
    if (done) return joinBytes(held)
    held.push(value)
    bytes += value.length
  }
  return new ReadableStream(
    {
      async pull(controller) {
        const next = held.shift() ?? (await parts.next()).value
        if (next) controller.enqueue(next)
        else controller.close()
      },
      async cancel() {
        await parts.return()
      },
    },
    { highWaterMark: 0 },
  )
}
