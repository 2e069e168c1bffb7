import type { Clock } from '../../lib/clock.ts'
import type { CredentialWatch } from './credential-spellings.ts'
import type { HttpStreamCaller } from './stream-caller.ts'
import { StreamCopy } from './stream-copy.ts'
import type { StreamPipeline } from './stream-pipeline.ts'
import { LONGEST_UNTAKEN_MS, type RelayTimes } from './stream-times.ts'

/**
 * Lets the runtime carry a stream that nothing has to change (design 4a): bytes reach the caller without passing
 * through JavaScript, which reads a copy of them now and then. The upstream is branched before the pipe, for the copy
 * and for what follows if the pipe is stopped; the caller's stream is branched behind it, to know what the caller has
 * taken. A pipe is only stopped in silence: workerd loses bytes that are on their way in it.
 */

export interface PassageOptions {
  pipeline: StreamPipeline<Uint8Array>
  caller: HttpStreamCaller
  credential: CredentialWatch
  times: RelayTimes
  clock: Clock
  /** Aborts the request to the upstream. */
  upstreamAbort: AbortController
}

/** The first look at the copy comes late: most streams are over by then, and cost none. */
const FIRST_LOOK_MS = 500
const BETWEEN_LOOKS_MS = 1_000
/** After so many bytes in one look the next one comes at once: branches that are not read grow without limit. */
const MANY_BYTES = 512 * 1024
const SOON_MS = 10
/** How far the copy may be read ahead of the caller: what is read beyond waits in memory for a slow one. */
const AHEAD_BYTES = 64 * 1024
/** How long a pipe that was cut off may take to hand over what had come. */
const REST_MS = 1_000
const BLANK_LINE = new TextEncoder().encode('\n\n')

/** How a pipe ended: with its upstream, with a failure, or by us. */
type Piped = 'ended' | 'failed' | 'stopped'

export class NativePassage {
  /** The caller left while its stream flowed. */
  callerLeft = false
  /** When the upstream was last known to have sent something, in milliseconds since the epoch. */
  lastArrival: number
  readonly #options: PassageOptions
  readonly #taken: StreamCopy
  readonly #stop = new AbortController()
  /** What the caller was sent before. */
  #before = 0
  #lastTaken: number
  #lookTimer: ReturnType<typeof setTimeout> | undefined
  #cutTimer: ReturnType<typeof setTimeout> | undefined
  #looking: Promise<void> = Promise.resolve()
  #isOver = false
  #isSilent = false

  constructor(options: PassageOptions, taken: ReadableStream<Uint8Array>) {
    this.#options = options
    this.#taken = new StreamCopy(taken)
    this.lastArrival = this.#lastTaken = options.clock()
  }

  /**
   * Carries a stream until it ends, or something has to be said in it, or its caller leaves.
   * @returns where to read on; all that comes before has left, and was observed.
   */
  async carry(upstream: ReadableStream<Uint8Array>): Promise<StreamCopy> {
    const { caller, pipeline } = this.#options
    const [passing, copied] = upstream.tee()
    const copy = new StreamCopy(copied)
    if (pipeline.unfinished.length > 0) caller.send([pipeline.unfinished])
    while (caller.unread > 0 && !this.callerLeft) await caller.someTaken()
    this.#before = caller.sent
    this.#schedule(copy, FIRST_LOOK_MS)
    const piped = await this.#pipe(passing)
    this.#isOver = true
    clearTimeout(this.#lookTimer)
    clearTimeout(this.#cutTimer)
    await this.#looking
    await this.#observeUntil(piped, copy)
    this.release()
    caller.takeBack()
    this.#speak(piped)
    return copy
  }

  /** The caller has left: nothing more is for it. */
  leave(): void {
    this.callerLeft = true
    this.#stop.abort()
    this.#options.caller.abort()
  }

  /** Ends the stream once all that has come has left. */
  cutOff(): void {
    this.#options.upstreamAbort.abort()
    clearTimeout(this.#cutTimer)
    this.#cutTimer = setTimeout(() => this.#stop.abort(), REST_MS)
  }

  /** Without it the branch behind the pipe would gather all that the caller takes. */
  release(): void {
    this.#taken.cancel().catch(() => {})
  }

  async #pipe(passing: ReadableStream<Uint8Array>): Promise<Piped> {
    const { signal } = this.#stop
    const untouched = { preventClose: true, preventAbort: true, preventCancel: true }
    try {
      await passing.pipeTo(this.#options.caller.lend(), { ...untouched, signal })
      return 'ended'
    } catch {
      return signal.aborted ? 'stopped' : 'failed'
    }
  }

  #schedule(copy: StreamCopy, wait: number): void {
    const { heartbeat, betweenEvents } = this.#options.times
    const longest = Math.max(10, Math.min(heartbeat, betweenEvents) / 4)
    const look = () => {
      this.#looking = this.#look(copy, wait)
    }
    this.#lookTimer = setTimeout(look, Math.min(wait, longest))
  }

  async #look(copy: StreamCopy, waited: number): Promise<void> {
    const read = copy.length
    const passed = await this.#passed()
    await this.#observe(copy.arrived(Math.max(0, passed - read) + AHEAD_BYTES))
    if (this.#isOver) return
    const now = this.#options.clock()
    if (copy.length > read) this.lastArrival = now
    const isMuch = copy.length - read > MANY_BYTES
    this.#schedule(copy, isMuch ? SOON_MS : Math.min(BETWEEN_LOOKS_MS, 2 * Math.max(waited, FIRST_LOOK_MS)))
    this.#decide(now, passed === copy.length && copy.isCaughtUp && this.#taken.isCaughtUp)
  }

  /** How much of the upstream's bytes the caller has taken. */
  async #passed(): Promise<number> {
    const before = this.#taken.length
    for await (const _ of this.#taken.arrived());
    if (this.#taken.length > before) this.#lastTaken = this.#options.clock()
    return this.#taken.length - this.#before
  }

  /** @param isStill nothing is on its way: the caller has all that the upstream has sent. */
  #decide(now: number, isStill: boolean): void {
    const { pipeline, times } = this.#options
    const silence = now - this.lastArrival
    if (pipeline.end?.kind === 'failed') this.cutOff()
    else if (!isStill) {
      if (now - this.#lastTaken >= LONGEST_UNTAKEN_MS) this.leave()
    } else if (pipeline.end) this.#stop.abort()
    else if (silence >= times.betweenEvents) {
      pipeline.fail('timeout', 'The upstream stopped sending.')
      this.cutOff()
    } else if (silence >= times.heartbeat && pipeline.unfinished.length === 0) {
      this.#isSilent = true
      this.#stop.abort()
    }
  }

  async #observe(chunks: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const chunk of chunks) {
      this.#options.credential.look(chunk)
      this.#options.pipeline.observe(chunk)
    }
  }

  /** Observes what has left and was not looked at yet. */
  async #observeUntil(piped: Piped, copy: StreamCopy): Promise<void> {
    if (piped === 'ended') await this.#observe(copy.rest())
    else if (piped === 'stopped' && !this.callerLeft) {
      // What came between the last look and the stop was either passed, or is still to be sent.
      await this.#observe(copy.exactly((await this.#passed()) - copy.length))
    } else {
      await this.#observe(copy.arrived())
      // A pipe that failed while its upstream lives has lost its caller.
      this.callerLeft ||= copy.isCaughtUp
    }
  }

  /** Says what is due in a stream that no longer flows. */
  #speak(piped: Piped): void {
    const { caller, pipeline } = this.#options
    if (this.callerLeft) return
    if (piped === 'stopped') {
      if (this.#isSilent && pipeline.end === null) caller.heartbeat()
    } else if (pipeline.observeTornFrame() && pipeline.end?.kind !== 'completed') {
      // Ends the frame that was cut, so that the next one is a frame of its own.
      caller.send([BLANK_LINE])
    }
  }
}
