import type { Usage } from '../../governance/credits.ts'
import type { ResponseObject } from '../../wire/responses.ts'
import { LARGE_ITEM_BYTES } from '../content/content-store.ts'
import type { ResponseEmitter } from '../emitter/emitter.ts'
import type { ResponseEnd } from '../engine/response-end.ts'
import type { StoredItem } from '../items/items.store.ts'
import { contextItemOf, sealedOf } from '../items/output-items.ts'
import { sealReasoning } from '../items/reasoning-seal.ts'
import { finishResponse } from '../responses.store.ts'
import type { ContextItem, Owner } from '../types.ts'
import type { ResponseDeps } from './response-deps.ts'
import type { ResponseHead } from './response-head.ts'

/** What a response has become, as its object keeps it until Postgres has it. */
export interface FinalResponse {
  response: ResponseObject
  outputItems: StoredItem[]
}

/** The input of a response, as its object keeps it. */
export interface StoredInput {
  /** All of them, in the order of the request. */
  ids: string[]
  /** Those that were not stored before, one after the other. */
  own: () => Iterable<StoredItem>
}

/** Fixes what a response came to. Nothing is reached out for: a response ends also when everything else is away. */
export function finalResponse(
  deps: ResponseDeps,
  owner: Owner,
  emitter: ResponseEmitter,
  end: ResponseEnd & { usage: Usage | null },
): FinalResponse {
  const response = emitter.settle({ ...end, completedSeconds: Math.floor(deps.clock() / 1000) })
  const seal = (secret: Parameters<typeof sealReasoning>[2]) =>
    sealReasoning(deps.configuration.VAULT_KEYS, owner, secret)
  const outputItems = response.output.map((item) =>
    storableItem(contextItemOf(item, sealedOf(item, emitter.reasoningSecrets, seal))),
  )
  return { response, outputItems }
}

/** An item as the object stores it, of whatever size. Policies were applied to output while it was made. */
export function storableItem({ bytes, ...item }: ContextItem): StoredItem {
  return { ...item, body: decoder.decode(bytes), contentKey: null }
}

const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
const encoder = new TextEncoder()

/** Whether an item belongs into the content store and is not there yet. */
export const isLarge = ({ body }: StoredItem): boolean =>
  body !== null && body.length * 3 > LARGE_ITEM_BYTES && encoder.encode(body).length > LARGE_ITEM_BYTES

/**
 * Puts large output into the content store, as it is to be written. Doing it again does no harm.
 * @returns the same when there is none. @throws when the content store is away.
 */
export async function withLargeElsewhere(
  { contentStore }: ResponseDeps,
  owner: Owner,
  final: FinalResponse,
): Promise<FinalResponse> {
  if (!final.outputItems.some(isLarge)) return final
  const place = async (item: StoredItem): Promise<StoredItem> => {
    if (!isLarge(item)) return item
    const contentKey = await contentStore.put(owner, item.id, encoder.encode(item.body ?? ''))
    return { ...item, body: null, contentKey }
  }
  return { ...final, outputItems: await Promise.all(final.outputItems.map(place)) }
}

/** @throws when Postgres cannot be known to have it; doing it again does no harm. */
export async function writeFinal(
  deps: ResponseDeps,
  head: ResponseHead,
  input: StoredInput,
  { response, outputItems }: FinalResponse,
  lastSequence: number,
): Promise<void> {
  if (response.status === 'in_progress') throw new Error('the response has not ended')
  const { output: _output, output_text: _text, ...body } = response
  const status = await finishResponse(deps.database, head.owner, {
    id: head.responseId,
    status: response.status,
    body: JSON.stringify(body),
    completedAt: deps.clock(),
    lastSequence,
    inputItems: input.own(),
    outputItems,
    usedItemIds: input.ids,
    conversationId: head.conversationId,
  })
  // It was deleted meanwhile: what lies elsewhere is nobody's.
  if (status === null)
    await deps.contentStore.remove([...contentKeys(input.own()), ...contentKeys(outputItems)])
}

function contentKeys(items: Iterable<StoredItem>): string[] {
  const keys: string[] = []
  for (const { contentKey } of items) if (contentKey !== null) keys.push(contentKey)
  return keys
}
