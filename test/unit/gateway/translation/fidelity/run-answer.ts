import { Inspection, passAllEngine } from '../../../../../src/dlp/inspection.ts'
import type { Route } from '../../../../../src/gateway/catalogue/call-routes.ts'
import { upstreamErrorAnswer } from '../../../../../src/gateway/http-answer.ts'
import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import type { AnswerContext } from '../../../../../src/gateway/protocols/protocol.ts'
import { callerEncoder } from '../../../../../src/gateway/translation/caller-encoder.ts'
import type { EventEncoder } from '../../../../../src/gateway/translation/model-events.ts'
import type { TranslatedCall } from '../../../../../src/gateway/translation/translated-call.ts'
import { applyEdits, joinBytes } from '../../../../../src/lib/byte-edits.ts'
import { drained } from '../../../../../src/lib/slices.ts'
import { relayToHttp, streamOf } from '../../http-relay.ts'
import type { Pair } from './features.ts'
import { CALLERS, CAPABILITIES, MODEL, PLAIN_REQUESTS, PROTOCOLS, translated } from './run-request.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const NEVER_MS = 60_000

/** The upstream's id of the model is another one: that is what every answer carries. */
export const UPSTREAM_MODEL = 'upstream-model'

/** The caller's answer for a whole answer of the upstream. */
export function answerWhole(pair: Pair, answer: Json, asked: Json = {}): Json {
  const bytes = encoder.encode(JSON.stringify(answer))
  const reading = drained(PROTOCOLS[pair.upstream].readAnswer(bytes, contextOf(pair)))
  const read = joinBytes(applyEdits(bytes, reading.edits).pieces)
  const call = begun(pair, asked)
  if (!call) return parsed(read)
  const events = call.answer(read)
  if ('error' in events) throw new Error(events.error)
  return parsed(encoder.encode(JSON.stringify(encoderOf(pair).answer([...events, ...call.ending()]))))
}

/** The caller's stream for these chunks of the upstream, as text. */
export async function answerStreamed(
  pair: Pair,
  chunks: readonly Uint8Array[],
  asked: Json = {},
): Promise<string> {
  const call = begun(pair, { stream: true, ...asked })
  const encoding = encoderOf(pair)
  const inspection = new Inspection(passAllEngine)
  const { body, start } = relayToHttp({
    upstream: streamOf(chunks),
    reader: PROTOCOLS[pair.upstream].streamReader(contextOf(pair, inspection)),
    inspection,
    dialect: PROTOCOLS[pair.caller].dialect,
    converter: call && {
      convert: (frame) => call.events(frame).flatMap((event) => encoding.frames(event)),
      finish: () => call.ending().flatMap((event) => encoding.frames(event)),
    },
    times: {
      commit: NEVER_MS,
      heartbeat: NEVER_MS,
      firstEvent: NEVER_MS,
      betweenEvents: NEVER_MS,
      gather: 0,
    },
    clock: () => 0,
  })
  const relay = await start
  if (!relay.started) throw new Error(`the stream never began: ${JSON.stringify(relay.end)}`)
  const text = await new Response(body).text()
  await relay.ended
  return text
}

/** The caller's error for an error in place of an answer. */
export function answerError(pair: Pair, status: number, body: Json): Json {
  const bytes = encoder.encode(JSON.stringify(body))
  const answer = upstreamErrorAnswer(new Response(bytes, { status }), bytes, routeOf(pair), {
    requestId: 'req_1',
    now: 0,
  })
  return { ...parsed(answer.body as Uint8Array), status: answer.status }
}

function begun(pair: Pair, asked: Json): TranslatedCall | null {
  if (pair.caller === pair.upstream) return null
  const request = encoder.encode(JSON.stringify({ ...PLAIN_REQUESTS[pair.caller], ...asked }))
  return translated(pair, request, CAPABILITIES)
}

const encoderOf = ({ caller }: Pair): EventEncoder =>
  callerEncoder({ caller: CALLERS[caller], modelId: MODEL, usageRequested: true, nowSeconds: 1_700_000_000 })

const contextOf = (pair: Pair, inspection = new Inspection(passAllEngine)): AnswerContext => ({
  inspection,
  modelId: pair.caller === pair.upstream ? MODEL : null,
  usageRequested: true,
})

const parsed = (bytes: Uint8Array) => JSON.parse(decoder.decode(bytes)) as Json

const OPERATIONS = { chat: 'chat_completions', messages: 'messages', completions: 'completions' } as const

function routeOf({ caller, upstream }: Pair): Route {
  const kind = upstream === 'messages' ? 'anthropic' : 'openai-compatible'
  const translation = { caller: OPERATIONS[caller], upstream: OPERATIONS[upstream] }
  return {
    provider: {
      id: 'p',
      name: 'p',
      kind,
      baseUrl: 'https://provider.example',
      credential: { parts: {}, secrets: [] },
    },
    upstreamModel: UPSTREAM_MODEL,
    operation: translation.upstream,
    translation: caller === upstream ? null : (translation as Route['translation']),
  }
}
