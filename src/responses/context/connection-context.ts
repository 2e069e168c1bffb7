import { applyEditsInSlices, joinBytes } from '../../lib/byte-edits.ts'
import { runSlices, type Slices } from '../../lib/slices.ts'
import { LARGE_ITEM_BYTES } from '../content/content-store.ts'
import { ItemScan } from '../items/types/item-scan.ts'
import { newItemId } from '../items/types/item-types.ts'
import { contextTooLong } from '../model/context-too-long.ts'
import type { ResponseContext } from '../model/response-context.ts'
import { turnOf } from '../model/response-ids.ts'
import type { ConnectionStart, ContextItem, Owner } from '../model/types.ts'
import type { ResponseDeps } from '../response-deps.ts'
import { readContextStream } from './context-stream.ts'
import type { OwnStart } from './conversation-lock.ts'
import { loadUnlockedContext, MOST_CONTEXT_BYTES, previousNotFound, storedIdOf } from './load-context.ts'
import type { ResponseRequest } from './load-request.ts'

/** The context of a response, and what of it was there before its request. */
interface LoadedContext {
  context: ResponseContext
  historyIds: string[]
  /** Whether `input` has the whole context. Then a further turn reads only the object. */
  isWhole: boolean
  /** The files of a response of the same connection, which passes them on; null for none. */
  files: PassedFiles | null
}

export interface PassedFiles {
  from: string
  workspaceId: string
}

/**
 * Loads the context of a request. On a connection, a response that is not stored keeps its whole context with its input,
 * so that the next response of the connection can continue it. A stored response that continues such a one does the same:
 * Postgres has the items from nowhere else.
 * @param connection absent for a request that came over HTTP. @param start that of the calling object.
 * @throws ApiError as `loadUnlockedContext`.
 */
export async function loadStartContext(
  deps: ResponseDeps,
  owner: Owner,
  request: ResponseRequest,
  connection: ConnectionStart | undefined,
  start: OwnStart,
): Promise<LoadedContext> {
  const { conversation, previous_response_id: previous, store } = request.settings
  const continues = connection?.continues ?? null
  // A request that names both is refused.
  if (continues !== null && continues === previous && (conversation ?? null) === null) {
    return continuedContext(deps, owner, request, continues, start)
  }
  const context = await loadUnlockedContext(deps, owner, request, start)
  const historyIds = context.history.map(({ id }) => id)
  if (!connection || store !== false) return { context, historyIds, isWhole: false, files: null }
  return { context: withHistoryAsInput(context), historyIds, isWhole: true, files: null }
}

/** The context that continues a response of the same connection which is not stored. Its object has the items. */
async function continuedContext(
  deps: ResponseDeps,
  owner: Owner,
  { settings, items }: ResponseRequest,
  previousId: string,
  start: OwnStart,
): Promise<LoadedContext> {
  const before = await deps.responseObject(owner.organizationId, previousId).context(owner)
  if (before === null) throw previousNotFound(previousId)
  const tooLong = () => contextTooLong(`${MOST_CONTEXT_BYTES} bytes`)
  const held = await readContextStream(before.items, MOST_CONTEXT_BYTES, tooLong)
  const heldIds = new Set(held.map(({ id }) => id))
  const added = items.filter((item) => !heldIds.has(storedIdOf(item) ?? ''))
  const own = {
    settings: { ...settings, previous_response_id: null },
    // Stored items are referred to, and not written again.
    items: [...held.map((item) => ({ ...item, repeats: item.id })), ...added],
  }
  const context = await loadUnlockedContext(deps, owner, own, start)
  const input: ContextItem[] = []
  for (const item of context.input) {
    input.push(isOwnCopy(context, heldIds, item) ? await runSlices(withNewId(item)) : item)
  }
  const historyIds = input.slice(0, held.length).map(({ id }) => id)
  // A stored response works on the files of its conversation.
  const passes = settings.store === false && before.workspaceId !== null
  const files = passes ? { from: previousId, workspaceId: before.workspaceId as string } : null
  return { context: { ...context, input, previousResponseId: previousId }, historyIds, isWhole: true, files }
}

/**
 * Whether an item will be a copy in the content store. The content of the response before is erased with it, so that the
 * copy needs a key of its own, which is made of the id.
 */
const isOwnCopy = ({ referenced }: ResponseContext, heldIds: ReadonlySet<string>, item: ContextItem) =>
  heldIds.has(item.id) && !referenced.has(item.id) && item.bytes.length > LARGE_ITEM_BYTES

function* withNewId(item: ContextItem): Slices<ContextItem> {
  const id = newItemId(item.type, turnOf(item.id) ?? undefined)
  const place = (yield* ItemScan.read(item.bytes, 'item')).members.get('id')
  if (!place) return item
  const replacement = new TextEncoder().encode(JSON.stringify(id))
  const edit = { start: place.start, end: place.end, replacement }
  const { pieces } = yield* applyEditsInSlices(item.bytes, [edit])
  return { ...item, id, bytes: joinBytes(pieces) }
}

function withHistoryAsInput(context: ResponseContext): ResponseContext {
  const { history, input, referenced, historyHeads } = context
  const kept = new Set(history.map(({ id }) => id))
  const heads = historyHeads.filter(({ id }) => kept.has(id)).map((head) => [head.id, head] as const)
  return {
    ...context,
    history: [],
    input: [...history, ...input],
    referenced: new Map([...heads, ...referenced]),
  }
}
