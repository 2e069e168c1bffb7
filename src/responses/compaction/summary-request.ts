import type { TurnRequest } from '../../gateway/model-turn.ts'
import { upstreamToolName } from '../../gateway/translation/requests/responses-tools.ts'
import type { OwnedBytes } from '../../lib/bytes/owned-bytes.ts'
import type { KeyRing } from '../../lib/crypto.ts'
import { scanJson } from '../../lib/json-scan.ts'
import { decodeString } from '../../lib/json-string.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import { modelItems, modelRequest } from '../context/model-request.ts'
import { userMessage } from '../items/input-items.ts'
import { sealOpener } from '../items/sealed-content.ts'
import type { StoredRequest } from '../model/response-head.ts'
import type { ContextItem, Owner } from '../model/types.ts'
import type { CompactionPlan } from './compaction-plan.ts'
import { closingMessage, openingMessage, summaryInstructions } from './summary-prompt.ts'

/** A call of a compaction. */
export interface SummaryPart {
  /** Index in the parts of the plan. */
  index: number
  /** The summary of the parts before; null for the first. */
  summary: string | null
}

/**
 * The request of a model call that summarizes one part of a context. The items are those of any turn, so that policies
 * apply to each text by what it is, and each provider gets them in its own protocol.
 * @returns with its body, for the caller to release.
 * @throws ApiError invalid_request for an output without a call.
 */
export function summaryRequest(
  deps: { configuration: { VAULT_KEYS: KeyRing } },
  owner: Owner,
  call: Omit<TurnRequest, 'body'>,
  { settings, historyIds }: Pick<StoredRequest, 'settings' | 'historyIds'>,
  { parts, outputTokens }: CompactionPlan,
  { index, summary }: SummaryPart,
): { request: TurnRequest; body: OwnedBytes } {
  const history = new Set(historyIds)
  const items = parts[index] ?? []
  const stored = items.filter(({ id }) => history.has(id)).length
  const open = sealOpener(deps, owner)
  const tools = calledTools(items, { open, stored })
  const all = [
    ...(summary === null ? [] : [message(openingMessage(summary))]),
    ...items,
    message(closingMessage(index + 1, parts.length)),
  ]
  const { model, reasoning, user, safety_identifier, service_tier } = settings
  const summarySettings: ResponseSettings = {
    ...{ model, reasoning, user, safety_identifier, service_tier },
    instructions: summaryInstructions(settings.instructions),
    max_output_tokens: outputTokens,
    ...(tools.length > 0 && { tools, tool_choice: 'none' as const }),
  }
  const before = summary === null ? 0 : 1
  const body = modelRequest(summarySettings, all, { open, stored: stored === 0 ? 0 : stored + before })
  return { request: { ...call, body: body.bytes }, body }
}

const message = (text: string): ContextItem => userMessage(encoder.encode(JSON.stringify(text).slice(1, -1)))

/** Providers of the messages protocol refuse a conversation with calls of tools that the request does not define. */
function calledTools(
  items: readonly ContextItem[],
  options: Parameters<typeof modelItems>[1],
): NonNullable<ResponseSettings['tools']> {
  const names = modelItems(items, options).flatMap(({ bytes }) => calledName(bytes) ?? [])
  return [...new Set(names)].map((name) => ({ type: 'function', name, parameters: { type: 'object' } }))
}

function calledName(bytes: Uint8Array): string | null {
  const texts = new Map<unknown, string>()
  scanJson(bytes, {
    value(path, kind, start, end) {
      if (path.length !== 1 || kind !== 'string' || !CALL_MEMBERS.has(path[0])) return
      texts.set(path[0], decodeString(bytes, start + 1, end - 1))
    },
  })
  const [type, name, namespace] = ['type', 'name', 'namespace'].map((member) => texts.get(member))
  if ((type !== 'function_call' && type !== 'custom_tool_call') || name === undefined) return null
  return namespace === undefined ? name : upstreamToolName(namespace, name)
}

const CALL_MEMBERS = new Set<unknown>(['type', 'name', 'namespace'])
const encoder = new TextEncoder()
