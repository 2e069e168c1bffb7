/** An answer that its upstream streams: relayed to its caller from its first valid event on. */
import type { InspectionCounts } from '../../governance/audit-record.ts'
import type { Usage } from '../../governance/credits.ts'
import type { Inspection } from '../../governance/dlp/inspection.ts'
import type { GovernanceDeps, GovernedCall } from '../../governance/governed-call.ts'
import { CallLease } from '../calls/call-lease.ts'
import { type Charge, type ChargeBasis, streamCharge } from '../calls/charges.ts'
import { OPERATIONS, type Operation } from '../operations.ts'
import type { StreamReader } from '../protocols/protocol.ts'
import { framesOf } from '../providers/provider.ts'
import { type AttemptDeps, noAnswer, type UpstreamAttempt } from '../routes/attempt.ts'
import type { Route } from '../routes/call-routes.ts'
import { callerEncoder } from '../translation/caller-encoder.ts'
import type { EventEncoder, ModelEvent } from '../translation/model-events.ts'
import type { TranslatedCall } from '../translation/translated-call.ts'
import { redactCredential } from './credential-spellings.ts'
import { EventStreamCaller } from './event-stream-caller.ts'
import { HttpStreamCaller, type StreamCaller } from './stream-caller.ts'
import { type FrameConverter, PASSED_FRAMES, StreamPipeline } from './stream-pipeline.ts'
import { type RelayEnd, relayStream } from './stream-relay.ts'
import { relayTimesOf } from './stream-times.ts'
import { mayLeaveUnread, UnreadStream } from './unread-streams.ts'

export interface StreamDeps extends AttemptDeps, GovernanceDeps {
  configuration: AttemptDeps['configuration'] & {
    UPSTREAM_FIRST_EVENT_TIMEOUT_MS: number
    UPSTREAM_EVENT_TIMEOUT_MS: number
    STREAM_COMMIT_MS: number
    STREAM_HEARTBEAT_MS: number
    LEDGER_LEASE_MS: number
  }
}

/** How a caller takes answers: as bytes over HTTP, or as the events themselves, in this isolate. */
export type CallerForm = 'http' | 'events'

/** What of its call a stream needs to know. */
export interface StreamedCall {
  operation: Operation
  modelId: string
  usageAsked: boolean
}

export interface StreamToStart {
  response: Response
  route: Route
  reader: StreamReader
  inspection: Inspection
  /** Null between equal protocols. */
  translated: TranslatedCall | null
  form: CallerForm
  attempt: UpstreamAttempt
  /** Fires when the caller leaves. */
  signal: AbortSignal
  call: GovernedCall
  basis: ChargeBasis
  /** What attempts before this one may be charged for. */
  lost: Usage | null
  caller: StreamedCall
}

/** A stream that has begun. */
export interface StartedStream {
  kind: 'stream'
  status: number
  upstreamHeaders: Headers
  content: { body: ReadableStream<Uint8Array> } | { batches: AsyncIterable<ModelEvent[]> }
  ended: Promise<StreamEnd>
}

/** What a stream came to: of its outcome, what the stream decides. */
export interface StreamEnd {
  status: number
  errorCode: string | null
  flags: string[]
  charge: Charge
  counts: InspectionCounts
}

/** Status of a call whose caller left before it ended; never sent, only recorded. */
export const CLIENT_LEFT = 499

/**
 * Starts a stream with its first valid event, or when its commit time is over.
 * @throws ApiError for a stream that ended before; `signal`'s reason when its caller left before.
 */
export async function startStream(deps: StreamDeps, stream: StreamToStart): Promise<StartedStream> {
  const { response, translated, form, caller } = stream
  if (!response.body) throw noAnswer('The upstream sent an empty answer.')
  const { status, headers: upstreamHeaders } = response
  if (form === 'events') {
    if (!translated) throw new Error('events are only made by translation')
    const events = new EventStreamCaller(deps.clock)
    const { ended } = await relayTo(deps, stream, response.body, {
      caller: events,
      pipeline: pipelineOf(stream, eventsOf(translated)),
      unread: null,
    })
    return { kind: 'stream', status, upstreamHeaders, content: { batches: events }, ended }
  }
  const { dialect } = OPERATIONS[caller.operation].protocol
  const mayPass = stream.reader.passesUnread && mayLeaveUnread(stream.route.provider, response)
  const http = new HttpStreamCaller(deps.clock, dialect, mayPass)
  const pipeline = pipelineOf(
    stream,
    translated ? framesOfEvents(translated, encoderOf(deps, stream)) : PASSED_FRAMES,
  )
  const unread = http.taken && unreadStream(deps, stream, pipeline, http, http.taken)
  const { ended } = await relayTo(deps, stream, response.body, { caller: http, pipeline, unread })
  return { kind: 'stream', status, upstreamHeaders, content: { body: http.body }, ended }
}

function pipelineOf<Unit>(
  { response, route: { provider }, reader, inspection, translated }: StreamToStart,
  converter: FrameConverter<Unit>,
): StreamPipeline<Unit> {
  return new StreamPipeline({
    frames: framesOf(provider, response),
    reader,
    inspection,
    converter,
    passes: translated === null,
    redact: (bytes) => redactCredential(bytes, provider.credential),
  })
}

function unreadStream(
  deps: StreamDeps,
  { route, attempt }: StreamToStart,
  pipeline: StreamPipeline<Uint8Array>,
  caller: HttpStreamCaller,
  taken: ReadableStream<Uint8Array>,
): UnreadStream {
  return new UnreadStream(route.provider, {
    pipeline,
    caller,
    taken,
    times: relayTimesOf(deps.configuration),
    clock: deps.clock,
    upstreamAbort: attempt.abort,
  })
}

/** Resolves when the stream has started. @throws when it ended before. */
async function relayTo<Unit>(
  deps: StreamDeps,
  stream: StreamToStart,
  upstream: ReadableStream<Uint8Array>,
  way: { caller: StreamCaller<Unit>; pipeline: StreamPipeline<Unit>; unread: UnreadStream | null },
): Promise<{ ended: Promise<StreamEnd> }> {
  const { route, reader, inspection, attempt, signal, basis, call, lost } = stream
  const { provider } = route
  const leaseMilliseconds = deps.configuration.LEDGER_LEASE_MS
  const { caller, pipeline, unread } = way
  const relay = await relayStream({
    upstream,
    pipeline,
    caller,
    times: relayTimesOf(deps.configuration),
    clock: deps.clock,
    callerSignal: signal,
    upstreamAbort: attempt.abort,
    lease: new CallLease(deps, {
      call,
      basis,
      meter: reader,
      lost,
      provider: provider.name,
      leaseMilliseconds,
    }),
    awaitsUsage: () => reader.owesUsage,
    passage: unread?.passage ?? null,
  })
  if (relay.started) {
    return { ended: relay.ended.then((end) => streamEnd(end, basis, reader, inspection, unread)) }
  }
  const { end } = relay
  if (end.kind === 'client_left') throw new Error('the caller left')
  // A beginning that must not pass was generated all the same, and a silent upstream may have read the input.
  const charged = end.error ? streamCharge(basis, reader).usage : null
  attempt.discard(`stream_${end.reason}`, charged ?? (end.reason === 'timeout' ? attempt.inputUsage : null))
  throw end.error ?? noAnswer(end.message)
}

function streamEnd(
  end: RelayEnd,
  basis: ChargeBasis,
  reader: StreamReader,
  inspection: Inspection,
  unread: UnreadStream | null,
): StreamEnd {
  const known = { charge: streamCharge(basis, reader), counts: inspection.counts }
  const flags = unread?.flags() ?? []
  if (end.kind === 'completed') return { ...known, status: 200, errorCode: null, flags }
  if (end.kind === 'client_left') {
    return { ...known, status: CLIENT_LEFT, errorCode: 'client_left', flags: ['client_left', ...flags] }
  }
  const errorCode = end.error?.code ?? 'stream_error'
  return { ...known, status: 200, errorCode, flags: [`stream_${end.reason}`, ...flags] }
}

/** The encoder of a translated answer for a caller over HTTP. */
export function encoderOf(
  deps: { clock: StreamDeps['clock'] },
  { route, caller }: Pick<StreamToStart, 'route' | 'caller'>,
): EventEncoder {
  const protocol = route.translation?.caller
  if (!protocol || protocol === 'responses') throw new Error('turns of responses are taken as events')
  const { modelId, usageAsked } = caller
  const nowSeconds = Math.floor(deps.clock() / 1000)
  return callerEncoder({ caller: protocol, modelId, usageAsked, nowSeconds })
}

const framesOfEvents = (translated: TranslatedCall, encoder: EventEncoder): FrameConverter<Uint8Array> => ({
  convert: (frame) => translated.events(frame).flatMap((event) => encoder.frames(event)),
  finish: () => translated.ending().flatMap((event) => encoder.frames(event)),
})

const eventsOf = (translated: TranslatedCall): FrameConverter<ModelEvent> => ({
  convert: (frame) => translated.events(frame),
  finish: () => translated.ending(),
})
