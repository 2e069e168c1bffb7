import type { TurnRequest } from '../../gateway/model-turn.ts'
import { RESPONSES_MEMBERS } from '../../gateway/translation/requests/responses-members.ts'
import { freeBytes } from '../../lib/bytes/free-bytes.ts'
import { type OwnedBytes, ownedCopy } from '../../lib/bytes/owned-bytes.ts'
import type { KeyRing } from '../../lib/crypto.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import { type SealOpener, sealOpener } from '../items/sealed-content.ts'
import { ITEM_TYPES } from '../items/types/item-types.ts'
import type { StoredRequest } from '../model/response-head.ts'
import { turnOf } from '../model/response-ids.ts'
import type { ContextItem, Owner } from '../model/types.ts'
import { modelChoice } from '../tools/hosted-choice.ts'
import type { ToolRules } from '../tools/tool-rules.ts'
import { pairedItems } from './call-pairs.ts'
import { decidedApprovals } from './decided-approvals.ts'

interface ModelRequestOptions {
  /** Opens the sealed content of the response's owner. */
  open: SealOpener
  /** Number of the items, from the first on, that were stored before this response. None by default. */
  stored?: number
  /**
   * Whether the bytes of large items are transferred into the body, so that no second copy is held. Callers must not read
   * these items after the body was freed.
   */
  transfersItems?: boolean
}

/** Bytes of an item from which on it is transferred. */
const LARGE_ITEM = 64 * 1024

/** Settings that a model gets, in the order of the body. */
const MODEL_SETTINGS = [
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
 * The request of one turn.
 * @param call members of the request besides its body.
 * @returns with its body, for the caller to release.
 * @throws ApiError invalid_request for a call without an output, or an output without a call.
 */
export function turnRequest(
  deps: { configuration: { VAULT_KEYS: KeyRing } },
  owner: Owner,
  call: Omit<TurnRequest, 'body'>,
  { settings, historyIds }: Pick<StoredRequest, 'settings' | 'historyIds'>,
  { hosted }: ToolRules,
  items: readonly ContextItem[],
  transfersItems = false,
): { request: TurnRequest; body: OwnedBytes } {
  const history = new Set(historyIds)
  const body = modelRequest(withHosted(settings, hosted), items, {
    transfersItems,
    open: sealOpener(deps, owner),
    stored: items.filter(({ id }) => history.has(id)).length,
  })
  return { request: { ...call, body: body.bytes }, body }
}

/** The settings that a model gets: with the definitions of the tools of this service. */
export function withHosted(settings: ResponseSettings, hosted: ToolRules['hosted']): ResponseSettings {
  if (hosted.size === 0) return settings
  const tools = [...hosted.values()]
  const definitions = tools.map(({ definition }) => definition)
  return {
    ...settings,
    tools: [...(settings.tools ?? []), ...definitions],
    tool_choice: modelChoice(settings.tool_choice, tools),
  }
}

/**
 * The body of one turn, for the gateway's operation `responses`: the settings for a model, and the items of the context, each
 * in the form of its type. Most are copied as the bytes that they are.
 * @returns the only copy, for the caller to release.
 * @throws ApiError invalid_request for a call without an output, or an output without a call.
 */
export function modelRequest(
  settings: ResponseSettings,
  items: readonly ContextItem[],
  options: ModelRequestOptions,
): OwnedBytes {
  const pieces: Piece[] = [{ bytes: encoder.encode(headOf(settings)) }]
  for (const piece of modelItems(items, options)) {
    if (pieces.length > 1) pieces.push({ bytes: COMMA })
    pieces.push(piece)
  }
  pieces.push({ bytes: TAIL })
  return joined(pieces, options.transfersItems === true)
}

interface Piece {
  bytes: Uint8Array
}

/**
 * The items of a context in the form in which models get them, as JSON. The results of the calls of a turn follow its last
 * item: what a model generated at once stays one message, and what it generated one after the other stays several. So no
 * turn changes the items before it, with which prompt caches begin.
 * @throws ApiError invalid_request for a call without an output, or an output without a call.
 */
export function modelItems(
  items: readonly ContextItem[],
  { open, stored = 0 }: Pick<ModelRequestOptions, 'open' | 'stored'>,
): Piece[] {
  const pieces: Piece[] = []
  /** Results of calls of the turn. */
  let results: Piece[] = []
  let turn: string | null = null
  const paired = pairedItems(items, stored)
  const decided = decidedApprovals(paired)
  for (const item of paired) {
    const form = decided.get(item) ?? ITEM_TYPES.get(item.type)?.toModel ?? 'nothing'
    if (form === 'nothing') continue
    const itsTurn = turnOf(item.id)
    if (turn === null || itsTurn !== turn) {
      for (const result of results) pieces.push(result)
      results = []
    }
    turn = itsTurn
    if (form === 'itself') pieces.push(item)
    else {
      const converted = form(item, open)
      for (const bytes of converted.items) pieces.push({ bytes })
      for (const bytes of converted.results) results.push({ bytes })
    }
  }
  return [...pieces, ...results]
}

/** Copies piece by piece, so that each transferred item is freed before the next one is copied. */
function joined(pieces: readonly Piece[], transfersItems: boolean): OwnedBytes {
  return ownedCopy(
    pieces.map(({ bytes }) => bytes),
    (bytes, copy, index) => {
      const piece = pieces[index]
      if (!piece || !transfersItems || bytes.length < LARGE_ITEM) return
      piece.bytes = copy
      if (bytes.buffer.byteLength === bytes.length) freeBytes(bytes)
    },
  )
}

/** The body up to its first item. */
function headOf(settings: ResponseSettings): string {
  const members: Record<string, unknown> = { model: settings.model, stream: true }
  for (const name of MODEL_SETTINGS) {
    const value = settings[name]
    if (value !== null && value !== undefined) members[name] = value
  }
  // Members that the gateway does not know reach models of chat completions (interface: Versioning, 4).
  for (const [name, value] of Object.entries(settings)) {
    if (!Object.hasOwn(RESPONSES_MEMBERS, name) && value !== null && value !== undefined)
      members[name] = value
  }
  return `${JSON.stringify(members).slice(0, -1)},"input":[`
}

const encoder = new TextEncoder()
const COMMA = encoder.encode(',')
const TAIL = encoder.encode(']}')
