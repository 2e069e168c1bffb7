import type { Inspection } from '../governance/dlp/inspection.ts'
import { applyEdits, joinBytes } from '../lib/byte-edits.ts'
import type { Clock } from '../lib/clock.ts'
import { errorText, logEvent } from '../lib/log.ts'
import { FrameTooLongError, parseFrame, type SseFrame, SseSplitter } from '../lib/sse.ts'
import type { StreamReader } from './protocols/protocol.ts'

/**
 * Carries one upstream stream to one caller, a frame at a time. It starts only with the upstream's first valid event
 * (or after `commit`), keeps a silent connection open with heartbeats, tells a failure in the caller's dialect, and
 * stops the upstream when the caller leaves (design: Models). A slow caller slows the upstream: nothing is read while
 * a write waits.
 */

export interface RelayTimes {
  /** Milliseconds after the upstream's headers when the answer starts without an event. */
  commit: number
  heartbeat: number
  firstEvent: number
  betweenEvents: number
}

export interface RelayOptions {
  upstream: ReadableStream<Uint8Array>
  reader: StreamReader
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
  | { kind: 'failed'; reason: FailureReason; message: string }

/** Either the answer has started, or it ended before it could and can still be told as an HTTP error. */
export type RelayStart =
  | { started: true; body: ReadableStream<Uint8Array>; ended: Promise<RelayEnd> }
  | { started: false; end: Exclude<RelayEnd, { kind: 'completed' }> }

/** Bytes that may wait for a slow caller before the upstream is no longer read. */
const CALLER_BUFFER_BYTES = 64 * 1024

export function relayStream(options: RelayOptions): Promise<RelayStart> {
  return new StreamRelay(options).start()
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** A caller that takes nothing for so long holds credits and an upstream for nothing. */
const LONGEST_UNREAD_MS = 5 * 60_000
/** How long the rest of an upstream's answer is read after its end. */
const REST_MS = 1_000
/** What an upstream may still send after its end before its connection is given up. */
const READS_AFTER_END = 8

type Chunk = ReadableStreamReadResult<Uint8Array>

class StreamRelay {
  readonly #options: RelayOptions
  readonly #source: ReadableStreamDefaultReader<Uint8Array>
  readonly #splitter = new SseSplitter()
  readonly #watch: ReturnType<typeof setInterval>
  /** Frames that were read before the answer started. */
  #waiting: Uint8Array[] = []
  #writer: WritableStreamDefaultWriter<Uint8Array> | null = null
  /** Bytes written that the caller has not read. */
  #unread = 0
  /** Ends the wait for the caller to read. */
  #goOn: () => void = () => {}
  #pendingRead: Promise<Chunk> | null = null
  #started = false
  /** Frames that tell a failure, sent last. */
  #farewell: Uint8Array[] = []
  #end: RelayEnd | null = null
  /** When the caller last took something, or could have begun to. */
  #lastTaken = 0
  #lastRead: number
  #lastWrite: number

  constructor(options: RelayOptions) {
    this.#options = options
    this.#source = options.upstream.getReader()
    this.#lastRead = this.#lastWrite = options.clock()
    const { heartbeat, firstEvent, betweenEvents } = options.times
    this.#watch = setInterval(
      () => this.#tick(),
      Math.max(10, Math.min(heartbeat, firstEvent, betweenEvents) / 4),
    )
    options.callerSignal.addEventListener('abort', this.#leave)
    if (options.callerSignal.aborted) this.#leave()
  }

  async start(): Promise<RelayStart> {
    let commit: ReturnType<typeof setTimeout> | undefined
    const committed = new Promise<'commit'>((resolve) => {
      commit = setTimeout(() => resolve('commit'), this.#options.times.commit)
    })
    while (!this.#started && !this.#end) {
      const next = await Promise.race([this.#read(), committed])
      if (next === 'commit') break
      this.#take(next)
    }
    clearTimeout(commit)
    if (this.#end && !this.#started && this.#end.kind !== 'completed') {
      this.#release()
      return { started: false, end: this.#end }
    }
    const { readable, writable } = new IdentityTransformStream()
    this.#writer = writable.getWriter()
    this.#writer.closed.catch(this.#leave)
    return { started: true, body: readable, ended: this.#pump() }
  }

  async #pump(): Promise<RelayEnd> {
    for (const frame of this.#waiting.splice(0)) this.#send(frame)
    while (!this.#end) {
      if (this.#unread >= CALLER_BUFFER_BYTES) await this.#someRead()
      else this.#take(await this.#read())
    }
    this.#release()
    // Not awaited: the call is over for the upstream and the ledger, however slowly its caller reads the rest.
    for (const frame of this.#farewell) this.#send(frame)
    if (this.#end.kind !== 'client_left') this.#writer?.close().catch(() => {})
    return this.#end
  }

  /** The read in flight, or a new one. A failed read is told as data, so that nothing is left unhandled. */
  #read(): Promise<Chunk | { failed: true }> {
    this.#pendingRead ??= this.#source.read()
    return this.#pendingRead.then(
      (chunk) => {
        this.#pendingRead = null
        this.#lastRead = this.#options.clock()
        return chunk
      },
      () => ({ failed: true as const }),
    )
  }

  /** Synchronous, so that a frame costs no turn of the event loop: room for a chunk is waited for before it is read. */
  #take(chunk: Chunk | { failed: true }): void {
    if (this.#end) return
    try {
      if ('failed' in chunk) this.#fail('cut', 'The upstream broke off its answer.')
      else if (chunk.done) this.#close()
      else this.#takeFrames(chunk.value)
    } catch (error) {
      const tooLong = error instanceof FrameTooLongError
      if (!tooLong) logEvent('error', 'stream_reader_failed', { error: errorText(error) })
      this.#fail(
        'error',
        tooLong ? 'The upstream sent an event that is too long.' : 'The gateway could not read the answer.',
      )
    }
  }

  #takeFrames(bytes: Uint8Array): void {
    for (const frame of this.#splitter.push(bytes)) {
      if (this.#end) return
      this.#frame(frame)
      if (this.#options.reader.ended) this.#complete()
    }
  }

  #frame(bytes: Uint8Array): void {
    const { reader, inspection } = this.#options
    const frame = parseFrame(bytes)
    const verdict = reader.read(frame)
    if (verdict.kind === 'drop') inspection.sink(0, frame.bytes.length)
    else if (verdict.kind === 'failure') this.#upstreamError(frame, verdict)
    else {
      this.#started ||= verdict.started
      const edited = applyEdits(frame.bytes, verdict.edits)
      inspection.sink(edited.released, edited.withheld)
      this.#write(joinBytes(edited.pieces))
    }
  }

  #upstreamError(frame: SseFrame, verdict: { message: string; forward: boolean }): void {
    const { inspection, redact } = this.#options
    const length = frame.bytes.length
    inspection.sink(verdict.forward ? length : 0, verdict.forward ? 0 : length)
    const message = decoder.decode(redact(encoder.encode(verdict.message)))
    this.#fail('error', message, verdict.forward ? [redact(frame.bytes)] : undefined)
  }

  /** The upstream closed its stream: an end, or less than one. */
  #close(): void {
    const owed = this.#options.reader.closing()
    const begun = this.#started || this.#writer !== null
    if (owed !== null && begun) {
      for (const frame of owed) this.#write(frame)
      this.#end ??= { kind: 'completed' }
    } else if (this.#started) this.#fail('cut', 'The upstream ended its answer early.')
    else this.#fail('empty', 'The upstream sent an empty answer.')
  }

  /** The stream has ended as its protocol demands. Whatever its connection does now, nothing may follow. */
  #complete(): void {
    if (this.#end || !(this.#started || this.#writer)) return
    this.#end = { kind: 'completed' }
    this.#readRest().catch(() => {})
  }

  /** An upstream closes its answer right after its last event, and a connection read to the end can be used again. */
  async #readRest(): Promise<void> {
    const timer = setTimeout(() => this.#source.cancel().catch(() => {}), REST_MS)
    try {
      for (let reads = 0; reads < READS_AFTER_END; reads++) {
        if ((await this.#source.read()).done) return
      }
      await this.#source.cancel()
    } finally {
      clearTimeout(timer)
    }
  }

  #fail(reason: FailureReason, message: string, farewell?: Uint8Array[]): void {
    if (this.#end) return
    this.#end = { kind: 'failed', reason, message }
    this.#farewell = farewell ?? this.#options.reader.failure(message)
  }

  #write(bytes: Uint8Array): void {
    if (this.#writer) this.#send(bytes)
    else this.#waiting.push(bytes)
  }

  /**
   * The writer's `ready` would say the same, but workerd replaces that promise whenever a write completes and room is
   * still short, and the one that somebody waits for is then never resolved.
   */
  #someRead(): Promise<void> {
    return new Promise((resolve) => {
      this.#goOn = resolve
    })
  }

  #send(bytes: Uint8Array): void {
    this.#lastWrite = this.#options.clock()
    if (this.#unread === 0) this.#lastTaken = this.#lastWrite
    this.#unread += bytes.length
    this.#writer?.write(bytes).then(() => {
      this.#unread -= bytes.length
      this.#lastTaken = this.#options.clock()
      this.#goOn()
    }, this.#leave)
  }

  readonly #leave = (): void => {
    // A write that waits for this caller would wait forever.
    this.#writer?.abort().catch(() => {})
    this.#goOn()
    if (this.#end) return
    this.#end = { kind: 'client_left' }
    this.#stopUpstream()
  }

  #stopUpstream(): void {
    this.#options.abortUpstream()
    this.#source.cancel().catch(() => {})
  }

  /** Watches the upstream only while it is being read: a caller that does not read is not the upstream's fault. */
  #tick(): void {
    if (this.#end) return
    const mustEnd = this.#options.onTick()
    if (mustEnd) {
      this.#fail('error', mustEnd)
      this.#stopUpstream()
      return
    }
    const { heartbeat, firstEvent, betweenEvents } = this.#options.times
    const now = this.#options.clock()
    if (this.#unread > 0 && now - this.#lastTaken >= LONGEST_UNREAD_MS) this.#leave()
    if (!this.#pendingRead || this.#end) return
    if (now - this.#lastRead >= (this.#started ? betweenEvents : firstEvent)) {
      this.#fail('timeout', 'The upstream stopped sending.')
      this.#stopUpstream()
    } else if (this.#writer && this.#unread === 0 && now - this.#lastWrite >= heartbeat) {
      this.#send(this.#options.reader.heartbeat)
    }
  }

  #release(): void {
    clearInterval(this.#watch)
    this.#options.callerSignal.removeEventListener('abort', this.#leave)
    if (this.#end?.kind !== 'completed') this.#stopUpstream()
  }
}
