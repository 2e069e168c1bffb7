import type { Clock } from '../../lib/clock.ts'
import { runSlices, type Slices } from '../../lib/slices.ts'
import type { CallLease } from '../calls/call-lease.ts'
import { GatheringReader } from './gathering-reader.ts'
import type { NativePassage } from './native-passage.ts'
import type { PipelineEnd } from './pipeline-end.ts'
import type { StreamCaller } from './stream-caller.ts'
import type { StreamPipeline } from './stream-pipeline.ts'
import { LONGEST_UNREAD_MS, type RelayTimes } from './stream-times.ts'

/**
 * Relays one upstream stream to one caller, in the steps in which it is read (`gathering-reader.ts`):
 * - It starts with the upstream's first valid event, or after `commit`.
 * - It keeps a silent connection open with heartbeats, and ends a failed stream in the caller's dialect.
 * - It stops the upstream when the caller leaves.
 * - It does not read the upstream while too much waits for a slow caller.
 * - It has the runtime pipe a stream that needs no change, from the first event on (`native-passage.ts`).
 */

interface RelayOptions<Unit> {
  upstream: ReadableStream<Uint8Array>
  pipeline: StreamPipeline<Unit>
  caller: StreamCaller<Unit>
  times: RelayTimes
  clock: Clock
  /** Fires when the caller leaves; the cancelled body and the failed write are the other two signs. */
  callerSignal: AbortSignal
  /** Aborts the request to the upstream. */
  upstreamAbort: AbortController
  /** Renewed while the stream lasts. A stream that has lost it ends. */
  lease: CallLease
  /** Time for which the upstream is read for its usage after the caller left, in milliseconds; 0 stops it at once. */
  readOn: () => number
  /** Carries a stream that needs no change; null where each chunk is read. */
  passage: NativePassage | null
}

type StreamSource = Pick<ReadableStreamDefaultReader<Uint8Array>, 'read' | 'cancel'>

export type RelayEnd<Unit = unknown> = PipelineEnd<Unit> | { kind: 'client_left' }

/** When events of an upstream arrived, in milliseconds since the epoch, and how many. Complete when the stream has ended. */
export interface Arrivals {
  readonly first: number | null
  readonly last: number
  readonly events: number
}

/** Either the answer has started, or it ended before and can still be an HTTP error. */
export type RelayStart =
  | { started: true; ended: Promise<RelayEnd>; arrivals: Arrivals }
  | { started: false; end: Exclude<RelayEnd, { kind: 'completed' }> }

/** Time for which an upstream is read after the end of its answer. */
export const REST_MS = 1_000
/** Chunks that an upstream may send after its end until its connection is given up. */
const READS_AFTER_END = 8

export const relayStream = <Unit>(options: RelayOptions<Unit>): Promise<RelayStart> =>
  new StreamRelay(options).start()

class StreamRelay<Unit> implements Arrivals {
  readonly #options: RelayOptions<Unit>
  readonly #upstream: GatheringReader
  /** The upstream, or after a passage the copy of its rest. */
  #source: StreamSource
  /** the passage that pipes the stream, or is going to; null after it. */
  #passage: NativePassage | null
  #passing = false
  readonly #watch: ReturnType<typeof setInterval>
  /** Units that came before the answer started. */
  #waiting: Unit[] = []
  #reading = false
  #clientLeft = false
  /** Set when the caller left and the upstream is read on for its usage: the end of the wait for it. */
  #leaving: ReturnType<typeof setTimeout> | undefined
  #lastRead: number
  /** Arrival of the first valid event. */
  #firstEvent: number | null = null

  constructor(options: RelayOptions<Unit>) {
    this.#options = options
    this.#upstream = new GatheringReader(options.upstream, options.times.gather, options.clock)
    this.#source = this.#upstream
    this.#passage = options.passage
    this.#lastRead = options.clock()
    const { heartbeat, firstEvent, betweenEvents } = options.times
    this.#watch = setInterval(
      () => this.#tick(),
      Math.max(10, Math.min(heartbeat, firstEvent, betweenEvents) / 4),
    )
    options.caller.gone.then(this.#leave)
    options.callerSignal.addEventListener('abort', this.#leave)
    if (options.callerSignal.aborted) this.#leave()
  }

  get first(): number | null {
    return this.#firstEvent
  }

  get last(): number {
    return this.#lastRead
  }

  get events(): number {
    return this.#options.pipeline.events
  }

  async start(): Promise<RelayStart> {
    const { pipeline } = this.#options
    const committed = Promise.withResolvers<null>()
    const commit = setTimeout(() => committed.resolve(null), this.#options.times.commit)
    let read = this.#read()
    while (!pipeline.started && !this.#isOver) {
      const chunk = await Promise.race([read, committed.promise])
      if (chunk === null) break
      await this.#take(chunk)
      if (!pipeline.started && !this.#isOver) read = this.#read()
    }
    clearTimeout(commit)
    const end = this.#end
    if (end && end.kind !== 'completed' && !pipeline.started) {
      this.#release()
      return { started: false, end }
    }
    pipeline.committed = true
    this.#send(this.#waiting.splice(0))
    return { started: true, ended: this.#pump(this.#reading ? read : null), arrivals: this }
  }

  /** @param pending the read that was in flight when the answer started. */
  async #pump(pending: Promise<Chunk> | null): Promise<RelayEnd> {
    const { caller } = this.#options
    if (pending) await this.#take(await pending)
    while (!this.#isOver) {
      if (this.#passage) await this.#passOn(this.#passage)
      else if (!this.#leaving && caller.unread >= caller.mostUnread) await caller.someRead()
      else {
        const sending = this.#take(await this.#read())
        // Most chunks are sent at once. Awaiting null would cost a microtask for each.
        if (sending) await sending
      }
    }
    this.#release()
    const end = this.#end ?? { kind: 'client_left' }
    // The close is not awaited: the call is over for the upstream and the ledger, however slowly its caller reads the rest.
    if (end.kind === 'completed') caller.close()
    else if (end.kind === 'failed') caller.fail(end.message, end.failureUnits)
    else caller.abort()
    return end
  }

  /** Lets the runtime pipe the stream as far as possible. */
  async #passOn(passage: NativePassage): Promise<void> {
    const { pipeline, upstream, clock } = this.#options
    if (!pipeline.started) {
      await this.#take(await this.#read())
      return
    }
    if (pipeline.passesUnread && !this.#leaving && this.#upstream.release()) {
      this.#passing = true
      this.#source = await passage.pipe(upstream)
      this.#passing = false
      this.#lastRead = Math.min(passage.lastArrival, clock())
    } else passage.decline()
    this.#passage = null
    if (passage.callerLeft) this.#leave()
  }

  get #isOver(): boolean {
    return this.#clientLeft || this.#options.pipeline.end !== null
  }

  /** Null while the stream lasts. */
  get #end(): RelayEnd<Unit> | null {
    const { end } = this.#options.pipeline
    return this.#clientLeft || (end && this.#leaving) ? { kind: 'client_left' } : end
  }

  /** A failed read is a value, so that no rejection is left unhandled. Not `async`, which takes longer for each event. */
  #read(): Promise<Chunk> {
    this.#reading = true
    return this.#source.read().then(this.#hasRead, this.#hasFailed)
  }

  readonly #hasRead = (chunk: ReadableStreamReadResult<Uint8Array>): Chunk => {
    this.#reading = false
    this.#lastRead = this.#options.clock()
    return chunk
  }

  readonly #hasFailed = (): Chunk => {
    this.#reading = false
    return FAILED_READ
  }

  /** Does not wait for the caller: the relay does before it reads a chunk. @returns a promise where it works in turns. */
  #take(chunk: Chunk): Promise<void> | null {
    const { pipeline } = this.#options
    if (this.#isOver) return null
    if (chunk === FAILED_READ) pipeline.fail('cut', 'The upstream broke off its answer.')
    else if (chunk.done) return this.#sendInTurns(pipeline.close())
    else return this.#sendInTurns(pipeline.push(chunk.value))
    return null
  }

  /** Sends the units of a chunk: most are made at once, those of a long event in turns with other requests. */
  #sendInTurns(slices: Slices<Unit[]>): Promise<void> | null {
    const { done, value } = slices.next()
    if (!done) return runSlices(slices).then((units) => this.#send(units))
    this.#send(value)
    return null
  }

  #send(units: Unit[]): void {
    if (this.#firstEvent === null && this.#options.pipeline.started) this.#firstEvent = this.#lastRead
    if (this.#leaving || this.#clientLeft || units.length === 0) return
    const isGathered = this.#source === this.#upstream && this.#upstream.gathers
    if (this.#options.pipeline.committed) this.#options.caller.send(units, isGathered)
    else this.#waiting.push(...units)
  }

  /** An upstream closes its answer right after its last event. A connection that was read to the end can be used again. */
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

  readonly #leave = (): void => {
    const { caller, pipeline, readOn } = this.#options
    if (this.#passing) {
      this.#passage?.leave()
      return
    }
    if (pipeline.committed) caller.abort()
    if (this.#isOver || this.#leaving) return
    const wait = readOn()
    if (wait > 0) this.#leaving = setTimeout(this.#stop, wait)
    else this.#stop()
  }

  readonly #stop = (): void => {
    if (this.#isOver) return
    this.#clientLeft = true
    this.#stopUpstream()
  }

  #stopUpstream(): void {
    this.#options.upstreamAbort.abort()
    this.#source.cancel().catch(() => {})
  }

  /** Measures the silence of the upstream only while it is read, not while the relay waits for a slow caller. */
  #tick(): void {
    if (this.#isOver) return
    const { caller, pipeline, clock, times, lease } = this.#options
    const now = clock()
    lease.renew(now)
    if (lease.isLost) {
      pipeline.fail('error', 'The call could no longer be accounted for.')
      if (this.#passing) this.#passage?.cutOff()
      else this.#stopUpstream()
      return
    }
    if (pipeline.committed && caller.unread > 0 && now - caller.lastTaken >= LONGEST_UNREAD_MS) this.#leave()
    if (!this.#reading || this.#isOver) return
    if (now - this.#lastRead >= (pipeline.started ? times.betweenEvents : times.firstEvent)) {
      pipeline.fail('timeout', 'The upstream stopped sending.')
      this.#stopUpstream()
    } else if (this.#leaving) {
      return
    } else if (pipeline.committed && caller.unread === 0 && now - caller.lastSent >= times.heartbeat) {
      caller.heartbeat()
    }
  }

  #release(): void {
    clearInterval(this.#watch)
    clearTimeout(this.#leaving)
    const { callerSignal, pipeline } = this.#options
    this.#passage?.release()
    callerSignal.removeEventListener('abort', this.#leave)
    if (this.#end?.kind === 'completed') {
      this.#readRest().catch(() => {})
      return
    }
    pipeline.abandon()
    this.#stopUpstream()
  }
}

type Chunk = ReadableStreamReadResult<Uint8Array> | typeof FAILED_READ
const FAILED_READ = Symbol('a read that failed')
