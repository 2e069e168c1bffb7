import { chatCompletions, completions } from '../../../../../src/gateway/protocols/chat-completions.ts'
import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { messages } from '../../../../../src/gateway/protocols/messages.ts'
import type {
  CallerProtocol,
  Protocol,
  UpstreamProtocol,
} from '../../../../../src/gateway/protocols/protocol.ts'
import { requestEdits } from '../../../../../src/gateway/protocols/request-edits.ts'
import {
  TranslatedCall,
  type TranslationOptions,
} from '../../../../../src/gateway/translation/translated-call.ts'
import { ApiError } from '../../../../../src/lib/api-error.ts'
import { applyEdits, joinBytes } from '../../../../../src/lib/byte-edits.ts'
import { drained } from '../../../../../src/lib/slices.ts'
import type { Pair, Wire } from './features.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

export const PROTOCOLS: Record<Wire, Protocol> = { chat: chatCompletions, messages, completions }
export const CALLERS: Record<Wire, Exclude<CallerProtocol, 'responses'>> = {
  chat: 'chat_completions',
  messages: 'messages',
  completions: 'completions',
}

/** The same id on both sides, so that native bodies need no other edit than those under test. */
export const MODEL = 'some-model'
/** Abilities of most models without reasoning. */
export const CAPABILITIES: readonly string[] = ['json_object', 'json_schema', 'vision']

/** The plainest request of each protocol. */
export const PLAIN_REQUESTS: Record<Wire, Json> = {
  chat: { model: MODEL, max_tokens: 4_000, messages: [{ role: 'user', content: 'Hello' }] },
  messages: { model: MODEL, max_tokens: 4_000, messages: [{ role: 'user', content: 'Hello' }] },
  completions: { model: MODEL, max_tokens: 100, prompt: 'Hello' },
}

export type RequestOutcome = { body: Json; bytes: Uint8Array } | { refused: string }

/** The upstream's request for a caller's request, by the code of every call. */
export function runRequest(pair: Pair, request: Json, capabilities = CAPABILITIES): RequestOutcome {
  const body = encoder.encode(JSON.stringify(request))
  try {
    const outline = drained(PROTOCOLS[pair.caller].outline(body))
    if (pair.caller !== pair.upstream) return sent(translated(pair, body, capabilities).takeRequest().pieces)
    const { body: edits } = drained(
      requestEdits(outline, PROTOCOLS[pair.caller], { upstreamModel: MODEL, capabilities }),
    )
    return sent(applyEdits(body, edits).pieces)
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return { refused: error.message }
    throw error
  }
}

export function translated(
  pair: Pair,
  body: Uint8Array,
  capabilities: readonly string[],
  more: Partial<TranslationOptions> = {},
): TranslatedCall {
  return new TranslatedCall(body, {
    caller: CALLERS[pair.caller],
    upstream: CALLERS[pair.upstream] as UpstreamProtocol,
    target: { upstreamModel: MODEL, maxOutputTokens: 8_000, capabilities },
    ...more,
  })
}

function sent(pieces: readonly Uint8Array[]): RequestOutcome {
  const bytes = joinBytes(pieces)
  return { bytes, body: JSON.parse(decoder.decode(bytes)) as Json }
}
