import { freeBytes } from '../../lib/bytes/free-bytes.ts'
import { type OwnedBytes, ownedCopy } from '../../lib/bytes/owned-bytes.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import { pairedItems } from '../context/call-pairs.ts'
import { ITEM_TYPES } from '../item-types/item-types.ts'
import type { ReasoningSecret } from '../item-types/reasoning-secret.ts'
import type { ContextItem } from '../types.ts'

export interface ModelRequestOptions {
  /** Opens an `encrypted_content` for the owner of the response; null for what does not open. */
  openReasoning: (text: string) => ReasoningSecret | null
  /** How many of the items, from the first on, were stored before this response. Without it none. */
  stored?: number
  /**
   * Whether large items are moved into the body: from then on their bytes are those in it, and no second copy is held.
   * They are gone when the body is freed.
   */
  moves?: boolean
}

/** Bytes of an item from which on it is moved. */
const LARGE_ITEM = 64 * 1024

/** Members of the request that a model is told of, in the order in which they stand in the body. */
const TOLD_SETTINGS = [
  'instructions',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'max_output_tokens',
  'temperature',
  'top_p',
  'top_logprobs',
  'presence_penalty',
  'frequency_penalty',
  'text',
  'reasoning',
  'user',
  'safety_identifier',
  'prompt_cache_key',
  'service_tier',
] as const

/**
 * The body of one turn of a response, as the gateway's operation `responses` takes it: the settings that a model is told
 * of, and all items of the context, each as its type says. Most are taken over as the bytes that they are.
 *
 * @returns the only copy that is made, for its owner to release.
 * @throws ApiError invalid_request for a call without an output, or an output without a call.
 */
export function modelRequest(
  settings: ResponseSettings,
  items: readonly ContextItem[],
  { openReasoning, stored = 0, moves = false }: ModelRequestOptions,
): OwnedBytes {
  const pieces: Piece[] = [{ bytes: encoder.encode(headOf(settings)) }]
  const push = (piece: Piece) => {
    if (pieces.length > 1) pieces.push({ bytes: COMMA })
    pieces.push(piece)
  }
  let results: Uint8Array[] = []
  const pushResults = () => {
    for (const bytes of results.splice(0)) push({ bytes })
  }
  for (const item of pairedItems(items, stored)) {
    const form = ITEM_TYPES.get(item.type)?.toModel ?? 'nothing'
    if (form === 'nothing') continue
    const given = form === 'itself' ? null : form(item, openReasoning)
    if (!given?.results.length) pushResults()
    if (!given) push(item)
    else {
      for (const bytes of given.items) push({ bytes })
      results = [...results, ...given.results]
    }
  }
  pushResults()
  pieces.push({ bytes: TAIL })
  return joined(pieces, moves)
}

interface Piece {
  bytes: Uint8Array
}

/** One after the other, so that what was moved is gone before the next is copied. */
function joined(pieces: readonly Piece[], moves: boolean): OwnedBytes {
  return ownedCopy(
    pieces.map(({ bytes }) => bytes),
    (bytes, copy, index) => {
      const piece = pieces[index]
      if (!piece || !moves || bytes.length < LARGE_ITEM) return
      piece.bytes = copy
      if (bytes.buffer.byteLength === bytes.length) freeBytes(bytes)
    },
  )
}

/** The beginning of the body, up to its first item. */
function headOf(settings: ResponseSettings): string {
  const told: Record<string, unknown> = { model: settings.model, stream: true }
  for (const name of TOLD_SETTINGS) {
    const value = settings[name]
    if (value !== null && value !== undefined) told[name] = value
  }
  return `${JSON.stringify(told).slice(0, -1)},"input":[`
}

const encoder = new TextEncoder()
const COMMA = encoder.encode(',')
const TAIL = encoder.encode(']}')
