/** A streamed answer: relayed to its caller from its first valid event on. */

import type { GovernanceDeps, GovernedCall } from '../../calls/governed-call.ts'
import type { Inspection } from '../../dlp/inspection.ts'
import { redactAnswer, redactCredential } from '../../lib/secret-spellings.ts'
import type { InspectionCounts } from '../../wire/records.ts'
import { CallLease } from '../calls/call-lease.ts'
import { atRoute } from '../calls/charge-basis.ts'
import {
  abandonedCharge,
  type Charge,
  type ChargeBasis,
  hidesOutput,
  inputUsage,
  type LostCharge,
  streamCharge,
  withLost,
} from '../calls/charges.ts'
import { noAnswer, type UnusableAnswer, unusable } from '../calls/unusable-answer.ts'
import type { Route } from '../catalogue/call-routes.ts'
import type { Json } from '../protocols/json.ts'
import { OPERATIONS, type Operation } from '../protocols/operations.ts'
import type { Dialect, StreamReader } from '../protocols/protocol.ts'
import { type Provider, transportOf } from '../providers/provider.ts'
import { callerEncoder } from '../translation/caller-encoder.ts'
import type { EventEncoder, ModelEvent } from '../translation/model-events.ts'
import type { TranslatedCall } from '../translation/translated-call.ts'
import { EventStreamCaller } from './event-stream-caller.ts'
import { mayPassUnread, NativePassage, readStreamsOf } from './native-passage.ts'
import { HttpStreamCaller, type StreamCaller } from './stream-caller.ts'
import { type FrameConverter, PASSED_FRAMES, StreamPipeline } from './stream-pipeline.ts'
import { type Arrivals, REST_MS, type RelayEnd, relayStream } from './stream-relay.ts'
import { GATHER_MS, GATHER_TURN_MS } from './stream-times.ts'

export interface StreamDeps extends GovernanceDeps {
  configuration: {
    UPSTREAM_READ_ON_MS: number
    UPSTREAM_FIRST_EVENT_TIMEOUT_MS: number
    UPSTREAM_EVENT_TIMEOUT_MS: number
    STREAM_COMMIT_MS: number
    STREAM_HEARTBEAT_MS: number
    LEDGER_LEASE_MS: number
    NATIVE_STREAM_HOSTS: readonly string[]
  }
}

/** The form of an answer: bytes over HTTP, or events for a caller in this isolate. */
export type CallerForm = 'http' | 'events'

interface StreamToStart {
  response: Response
  route: Route
  reader: StreamReader
  inspection: Inspection
  /** Null between equal protocols. */
  translated: TranslatedCall | null
  form: CallerForm
  /** Aborts the request to the upstream. */
  upstreamAbort: AbortController
  /** Fires when the caller leaves. */
  signal: AbortSignal
  call: GovernedCall
  basis: ChargeBasis
  /** The possible charge of earlier attempts. */
  lost: LostCharge | null
  caller: { operation: Operation; modelId: string; usageRequested: boolean }
}

/** A stream that has begun. */
export interface StartedStream {
  kind: 'stream'
  status: number
  upstreamHeaders: Headers
  content: { body: ReadableStream<Uint8Array> } | { batches: AsyncIterable<ModelEvent[]> }
  ended: Promise<StreamEnd>
}

/** A stream that was an error of its upstream, before anything was generated. Nothing was sent to the caller. */
interface ErrorStream extends Omit<UnusableAnswer, 'kind'> {
  kind: 'error_stream'
  /** The error as the body of an answer, inspected and edited. It may hold the gateway's credential. */
  body: Json
}

/** The part of a call's outcome that its stream decides. */
interface StreamEnd {
  status: number
  errorCode: string | null
  flags: string[]
  charge: Charge
  counts: InspectionCounts
  arrivals: Arrivals
}

/** Status of a call whose caller left before its end; never sent, only recorded. */
export const CLIENT_LEFT = 499

/**
 * Starts a stream with its first valid event, or at its commit time.
 * @returns unusable for a stream that ended before. @throws when its caller left before.
 */
export async function startStream(
  deps: StreamDeps,
  stream: StreamToStart,
): Promise<StartedStream | ErrorStream | UnusableAnswer> {
  const { response, route, reader, translated, form, caller } = stream
  const { status, headers: upstreamHeaders } = response
  if (form === 'events') {
    if (!translated) throw new Error('events are only made by translation')
    const events = new EventStreamCaller(deps.clock)
    const relay = await relayTo(deps, stream, events, eventsOf(translated))
    if (relay.kind !== 'started') return relay
    return { kind: 'stream', status, upstreamHeaders, content: { batches: events }, ended: relay.ended }
  }
  const { dialect } = OPERATIONS[caller.operation].protocol
  const { NATIVE_STREAM_HOSTS } = deps.configuration
  const mayPass = reader.passesUnread && mayPassUnread(route.provider, response, NATIVE_STREAM_HOSTS)
  const http = new HttpStreamCaller(deps.clock, dialect, mayPass)
  const converter = translated ? framesOfEvents(translated, encoderOf(deps, stream), dialect) : PASSED_FRAMES
  const relay = await relayTo(deps, stream, http, converter)
  if (relay.kind !== 'started') return relay
  return { kind: 'stream', status, upstreamHeaders, content: { body: http.body }, ended: relay.ended }
}

/**
 * An answer, or a part of it, without the gateway's credential. A provider that repeats it has its streams read before
 * they are sent.
 * @returns the same array where there is none.
 */
export function redactedAnswer(bytes: Uint8Array, provider: Provider): Uint8Array {
  const redacted = redactAnswer(bytes, provider.credential)
  if (redacted !== bytes) readStreamsOf(provider)
  return redacted
}

/** Resolves when the stream has started, or has ended before. @throws when its caller left before. */
async function relayTo<Unit>(
  deps: StreamDeps,
  stream: StreamToStart,
  caller: StreamCaller<Unit>,
  converter: FrameConverter<Unit>,
): Promise<{ kind: 'started'; ended: Promise<StreamEnd> } | ErrorStream | UnusableAnswer> {
  const { response, route, reader, inspection, upstreamAbort, signal, basis } = stream
  if (!response.body) return unusable(noAnswer('The upstream sent an empty answer.'))
  const { provider } = route
  const pipeline = pipelineOf(stream, converter)
  const { configuration } = deps
  const times = {
    commit: configuration.STREAM_COMMIT_MS,
    heartbeat: configuration.STREAM_HEARTBEAT_MS,
    firstEvent: configuration.UPSTREAM_FIRST_EVENT_TIMEOUT_MS,
    betweenEvents: configuration.UPSTREAM_EVENT_TIMEOUT_MS,
    gather: stream.form === 'events' ? GATHER_TURN_MS : GATHER_MS,
  }
  const common = { times, clock: deps.clock, upstreamAbort }
  const passage =
    caller instanceof HttpStreamCaller && caller.readCopy
      ? new NativePassage({ ...common, provider, pipeline, caller }, caller.readCopy)
      : null
  const relay = await relayStream({
    ...common,
    upstream: response.body,
    pipeline,
    caller,
    callerSignal: signal,
    lease: leaseOf(deps, stream),
    readOn: () => readOnTime(deps, basis, reader),
    passage,
  })
  if (relay.started) {
    const ended = relay.ended.then((end) =>
      streamEnd(end, relay.arrivals, basis, reader, inspection, passage),
    )
    return { kind: 'started', ended }
  }
  const { end } = relay
  if (end.kind === 'client_left') throw new Error('the caller left')
  // A beginning that must not pass was generated all the same; a silent upstream may have read the input.
  const charged = end.error ? streamCharge(basis, reader).usage : null
  const lost = charged ?? (end.reason === 'timeout' ? inputUsage(basis) : null)
  const ended = unusable(end.error ?? noAnswer(end.message), `stream_${end.reason}`, lost)
  return end.body ? { ...ended, kind: 'error_stream', body: end.body } : ended
}

/**
 * Time for which a stream is read after its caller left, so that it is charged by its usage: when only the usage is missing, and
 * when the call reasons, because hidden tokens are billed as well.
 */
function readOnTime({ configuration }: StreamDeps, basis: ChargeBasis, reader: StreamReader): number {
  if (!basis.charged || reader.usage()?.final) return 0
  if (reader.usagePending) return REST_MS
  return hidesOutput(basis, reader) ? configuration.UPSTREAM_READ_ON_MS : 0
}

function pipelineOf<Unit>(
  { response, route: { provider }, reader, inspection, translated }: StreamToStart,
  converter: FrameConverter<Unit>,
): StreamPipeline<Unit> {
  return new StreamPipeline({
    frames: transportOf(provider).frames(response),
    reader,
    inspection,
    converter,
    passes: translated === null,
    redact: (bytes) => redactCredential(bytes, provider.credential),
    redactFrame: (bytes) => redactedAnswer(bytes, provider),
  })
}

function leaseOf(deps: StreamDeps, { route, reader, call, basis, lost }: StreamToStart): CallLease {
  const provider = route.provider.name
  return new CallLease(deps, call, deps.configuration.LEDGER_LEASE_MS, () => {
    const { usage, cost } = withLost(basis, atRoute(basis, streamCharge(basis, reader), route), lost)
    return usage && { provider, usage, cost }
  })
}

function streamEnd(
  end: RelayEnd,
  arrivals: Arrivals,
  basis: ChargeBasis,
  reader: StreamReader,
  inspection: Inspection,
  passage: NativePassage | null,
): StreamEnd {
  const known = { charge: streamCharge(basis, reader), counts: inspection.counts, arrivals }
  const flags = passage?.flags() ?? []
  if (end.kind === 'completed') return { ...known, status: 200, errorCode: null, flags }
  if (end.kind === 'client_left') {
    const charge = abandonedCharge(basis, reader)
    return {
      ...known,
      charge,
      status: CLIENT_LEFT,
      errorCode: 'client_left',
      flags: ['client_left', ...flags],
    }
  }
  const errorCode = end.error?.code ?? 'stream_error'
  return { ...known, status: 200, errorCode, flags: [`stream_${end.reason}`, ...flags] }
}

/** The encoder of a translated answer for a caller over HTTP. */
export function encoderOf(
  { clock }: Pick<StreamDeps, 'clock'>,
  { route, caller }: Pick<StreamToStart, 'route' | 'caller'>,
): EventEncoder {
  const protocol = route.translation?.caller
  if (!protocol || protocol === 'responses') throw new Error('turns of responses are taken as events')
  const { modelId, usageRequested } = caller
  return callerEncoder({ caller: protocol, modelId, usageRequested, nowSeconds: Math.floor(clock() / 1000) })
}

const framesOfEvents = (
  translated: TranslatedCall,
  encoder: EventEncoder,
  dialect: Dialect,
): FrameConverter<Uint8Array> => ({
  convert: (frame) => translated.events(frame).flatMap((event) => encoder.frames(event)),
  finish: () => translated.ending().flatMap((event) => encoder.frames(event)),
  overload: (message) => dialect.failure(message, true),
})

const eventsOf = (translated: TranslatedCall): FrameConverter<ModelEvent> => ({
  convert: (frame) => translated.events(frame),
  finish: () => translated.ending(),
})
