import type { Inspection } from '../governance/dlp/inspection.ts'
import type { ApiError } from '../lib/api-error.ts'
import type { Clock } from '../lib/clock.ts'
import type { FrameReader, SseFrame } from '../lib/sse.ts'
import type { Dialect, StreamReader } from './protocols/protocol.ts'

/** What a relay of a stream is given, and what becomes of it. */

export interface RelayTimes {
  /** Milliseconds after the upstream's headers when the answer starts without an event. */
  commit: number
  heartbeat: number
  firstEvent: number
  betweenEvents: number
}

export function relayTimesOf(configuration: {
  STREAM_COMMIT_MS: number
  STREAM_HEARTBEAT_MS: number
  UPSTREAM_FIRST_EVENT_TIMEOUT_MS: number
  UPSTREAM_EVENT_TIMEOUT_MS: number
}): RelayTimes {
  return {
    commit: configuration.STREAM_COMMIT_MS,
    heartbeat: configuration.STREAM_HEARTBEAT_MS,
    firstEvent: configuration.UPSTREAM_FIRST_EVENT_TIMEOUT_MS,
    betweenEvents: configuration.UPSTREAM_EVENT_TIMEOUT_MS,
  }
}

/** One stream of an upstream. */
export interface Exchange {
  upstream: ReadableStream<Uint8Array>
  frames: FrameReader
  reader: StreamReader
}

/** Between different protocols: makes the caller's frames of what the upstream's reader lets pass. */
export interface StreamTranslator {
  /** @param original the frame before it was edited; null for one that was made here. */
  frame(frame: SseFrame, original: SseFrame | null): Uint8Array[]
  /** Asked once at the end of an exchange: whether another one continues the answer. */
  goesOn(): boolean
  /** Begins that exchange. @throws ApiError told in the stream. */
  next(): Promise<Exchange>
  /** Frames that end the caller's stream. */
  finish(): Uint8Array[]
}

export interface RelayOptions extends Exchange {
  /** What the gateway itself says to this caller. */
  dialect: Dialect
  /** Null between equal protocols. */
  translator: StreamTranslator | null
  inspection: Inspection
  times: RelayTimes
  clock: Clock
  /** The caller's connection; one of three signs that it left, with the cancelled body and the failed write. */
  callerSignal: AbortSignal
  abortUpstream: () => void
  /** Cuts our credential out of what an upstream says about an error. */
  redact: (bytes: Uint8Array) => Uint8Array
  /** Called now and then while the stream lasts. @returns why it has to end, or null. */
  onTick: () => string | null
}

export type FailureReason = 'empty' | 'cut' | 'timeout' | 'error'

export type RelayEnd =
  | { kind: 'completed' }
  | { kind: 'client_left' }
  /** `error` when the gateway itself ended it, as it is told before the stream has begun. */
  | { kind: 'failed'; reason: FailureReason; message: string; error?: ApiError }

/** Either the answer has started, or it ended before it could and can still be told as an HTTP error. */
export type RelayStart =
  | { started: true; body: ReadableStream<Uint8Array>; ended: Promise<RelayEnd> }
  | { started: false; end: Exclude<RelayEnd, { kind: 'completed' }> }
