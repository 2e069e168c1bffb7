import type { TurnRequest } from '../../gateway/model-turn.ts'
import type { OwnedBytes } from '../../lib/bytes/owned-bytes.ts'
import type { KeyRing } from '../../lib/crypto.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import { openReasoning } from '../items/reasoning-seal.ts'
import type { StoredRequest } from '../object/response-head.ts'
import type { ContextItem, Owner } from '../types.ts'
import { modelRequest } from './model-request.ts'
import type { ToolRules } from './tool-rules.ts'

/** What the turns of one response have in common. */
export interface TurnBasis {
  owner: Owner
  request: Pick<StoredRequest, 'headers' | 'historyIds'>
  tools: ToolRules
}

/** What the gateway is asked for with each turn, besides what is made of the basis. */
export type TurnCall = Omit<TurnRequest, 'body' | 'headers'>

/** The request for one turn, and its body for whoever sends it: to be released then. */
export interface OwnedTurnRequest {
  request: TurnRequest
  body: OwnedBytes
}

/**
 * The request for one turn.
 * @param moves whether large items are moved into the body (`ModelRequestOptions.moves`).
 * @throws ApiError invalid_request for a call without an output, or an output without a call.
 */
export function turnRequest(
  { configuration }: { configuration: { VAULT_KEYS: KeyRing } },
  { owner, request, tools }: TurnBasis,
  call: TurnCall,
  settings: ResponseSettings,
  items: readonly ContextItem[],
  moves = false,
): OwnedTurnRequest {
  const history = new Set(request.historyIds)
  const body = modelRequest(withHosted(settings, tools), items, {
    moves,
    openReasoning: (text) => openReasoning(configuration.VAULT_KEYS, owner, text),
    stored: items.filter(({ id }) => history.has(id)).length,
  })
  return { request: { ...call, body: body.bytes, headers: new Headers(request.headers) }, body }
}

/** Models are offered the tools of this side as functions. */
function withHosted(settings: ResponseSettings, { hosted }: ToolRules): ResponseSettings {
  if (hosted.size === 0) return settings
  return {
    ...settings,
    tools: [...(settings.tools ?? []), ...[...hosted.values()].map((tool) => tool.definition)],
  }
}
