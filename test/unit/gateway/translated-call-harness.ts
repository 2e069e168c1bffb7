import type { ScriptRequest } from '../../../scripts/local/model-upstream/script-request.ts'
import { ExchangeMeter } from '../../../src/gateway/exchange-meter.ts'
import { chatCompletions, completions } from '../../../src/gateway/protocols/chat-completions.ts'
import { messages } from '../../../src/gateway/protocols/messages.ts'
import type { Protocol } from '../../../src/gateway/protocols/protocol.ts'
import { responses } from '../../../src/gateway/protocols/responses.ts'
import type { Exchange, RelayEnd } from '../../../src/gateway/relay-options.ts'
import { relayStream } from '../../../src/gateway/stream-relay.ts'
import {
  type CallerProtocol,
  TranslatedCall,
  type TranslationOptions,
  type UpstreamProtocol,
} from '../../../src/gateway/translation/translated-call.ts'
import { Inspection, passAllEngine } from '../../../src/governance/dlp/inspection.ts'
import { joinBytes } from '../../../src/lib/byte-edits.ts'
import { parseFrame, SseReader } from '../../../src/lib/sse.ts'

export type Json = Record<string, unknown>

export const encoder = new TextEncoder()
export const decoder = new TextDecoder()

export const PROTOCOLS: Record<CallerProtocol, Protocol> = {
  chat_completions: chatCompletions,
  messages,
  completions,
  responses,
}
export const DIALECTS: Record<UpstreamProtocol, ScriptRequest['dialect']> = {
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

/** A call of a caller who asked for usage, on a model that can do everything. */
export function translatedCall({ request, ...options }: CallOptions): TranslatedCall {
  const body = { model: 'asked-model', stream: true, ...REQUESTS[options.caller], ...request }
  return new TranslatedCall(encoder.encode(JSON.stringify(body)), {
    target: {
      upstreamModel: 'upstream-model',
      maxOutputTokens: 1_000,
      capabilities: ['json_object', 'json_schema', 'vision'],
    },
    modelId: 'asked-model',
    usageAsked: true,
    nowSeconds: 1_700_000_000,
    ...options,
  })
}

export const nextRequest = (call: TranslatedCall): Json =>
  JSON.parse(decoder.decode(joinBytes(call.nextBody().pieces))) as Json

export const textOf = (frames: Uint8Array[]) => decoder.decode(joinBytes(frames))

/** Gives a call one event of its upstream. @returns the caller's frames. */
export const tell = (call: TranslatedCall, data: Json | string): string => {
  const payload = typeof data === 'string' ? data : JSON.stringify(data)
  const event = typeof data === 'object' && typeof data.type === 'string' ? `event: ${data.type}\n` : ''
  return textOf(call.frame(parseFrame(encoder.encode(`${event}data: ${payload}\n\n`))))
}

export const whole = (call: TranslatedCall, answer: Json) =>
  call.answer(encoder.encode(JSON.stringify(answer)))
export const resultOf = (call: TranslatedCall) => JSON.parse(decoder.decode(call.result())) as Json

export interface Relayed {
  text: string
  end: RelayEnd
  inspection: Inspection
  meter: ExchangeMeter
  /** Bodies of the exchanges after the first. */
  further: Json[]
}

/** What a caller gets of an upstream that sends these chunks, and in further exchanges those. */
export async function relayed(
  options: CallOptions,
  first: readonly Uint8Array[],
  ...then: Array<readonly Uint8Array[]>
): Promise<Relayed> {
  const call = translatedCall(options)
  const { length } = call.nextBody()
  const inspection = new Inspection(passAllEngine)
  const meter = new ExchangeMeter()
  const further: Json[] = []
  const exchange = (chunks: readonly Uint8Array[]): Exchange => {
    const reader = PROTOCOLS[options.upstream].streamReader({ inspection, modelId: null, usageAsked: true })
    meter.follow(reader, length)
    return { upstream: streamOf(chunks), frames: new SseReader(), reader }
  }
  const start = await relayStream({
    ...exchange(first),
    dialect: PROTOCOLS[options.caller].dialect,
    translator: {
      frame: (frame) => call.frame(frame),
      goesOn: () => call.goesOn(true),
      finish: () => call.finish(),
      next: async () => {
        further.push(nextRequest(call))
        return exchange(then.shift() ?? [])
      },
    },
    inspection,
    times: { commit: 15_000, heartbeat: 15_000, firstEvent: 15_000, betweenEvents: 15_000 },
    clock: () => Date.now(),
    callerSignal: new AbortController().signal,
    abortUpstream: () => {},
    redact: (bytes) => bytes,
    onTick: () => null,
  })
  if (!start.started) return { text: '', end: start.end, inspection, meter, further }
  const text = await new Response(start.body).text()
  return { text, end: await start.ended, inspection, meter, further }
}

function streamOf(chunks: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  const left = [...chunks]
  return new ReadableStream({
    pull(controller) {
      const chunk = left.shift()
      if (chunk) controller.enqueue(chunk)
      else controller.close()
    },
  })
}
