/** The result of a sent call as the answer for a caller over HTTP. */

import { inspectBody } from '../dlp/json-inspection.ts'
import type { Clock } from '../lib/clock.ts'
import { redactCredential } from '../lib/secret-spellings.ts'
import { runSlices } from '../lib/slices.ts'
import type { ModelAnswer, PlannedCall } from './calls/model-call.ts'
import type { Route } from './catalogue/call-routes.ts'
import { OPERATIONS } from './protocols/operations.ts'
import { DEFAULT_USES } from './protocols/server-tools.ts'
import { answerHeaders, droppedHeaders, streamHeaders } from './relay/answer-headers.ts'
import { readStreamsOf } from './relay/native-passage.ts'
import { CLIENT_LEFT, encoderOf, type StartedStream } from './relay/stream-answer.ts'
import { waitInBody } from './translation/error-shapes.ts'
import { messagesErrorBody } from './translation/upstream-errors.ts'
import type { SendOptions } from './upstreams/attempt.ts'
import type { BufferedAnswer } from './upstreams/buffered-answer.ts'
import type { FailoverResult } from './upstreams/failover.ts'
import { requestedWait, retryAfterWait } from './upstreams/route-health.ts'

export interface HttpAnswerDeps {
  clock: Clock
  /** Lets the sending of a large answer go on after its headers. */
  waitUntil: (work: Promise<unknown>) => void
}

type HandOver = (pieces: readonly Uint8Array[]) => ModelAnswer['body']

const textEncoder = new TextEncoder()

/**
 * The answer of a call, or the error that is rendered in its place.
 * @param options of the sending. Their `buffered` keeps the budget of a large body until its caller has read it.
 */
export async function httpAnswer(
  deps: HttpAnswerDeps,
  planned: PlannedCall,
  { answer, route, dropped }: FailoverResult,
  { buffered, signal }: Pick<SendOptions, 'buffered' | 'signal'>,
): Promise<{ kind: 'answered'; answer: ModelAnswer } | { kind: 'failed'; error: Error }> {
  if (answer.kind === 'failed') return { kind: 'failed', error: errorOf(answer.error) }
  if (answer.kind === 'client_left' || !route) {
    return { kind: 'answered', answer: { status: CLIENT_LEFT, headers: {}, body: new Uint8Array() } }
  }
  if (answer.kind === 'stream') {
    const streamed = withToolLimits(streamedAnswer(answer, route), planned, route)
    return { kind: 'answered', answer: withDropped(streamed, dropped) }
  }
  const handOver: HandOver = (pieces) => buffered.handOver(pieces, signal, (work) => deps.waitUntil(work))
  if (answer.kind === 'upstream_error') {
    try {
      const inspected = await inspectedError(planned, answer.body)
      const context = { requestId: planned.request.identity.requestId, now: deps.clock() }
      const { status, headers, body } = upstreamErrorAnswer(answer.response, inspected, route, context)
      return { kind: 'answered', answer: { status, headers, body: handOver([body]) } }
    } catch (error) {
      return { kind: 'failed', error: errorOf(error) }
    }
  }
  const whole = withToolLimits(bufferedAnswer(deps, planned, answer, route, handOver), planned, route)
  return { kind: 'answered', answer: withDropped(whole, dropped) }
}

/** Lists tools of the request that got a limit, as `name=uses`. */
const MAX_USES = 'x-headgate-max-uses'

function withToolLimits(answer: ModelAnswer, { outline }: PlannedCall, route: Route): ModelAnswer {
  const searches = route.translation?.upstream === 'messages' && outline.fields.web_search_options
  const names = route.translation ? (searches ? ['web_search'] : []) : outline.toolLimits.names
  if (names.length > 0) answer.headers[MAX_USES] = names.map((name) => `${name}=${DEFAULT_USES}`).join(', ')
  return answer
}

function withDropped(answer: ModelAnswer, dropped: readonly string[]): ModelAnswer {
  Object.assign(answer.headers, droppedHeaders(dropped))
  return answer
}

/** On chat completions an upstream's error is not changed (interface: Errors). @throws ApiError `dlp_blocked`. */
async function inspectedError({ request, policy }: PlannedCall, body: Uint8Array): Promise<Uint8Array> {
  return request.operation === 'messages' ? runSlices(inspectBody(policy.responseInspection(), body)) : body
}

export const errorOf = (error: unknown): Error =>
  error instanceof Error ? error : new Error('a call failed', { cause: error })

function streamedAnswer(stream: StartedStream, { provider }: Route): ModelAnswer {
  if (!('body' in stream.content)) throw new Error('a stream of events has no body')
  const headers = streamHeaders(stream.upstreamHeaders, provider.credential)
  return { status: stream.status, headers, body: stream.content.body }
}

function bufferedAnswer(
  deps: HttpAnswerDeps,
  { request, model, outline }: PlannedCall,
  { status, upstreamHeaders, content }: BufferedAnswer,
  route: Route,
  handOver: HandOver,
): ModelAnswer {
  const { credential } = route.provider
  const headers = answerHeaders(upstreamHeaders, credential)
  if ('pieces' in content) return { status, headers, body: handOver(content.pieces) }
  const { operation } = request
  const { usageRequested } = outline
  const encoder = encoderOf(deps, { route, caller: { operation, modelId: model.id, usageRequested } })
  if (outline.stream) {
    // The upstream did not stream: its whole answer becomes the stream that the caller requested.
    const frames = content.events.flatMap((event) => encoder.frames(event))
    return { status: 200, headers: streamHeaders(upstreamHeaders, credential), body: handOver(frames) }
  }
  headers['content-type'] = 'application/json'
  const body = textEncoder.encode(JSON.stringify(encoder.answer(content.events)))
  return { status: 200, headers, body: handOver([body]) }
}

const DEFAULT_RETRY_SECONDS = '1'
/** Marks an error of a provider, so that no caller takes it for an error about its own API key. */
const ERROR_SOURCE = 'x-headgate-error-source'

/**
 * An upstream's error: unchanged in body and content type for callers of chat completions, in the envelope of messages for
 * callers of messages. Only the gateway's own credential is cut out (interface: Errors).
 * @param context `requestId` of the gateway; `now` in milliseconds since the epoch.
 * @internal The matrix of fidelity renders errors without a call.
 */
export function upstreamErrorAnswer(
  response: Response,
  body: Uint8Array,
  { provider, operation, translation }: Pick<Route, 'provider' | 'operation' | 'translation'>,
  { requestId, now }: { requestId: string; now: number },
): ModelAnswer & { body: Uint8Array } {
  const { status } = response
  const headers = answerHeaders(response.headers, provider.credential)
  headers[ERROR_SOURCE] = 'provider'
  const wait = retryAfterWait(headers['retry-after'] ?? null, now)
  // Callers know `Retry-After`; vendors may state the wait elsewhere alone.
  const stated = wait === null ? (requestedWait(response.headers, now) ?? waitInBody(body)) : null
  if (stated !== null) headers['retry-after'] = String(Math.max(1, Math.ceil(stated / 1_000)))
  // Interface, Limits: every 429 has a Retry-After of at least a second, also when the upstream sent none.
  else if (status === 429 && (wait === null || wait < 1_000)) headers['retry-after'] = DEFAULT_RETRY_SECONDS
  const redacted = redactCredential(body, provider.credential)
  if (redacted !== body) readStreamsOf(provider)
  const caller = translation?.caller ?? operation
  if (!OPERATIONS[caller].ownErrorEnvelope) return { status, headers, body: redacted }
  const enveloped = messagesErrorBody(status, redacted, requestId)
  if (enveloped !== redacted || !headers['content-type']?.includes('json')) {
    headers['content-type'] = 'application/json'
  }
  return { status, headers, body: enveloped }
}
