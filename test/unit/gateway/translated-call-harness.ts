import type { ScriptRequest } from '../../../scripts/local/model-upstream/script-request.ts'
import { chatCompletions, completions } from '../../../src/gateway/protocols/chat-completions.ts'
import { messages } from '../../../src/gateway/protocols/messages.ts'
import type { CallerProtocol, Protocol, UpstreamProtocol } from '../../../src/gateway/protocols/protocol.ts'
import { responses } from '../../../src/gateway/protocols/responses.ts'
import type { FrameConverter } from '../../../src/gateway/relay/stream-pipeline.ts'
import { callerEncoder } from '../../../src/gateway/translation/caller-encoder.ts'
import type { EventEncoder, ModelEvent } from '../../../src/gateway/translation/model-events.ts'
import { TranslatedCall, type TranslationOptions } from '../../../src/gateway/translation/translated-call.ts'
import { joinBytes } from '../../../src/lib/byte-edits.ts'
import { encodeFrame, parseFrame } from '../../../src/lib/sse.ts'

export type Json = Record<string, unknown>

export const encoder = new TextEncoder()
export const decoder = new TextDecoder()

export const PROTOCOLS: Record<CallerProtocol, Protocol> = {
  chat_completions: chatCompletions,
  messages,
  completions,
  responses,
}
/** Of the scripted model; the protocols that no caller speaks have streams of their own. */
export const DIALECTS: Record<
  Exclude<UpstreamProtocol, 'generate_content' | 'converse'>,
  ScriptRequest['dialect']
> = {
  chat_completions: 'chat',
  messages: 'messages',
}

/** Every caller's protocol with an upstream's that it is translated to. */
export const TRANSLATIONS: Array<[caller: CallerProtocol, upstream: UpstreamProtocol]> = [
  ['chat_completions', 'messages'],
  ['messages', 'chat_completions'],
  ['completions', 'messages'],
  ['completions', 'chat_completions'],
  ['responses', 'messages'],
  ['responses', 'chat_completions'],
]

const TOOL_NAMES = ['get_weather', 'get_time']
const REQUESTS: Record<CallerProtocol, Json> = {
  chat_completions: {
    messages: [{ role: 'user', content: 'Hi' }],
    tools: TOOL_NAMES.map((name) => ({
      type: 'function',
      function: { name, parameters: { type: 'object' } },
    })),
  },
  messages: {
    max_tokens: 500,
    messages: [{ role: 'user', content: 'Hi' }],
    tools: TOOL_NAMES.map((name) => ({ name, input_schema: { type: 'object' } })),
  },
  completions: { prompt: 'Hi' },
  responses: {
    input: [{ type: 'message', role: 'user', content: 'Hi' }],
    tools: TOOL_NAMES.map((name) => ({ type: 'function', name, parameters: { type: 'object' } })),
  },
}

export interface CallOptions extends Partial<TranslationOptions> {
  caller: CallerProtocol
  upstream: UpstreamProtocol
  request?: Json
}

/** A call on a model that can do everything. */
export function translatedCall({ request, ...options }: CallOptions): TranslatedCall {
  const body = { model: 'asked-model', stream: true, ...REQUESTS[options.caller], ...request }
  return new TranslatedCall(encoder.encode(JSON.stringify(body)), {
    target: {
      upstreamModel: 'upstream-model',
      maxOutputTokens: 1_000,
      capabilities: ['json_object', 'json_schema', 'vision'],
    },
    ...options,
  })
}

/** The encoder of a caller who asked for usage. Responses get the events themselves, here a frame each. */
export function encoderOf(caller: CallerProtocol): EventEncoder {
  if (caller !== 'responses') {
    return callerEncoder({ caller, modelId: 'asked-model', usageRequested: true, nowSeconds: 1_700_000_000 })
  }
  return { frames: (event) => [encodeFrame(null, event)], answer: (events) => ({ events }) }
}

export const requestOf = (call: TranslatedCall): Json =>
  JSON.parse(decoder.decode(joinBytes(call.takeRequest().pieces))) as Json

export const textOf = (frames: Uint8Array[]) => decoder.decode(joinBytes(frames))

/** The events of one payload of the upstream's stream. */
export const eventsOf = (call: TranslatedCall, data: Json | string): ModelEvent[] => {
  const payload = typeof data === 'string' ? data : JSON.stringify(data)
  const event = typeof data === 'object' && typeof data.type === 'string' ? `event: ${data.type}\n` : ''
  return call.events(parseFrame(encoder.encode(`${event}data: ${payload}\n\n`)))
}

/** All events of a whole answer. */
export function wholeEvents(call: TranslatedCall, answer: Json): ModelEvent[] {
  const events = call.answer(encoder.encode(JSON.stringify(answer)))
  if ('error' in events) throw new Error(events.error)
  return [...events, ...call.ending()]
}

/** The caller's answer for a whole answer of the upstream. */
export const resultOf = (options: CallOptions, answer: Json): Json =>
  JSON.parse(
    JSON.stringify(encoderOf(options.caller).answer(wholeEvents(translatedCall(options), answer))),
  ) as Json

export function converterOf(call: TranslatedCall, caller: CallerProtocol): FrameConverter<Uint8Array> {
  const encoding = encoderOf(caller)
  return {
    convert: (frame) => call.events(frame).flatMap((event) => encoding.frames(event)),
    finish: () => call.ending().flatMap((event) => encoding.frames(event)),
  }
}
