import { ApiError } from '../lib/api-error.ts'
import { applyEdits, joinBytes } from '../lib/byte-edits.ts'
import { errorText, logEvent } from '../lib/log.ts'
import { type FrameReader, FrameTooLongError, parseFrame, type SseFrame } from '../lib/sse.ts'
import { CallerWriter } from './caller-writer.ts'
import type { FrameVerdict, StreamReader } from './protocols/protocol.ts'
import type { HeldFrame } from './protocols/streamed-texts.ts'
import type { Exchange, FailureReason, RelayEnd, RelayOptions, RelayStart } from './relay-options.ts'

/**
 * Carries one upstream stream to one caller, a frame at a time. It starts only with the upstream's first valid event
 * (or after `commit`), keeps a silent connection open with heartbeats, tells a failure in the caller's dialect, and
 * stops the upstream when the caller leaves (design: Models). A slow caller slows the upstream: nothing is read while
 * a write waits.
 */

/** Characters of what an upstream says about its failure. */
const LONGEST_MESSAGE = 4_096
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
  #source: ReadableStreamDefaultReader<Uint8Array>
  #reader: StreamReader
  #frames: FrameReader
  /** The exchange that continues this one, while it begins. */
  #next: Promise<Exchange> | null = null
  readonly #watch: ReturnType<typeof setInterval>
  /** Frames that were read before the answer started. */
  #waiting: Uint8Array[] = []
  #caller: CallerWriter | null = null
  #pendingRead: Promise<Chunk> | null = null
  #started = false
  /** Frames that tell a failure, sent last. */
  #farewell: Uint8Array[] = []
  #end: RelayEnd | null = null
  /** The caller left when only the usage was missing, which is waited for so long. */
  #leaving: ReturnType<typeof setTimeout> | undefined
  #lastRead: number
  readonly #begunAt: number

  constructor(options: RelayOptions) {
    this.#options = options
    this.#source = options.upstream.getReader()
    this.#reader = options.reader
    this.#frames = options.frames
    this.#lastRead = this.#begunAt = options.clock()
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
    this.#caller = new CallerWriter(this.#options.clock, this.#begunAt, this.#leave)
    return { started: true, body: this.#caller.body, ended: this.#pump(this.#caller) }
  }

  async #pump(caller: CallerWriter): Promise<RelayEnd> {
    for (const frame of this.#waiting.splice(0)) caller.send(frame)
    while (!this.#end) {
      if (this.#next) await this.#goOnWith(this.#next)
      else if (!this.#leaving && caller.unread >= CALLER_BUFFER_BYTES) await caller.someRead()
      else this.#take(await this.#read())
    }
    if (this.#leaving) this.#end = { kind: 'client_left' }
    this.#release()
    // Not awaited: the call is over for the upstream and the ledger, however slowly its caller reads the rest.
    for (const frame of this.#farewell) caller.send(frame)
    if (this.#end.kind !== 'client_left') caller.close()
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
      this.#failBy(error)
    }
  }

  #failBy(error: unknown): void {
    if (error instanceof ApiError) {
      this.#fail('error', error.message, undefined, error)
      return
    }
    const tooLong = error instanceof FrameTooLongError
    if (!tooLong) logEvent('error', 'stream_reader_failed', { error: errorText(error) })
    this.#fail(
      'error',
      tooLong ? 'The upstream sent an event that is too long.' : 'The gateway could not read the answer.',
    )
  }

  #takeFrames(bytes: Uint8Array): void {
    for (const frame of this.#frames.push(bytes)) {
      if (this.#end || this.#next) return
      this.#frame(frame)
      if (this.#reader.ended) this.#complete()
    }
  }

  #frame(frame: SseFrame): void {
    const { inspection } = this.#options
    inspection.begin()
    const verdict = this.#verdictOn(frame)
    if (verdict.kind === 'drop') inspection.sink(0, frame.bytes.length)
    else if (verdict.kind === 'failure') this.#upstreamError(frame, verdict)
    else {
      this.#started ||= verdict.started
      for (const held of verdict.before ?? []) this.#forwardHeld(held)
      const edited = applyEdits(frame.bytes, verdict.edits)
      inspection.sink(edited.released, edited.withheld)
      this.#forward(joinBytes(edited.pieces), frame)
    }
  }

  /** @throws ApiError for a frame that must not pass. */
  #verdictOn(frame: SseFrame): FrameVerdict {
    try {
      return this.#reader.read(frame)
    } catch (error) {
      this.#options.inspection.refuse(frame.bytes.length)
      throw error
    }
  }

  /** @param original the frame that was edited; null for one that was made here. */
  #forward(edited: Uint8Array, original: SseFrame | null): void {
    const { translator } = this.#options
    const frame = () => (edited === original?.bytes ? original : parseFrame(edited))
    const told = translator ? translator.frame(frame(), original) : [edited]
    for (const each of told) this.#write(each)
  }

  #forwardHeld({ bytes, released, withheld }: HeldFrame): void {
    this.#options.inspection.sink(released, withheld)
    this.#forward(bytes, null)
  }

  /** Only where the upstream's own frame is told does anything of it leave, as it was inspected. */
  #upstreamError(frame: SseFrame, verdict: Extract<FrameVerdict, { kind: 'failure' }>): void {
    const { inspection, redact, translator } = this.#options
    const message = decoder.decode(redact(encoder.encode(verdict.message))).slice(0, LONGEST_MESSAGE)
    if (verdict.forward === null || translator) {
      inspection.refuse(frame.bytes.length)
      this.#fail('error', message)
      return
    }
    const edited = applyEdits(frame.bytes, verdict.forward)
    inspection.sink(edited.released, edited.withheld)
    this.#fail('error', message, [redact(joinBytes(edited.pieces))])
  }

  /** The upstream closed its stream: an end, or less than one. */
  #close(): void {
    const owed = this.#reader.closing()
    const begun = this.#started || this.#caller !== null
    if (owed !== null && begun) this.#whole(owed)
    else if (this.#started) this.#fail('cut', 'The upstream ended its answer early.')
    else this.#fail('empty', 'The upstream sent an empty answer.')
  }

  /** The stream has ended as its protocol demands. Whatever its connection does now, nothing may follow. */
  #complete(): void {
    if (this.#end || !(this.#started || this.#caller)) return
    this.#whole([])
    this.#readRest(this.#source).catch(() => {})
  }

  /** The exchange is whole. It is the end of the answer unless another one continues it. */
  #whole(owed: HeldFrame[]): void {
    const { translator } = this.#options
    for (const held of owed) this.#forwardHeld(held)
    if (translator?.goesOn()) {
      this.#next = translator.next()
      // Awaited by the pump; until then a failure must not count as unhandled.
      this.#next.catch(() => {})
      return
    }
    for (const frame of translator?.finish() ?? []) this.#write(frame)
    this.#end ??= { kind: 'completed' }
  }

  async #goOnWith(next: Promise<Exchange>): Promise<void> {
    try {
      const { upstream, frames, reader } = await next
      this.#source = upstream.getReader()
      this.#reader = reader
      this.#frames = frames
      this.#lastRead = this.#options.clock()
      if (this.#end) this.#stopUpstream()
    } catch (error) {
      const known = error instanceof ApiError
      if (!known) logEvent('error', 'stream_continuation_failed', { error: errorText(error) })
      this.#fail('error', known ? error.message : 'The gateway could not continue the answer.')
    } finally {
      this.#next = null
    }
  }

  /** An upstream closes its answer right after its last event, and a connection read to the end can be used again. */
  async #readRest(source: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    const timer = setTimeout(() => source.cancel().catch(() => {}), REST_MS)
    try {
      for (let reads = 0; reads < READS_AFTER_END; reads++) {
        if ((await source.read()).done) return
      }
      await source.cancel()
    } finally {
      clearTimeout(timer)
    }
  }

  #fail(reason: FailureReason, message: string, farewell?: Uint8Array[], error?: ApiError): void {
    if (this.#end) return
    this.#end = { kind: 'failed', reason, message, ...(error && { error }) }
    this.#farewell = farewell ?? this.#options.dialect.failure(message)
  }

  #write(bytes: Uint8Array): void {
    if (this.#leaving) return
    if (this.#caller) this.#caller.send(bytes)
    else this.#waiting.push(bytes)
  }

  readonly #leave = (): void => {
    this.#caller?.abort()
    if (this.#end || this.#leaving) return
    // Who has read the whole answer and leaves before its price is told pays what it cost all the same.
    if (this.#started && this.#reader.owesUsage) this.#leaving = setTimeout(this.#stop, REST_MS)
    else this.#stop()
  }

  readonly #stop = (): void => {
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
    const caller = this.#caller
    if (caller && caller.unread > 0 && now - caller.lastTaken >= LONGEST_UNREAD_MS) this.#leave()
    if (!(this.#pendingRead || this.#next) || this.#end) return
    // An exchange that begins has a time-out of its own.
    if (!this.#next && now - this.#lastRead >= (this.#started ? betweenEvents : firstEvent)) {
      this.#fail('timeout', 'The upstream stopped sending.')
      this.#stopUpstream()
    } else if (caller?.unread === 0 && now - caller.lastWrite >= heartbeat) {
      caller.send(this.#options.dialect.heartbeat)
    }
  }

  #release(): void {
    clearInterval(this.#watch)
    clearTimeout(this.#leaving)
    this.#options.callerSignal.removeEventListener('abort', this.#leave)
    if (this.#end?.kind === 'completed') return
    this.#options.inspection.abandon()
    this.#stopUpstream()
  }
}
