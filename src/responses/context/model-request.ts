import type { TurnRequest } from '../../gateway/model-turn.ts'
import { type OwnTool, type OwnTools, ownTool } from '../../gateway/protocols/own-tools.ts'
import { RESPONSES_MEMBERS } from '../../gateway/translation/requests/responses-members.ts'
import { joinBytes } from '../../lib/byte-edits.ts'
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
import type { ServiceTool } from '../tools/hosted-tool.ts'
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
  const { bytes: head, own } = headOf(settings, [...hosted.values()])
  const body = requestWith(head, items, {
    transfersItems,
    open: sealOpener(deps, owner),
    stored: items.filter(({ id }) => history.has(id)).length,
  })
  return { request: { ...call, body: body.bytes, own }, body }
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
export const modelRequest = (
  settings: ResponseSettings,
  items: readonly ContextItem[],
  options: ModelRequestOptions,
): OwnedBytes => requestWith(headOf(settings).bytes, items, options)

/** @param head the body up to its first item. */
function requestWith(
  head: Uint8Array,
  items: readonly ContextItem[],
  options: ModelRequestOptions,
): OwnedBytes {
  const pieces: Piece[] = [{ bytes: head }]
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

interface RequestHead {
  bytes: Uint8Array
  /** The place of the tools whose definitions are the same for every caller; absent for none. */
  own?: OwnTools
}

/**
 * The body up to its first item.
 * @param tools of this service, after those of the caller. Those of integrations come last, whose definitions are not ours.
 */
function headOf(settings: ResponseSettings, tools: readonly ServiceTool[] = []): RequestHead {
  const given = settings.tools ?? []
  const known = tools.flatMap(({ purpose, definition }) => (purpose === 'hosted' ? ownTool(definition) : []))
  const others = tools.flatMap(({ purpose, definition }) => (purpose === 'hosted' ? [] : [definition]))
  const choice = tools.length > 0 && { tools: given, tool_choice: modelChoice(settings.tool_choice, tools) }
  const members = Object.entries(membersOf({ ...settings, ...choice }))
  const index = members.findIndex(([name]) => name === 'tools')
  if (tools.length === 0 || index < 0) return { bytes: encoder.encode(`{${membersJson(members)}${INPUT}`) }
  const [before, after] = [members.slice(0, index), members.slice(index + 1)]
  const rest = after.length > 0 ? `,${membersJson(after)}` : ''
  const start = encoder.encode(`{${membersJson(before)},"tools":[${listJson(given)}`)
  const end = encoder.encode(`${listJson(others)}]${rest}${INPUT}`)
  return joinedHead(start, known, end, { at: given.length, hasOthers: others.length > 0 })
}

/** @param start the head up to the tools of this service. @param end what follows them. */
function joinedHead(
  start: Uint8Array,
  known: readonly OwnTool[],
  end: Uint8Array,
  { at, hasOthers }: { at: number; hasOthers: boolean },
): RequestHead {
  const own = known.flatMap(({ bytes }, index) => (index === 0 ? [bytes] : [COMMA, bytes]))
  const commaBefore = at > 0 && (known.length > 0 || hasOthers) ? [COMMA] : []
  const commaAfter = known.length > 0 && hasOthers ? [COMMA] : []
  const bytes = joinBytes([start, ...commaBefore, ...own, ...commaAfter, end])
  if (known.length === 0) return { bytes }
  // Without these tools, one comma stays between those beside them.
  const kept = at > 0 && hasOthers ? 1 : 0
  return { bytes, own: { tools: known, at, start: start.length, end: bytes.length - end.length - kept } }
}

/** The settings that a model gets, by their names, in the order of the body. */
function membersOf(settings: ResponseSettings): Record<string, unknown> {
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
  return members
}

const membersJson = (members: ReadonlyArray<[string, unknown]>): string =>
  members.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join()

const listJson = (values: readonly unknown[]): string => values.map((value) => JSON.stringify(value)).join()

const INPUT = ',"input":['
const encoder = new TextEncoder()
const COMMA = encoder.encode(',')
const TAIL = encoder.encode(']}')
