import type { Inspection } from '../../../src/dlp/inspection.ts'
import { CallLease } from '../../../src/gateway/calls/call-lease.ts'
import { type ChargeBasis, streamCharge } from '../../../src/gateway/calls/charges.ts'
import type { Dialect, StreamReader } from '../../../src/gateway/protocols/protocol.ts'
import { HttpStreamCaller } from '../../../src/gateway/relay/stream-caller.ts'
import {
  type FrameConverter,
  PASSED_FRAMES,
  StreamPipeline,
} from '../../../src/gateway/relay/stream-pipeline.ts'
import { type RelayStart, relayStream } from '../../../src/gateway/relay/stream-relay.ts'
import type { RelayTimes } from '../../../src/gateway/relay/stream-times.ts'
import type { Clock } from '../../../src/lib/clock.ts'
import { type FrameReader, SseReader } from '../../../src/lib/sse.ts'
import { MemoryLedger, someOpening } from '../ledger/memory-ledger.ts'

/** Milliseconds: the lease is renewed when a third of it has passed. */
export const LEASE_MS = 45_000

/** One micro-credit for each token, so that cost and tokens are the same number. */
const PRICE = 1_000_000

export const BASIS: ChargeBasis = {
  prices: {
    input: PRICE,
    output: PRICE,
    cacheRead: PRICE,
    cacheWrite5Minutes: PRICE,
    cacheWrite1Hour: PRICE,
  },
  bounds: { inputTokens: 1_000, outputTokens: 1_000_000, mostInput: 11_000, reserve: 1_001_000 },
  requestBytes: 300,
  charged: true,
}

export interface HttpRelay {
  upstream: ReadableStream<Uint8Array>
  /** The framing of the upstream; absent for Server-Sent Events. */
  frames?: FrameReader
  reader: StreamReader
  inspection: Inspection
  dialect: Dialect
  /** Null between equal protocols. */
  converter?: FrameConverter<Uint8Array> | null
  times: RelayTimes
  clock?: Clock
  callerSignal?: AbortSignal
  upstreamAbort?: AbortController
  ledger?: MemoryLedger
}

/** A stream from an upstream to a caller over HTTP, read chunk by chunk, as `stream-answer` puts it together. */
export function relayToHttp(relay: HttpRelay): {
  body: ReadableStream<Uint8Array>
  start: Promise<RelayStart>
} {
  const { reader, inspection, converter = null, clock = () => Date.now() } = relay
  const { ledger = new MemoryLedger() } = relay
  const call = { opening: someOpening(), reserve: BASIS.bounds.reserve }
  ledger.hold(call)
  const caller = new HttpStreamCaller(clock, relay.dialect)
  const deps = { clock, ledgerOf: ledger.of }
  const progress = () => {
    const { usage, cost } = streamCharge(BASIS, reader)
    return usage && { provider: 'p', usage, cost }
  }
  const start = relayStream({
    upstream: relay.upstream,
    pipeline: new StreamPipeline({
      frames: relay.frames ?? new SseReader(),
      reader,
      inspection,
      converter: converter ?? PASSED_FRAMES,
      passes: converter === null,
      redact: (bytes) => bytes,
      redactFrame: (bytes) => bytes,
    }),
    caller,
    times: relay.times,
    clock,
    callerSignal: relay.callerSignal ?? new AbortController().signal,
    upstreamAbort: relay.upstreamAbort ?? new AbortController(),
    lease: new CallLease(deps, call, LEASE_MS, progress),
    readOn: () => (reader.usagePending ? 1_000 : 0),
    passage: null,
  })
  return { body: caller.body, start }
}

/** An upstream that sends these chunks, each when it is read. */
export function streamOf(chunks: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  const left = [...chunks]
  return new ReadableStream({
    pull(controller) {
      const chunk = left.shift()
      if (chunk) controller.enqueue(chunk)
      else controller.close()
    },
  })
}
