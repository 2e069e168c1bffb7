import type { CallPolicy } from '../../dlp/policy/call-policy.ts'
import { joinBytes } from '../../lib/byte-edits.ts'
import type { Compatibility } from '../../wire/compatibility.ts'
import type { Includes } from '../../wire/response-queries.ts'
import type { ContentStore } from '../content/content-store.ts'
import type { ItemPage, ItemPageRequest, StoredItem } from '../model/stored-items.ts'
import { openResponsesItem } from '../open-responses/rendered-item.ts'
import { withIncluded } from './included-members.ts'
import { itemBytes } from './item-bytes.ts'
import { redactedItem } from './redaction.ts'
import { ITEM_TYPES } from './types/item-types.ts'

/** How items are rendered for their owner. */
export interface ItemRendering {
  contentStore: Pick<ContentStore, 'get'>
  /** The policies for an item. */
  policyOf: (itemId: string) => Promise<CallPolicy>
  /** The form in which an item is shown. */
  compatibilityOf: (itemId: string) => Compatibility
  includes: Includes
}

/** Bytes up to which a list is buffered. A longer one is streamed. */
const LONGEST_BUFFERED_LIST = 8 * 1024 * 1024
/** Characters of a page from an object: at two bytes each, it stays below the 32 MiB of one result of an object. */
const LARGEST_PAGE_CHARACTERS = 12 * 1024 * 1024

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })

/**
 * A page of a list in memory, limited as a page from Postgres: large items shorten it, and it has at least one item.
 * @param items the whole list, oldest first, with the `length` of their content in characters or bytes.
 * @returns `unknown_item` when `after` is not in the list.
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

/** One item as JSON, redacted for its owner. @throws when the content store is not available. */
export async function renderItem(item: StoredItem, rendering: ItemRendering): Promise<Uint8Array> {
  const bytes = await redactedItem(await rendering.policyOf(item.id), await itemBytes(rendering, item))
  const isWhole = !ITEM_TYPES.get(item.type)?.includable
  const form = rendering.compatibilityOf(item.id)
  if (isWhole && form === 'headgate') return bytes
  const parsed: object = JSON.parse(decoder.decode(bytes))
  const shown = isWhole ? parsed : withIncluded(parsed, rendering.includes)
  return encoder.encode(JSON.stringify(form === 'headgate' ? shown : openResponsesItem(shown)))
}

/**
 * The list envelope as JSON. Its last three members are always present (interface: Conversation and conversation items).
 * @returns a stream for a list that is too long to be buffered.
 * @throws when the content store is not available; a stream fails then.
 */
export async function renderList(
  { items, hasMore }: ItemPage,
  rendering: ItemRendering,
): Promise<Uint8Array | ReadableStream<Uint8Array>> {
  const end = { first_id: items[0]?.id ?? null, last_id: items.at(-1)?.id ?? null, has_more: hasMore }
  async function* parts(): AsyncGenerator<Uint8Array, void> {
    yield encoder.encode('{"object":"list","data":[')
    for (const [index, item] of items.entries()) {
      if (index > 0) yield encoder.encode(',')
      yield await renderItem(item, rendering)
    }
    yield encoder.encode(`],${JSON.stringify(end).slice(1)}`)
  }
  return bufferedOrStreamed(parts())
}

async function bufferedOrStreamed(
  parts: AsyncGenerator<Uint8Array, void>,
): Promise<Uint8Array | ReadableStream<Uint8Array>> {
  const buffered: Uint8Array[] = []
  for (let bytes = 0; bytes <= LONGEST_BUFFERED_LIST; ) {
    const { done, value } = await parts.next()
    if (done) return joinBytes(buffered)
    buffered.push(value)
    bytes += value.length
  }
  return new ReadableStream(
    {
      async pull(controller) {
        const next = buffered.shift() ?? (await parts.next()).value
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
