import { BoundedMap } from '../../lib/bounded-map.ts'
import type { Clock } from '../../lib/clock.ts'
import { CredentialWatch } from '../../lib/secret-spellings.ts'
import { type Provider, transportOf } from '../providers/provider.ts'
import type { HttpStreamCaller } from './stream-caller.ts'
import { StreamCopy } from './stream-copy.ts'
import type { StreamPipeline } from './stream-pipeline.ts'
import { LONGEST_UNREAD_MS, type RelayTimes } from './stream-times.ts'

/**
 * Lets the runtime pipe a stream that needs no change: bytes reach the caller without passing through
 * JavaScript, which reads a copy of them now and then. The upstream is branched before the pipe, for the copy and for
 * the rest after a pipe that was stopped; the caller's stream is branched behind it, to measure what the caller has
 * read. A pipe is stopped only in silence: workerd loses the bytes that are in transit in a pipe that is stopped.
 */

interface PassageOptions {
  provider: Provider
  pipeline: StreamPipeline<unknown>
  caller: HttpStreamCaller
  times: RelayTimes
  clock: Clock
  /** Aborts the request to the upstream. */
  upstreamAbort: AbortController
}

const MOST_PROVIDERS = 10_000
/** Ids of providers whose streams are read before they are passed: an answer repeated our credential, or a stream needed an edit. */
const readFirst = new BoundedMap<string, true>(MOST_PROVIDERS)

/** Has all further streams of a provider read before they are passed. */
export const readStreamsOf = ({ id }: Pick<Provider, 'id'>): void => readFirst.set(id, true)

/**
 * Whether a provider's stream may pass unread: it is on a trusted host, its form allows it, no answer of the provider
 * repeated our credential, and no stream of it needed an edit.
 * @param hosts whose streams are trusted not to quote our credential (configuration NATIVE_STREAM_HOSTS).
 */
export function mayPassUnread(provider: Provider, response: Response, hosts: readonly string[]): boolean {
  if (!hosts.includes(new URL(provider.baseUrl).hostname)) return false
  if (transportOf(provider).streamType !== 'text/event-stream') return false
  return !readFirst.get(provider.id) && !response.headers.get('content-encoding')
}

/** The first look at the copy is late: most streams have ended by then, and cost no look. */
const FIRST_LOOK_MS = 500
const BETWEEN_LOOKS_MS = 1_000
/** After this many bytes at one check the next one follows soon: a branch that is not read grows without limit. */
const MANY_BYTES = 512 * 1024
const SOON_MS = 10
/**
 * Distance by which the copy is read ahead of the caller: the pipe's branch holds in memory the bytes that a slow caller has not
 * read.
 */
const AHEAD_BYTES = 64 * 1024
/** Time that an aborted pipe may take to pass on the bytes that had arrived. */
const REST_MS = 1_000
const BLANK_LINE = new TextEncoder().encode('\n\n')

/** The end of a pipe: with its upstream, by a failure, or by `#stop`. */
type Piped = 'ended' | 'failed' | 'stopped'

export class NativePassage {
  /** The caller left during the passage. */
  callerLeft = false
  /** When the upstream was last known to have sent something, in milliseconds since the epoch. */
  lastArrival: number
  readonly #options: PassageOptions
  readonly #readCopy: StreamCopy
  readonly #credential: CredentialWatch
  readonly #stop = new AbortController()
  /** Bytes that the caller was sent before. */
  #before = 0
  #lastRead: number
  #lookTimer: ReturnType<typeof setTimeout> | undefined
  #cutTimer: ReturnType<typeof setTimeout> | undefined
  #looking: Promise<void> = Promise.resolve()
  #isOver = false
  #isSilent = false

  constructor(options: PassageOptions, readCopy: ReadableStream<Uint8Array>) {
    this.#options = options
    this.#readCopy = new StreamCopy(readCopy)
    this.#credential = new CredentialWatch(options.provider.credential)
    this.lastArrival = this.#lastRead = options.clock()
  }

  /**
   * Pipes a stream until it ends, until the gateway has to write into it, or until its caller leaves.
   * @returns the rest of the upstream; everything before it was passed and observed.
   */
  async pipe(upstream: ReadableStream<Uint8Array>): Promise<StreamCopy> {
    const { caller, pipeline } = this.#options
    const [passing, copied] = upstream.tee()
    const copy = new StreamCopy(copied)
    if (pipeline.unfinished.length > 0) {
      this.#credential.look(pipeline.unfinished)
      caller.send([pipeline.unfinished])
    }
    while (caller.unread > 0 && !this.callerLeft) await caller.someRead()
    this.#before = caller.sent
    this.#schedule(copy, FIRST_LOOK_MS)
    const piped = await this.#pipeTo(passing)
    this.#isOver = true
    clearTimeout(this.#lookTimer)
    clearTimeout(this.#cutTimer)
    await this.#looking
    await this.#observeUntil(piped, copy)
    // The copy may be read on: this branch would gather all of it.
    if (this.callerLeft) passing.cancel().catch(() => {})
    this.release()
    caller.reclaim()
    this.#writeDue(piped)
    return copy
  }

  /** The caller has left: stops the pipe at once. */
  leave(): void {
    this.callerLeft = true
    this.#stop.abort()
    this.#options.caller.abort()
  }

  /** Aborts the upstream; what had come is still passed. */
  cutOff(): void {
    this.#options.upstreamAbort.abort()
    clearTimeout(this.#cutTimer)
    this.#cutTimer = setTimeout(() => this.#stop.abort(), REST_MS)
  }

  /**
   * The stream is not piped. If its beginning was edited, as chunks of OpenAI with `"usage":null` are, later streams of the
   * provider are not made ready for a pipe: every write to a branched stream takes longer.
   */
  decline(): void {
    const { pipeline, provider } = this.#options
    if (pipeline.edited) readStreamsOf(provider)
    this.release()
  }

  /** Otherwise the branch behind the pipe would gather everything that the caller takes. */
  release(): void {
    this.#readCopy.cancel().catch(() => {})
  }

  async #pipeTo(passing: ReadableStream<Uint8Array>): Promise<Piped> {
    const { signal } = this.#stop
    const untouched = { preventClose: true, preventAbort: true, preventCancel: true }
    try {
      await passing.pipeTo(this.#options.caller.releaseToPipe(), { ...untouched, signal })
      return 'ended'
    } catch {
      return signal.aborted ? 'stopped' : 'failed'
    }
  }

  #schedule(copy: StreamCopy, wait: number): void {
    const { heartbeat, betweenEvents } = this.#options.times
    const longest = Math.max(10, Math.min(heartbeat, betweenEvents) / 4)
    const look = () => {
      this.#looking = this.#look(copy)
    }
    this.#lookTimer = setTimeout(look, Math.min(wait, longest))
  }

  async #look(copy: StreamCopy): Promise<void> {
    const read = copy.length
    const passed = await this.#passed()
    await this.#observe(copy.arrived(Math.max(0, passed - read) + AHEAD_BYTES))
    if (this.#isOver) return
    const now = this.#options.clock()
    if (copy.length > read) this.lastArrival = now
    this.#schedule(copy, copy.length - read > MANY_BYTES ? SOON_MS : BETWEEN_LOOKS_MS)
    this.#decide(now, passed === copy.length && copy.isCaughtUp && this.#readCopy.isCaughtUp)
  }

  /** Number of bytes of the upstream that the caller has read. */
  async #passed(): Promise<number> {
    const before = this.#readCopy.length
    for await (const _ of this.#readCopy.arrived());
    if (this.#readCopy.length > before) this.#lastRead = this.#options.clock()
    return this.#readCopy.length - this.#before
  }

  /** @param isStill nothing is in transit: the caller has everything that the upstream has sent. */
  #decide(now: number, isStill: boolean): void {
    const { pipeline, times } = this.#options
    const silence = now - this.lastArrival
    if (pipeline.end?.kind === 'failed') this.cutOff()
    else if (!isStill) {
      if (now - this.#lastRead >= LONGEST_UNREAD_MS) this.leave()
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
      this.#credential.look(chunk)
      this.#options.pipeline.observe(chunk)
    }
  }

  /** Observes what was passed since the last look. */
  async #observeUntil(piped: Piped, copy: StreamCopy): Promise<void> {
    if (piped === 'ended') await this.#observe(copy.rest())
    else if (piped === 'stopped' && !this.callerLeft) {
      // Bytes that arrived between the last check and the stop were either passed, or are left in the copy.
      await this.#observe(copy.exactly((await this.#passed()) - copy.length))
    } else {
      await this.#observe(copy.arrived())
      // A pipe that failed while its upstream goes on has lost its caller.
      this.callerLeft ||= copy.isCaughtUp
    }
  }

  /** Writes what is due after the pipe: a heartbeat, or the end of a frame that was cut. */
  #writeDue(piped: Piped): void {
    const { caller, pipeline } = this.#options
    if (this.callerLeft) return
    if (piped === 'stopped') {
      if (this.#isSilent && pipeline.end === null) caller.heartbeat()
    } else if (pipeline.observeTornFrame() && pipeline.end?.kind !== 'completed') {
      // Otherwise the caller would read the next frame as a part of the one that was cut.
      caller.send([BLANK_LINE])
    }
  }

  /** Flags of the call after the stream's end. A stream that needed an edit has later ones of its provider read first. */
  flags(): string[] {
    const { pipeline, provider } = this.#options
    const { found } = this.#credential
    if (pipeline.missedEdit || found) readStreamsOf(provider)
    return found ? ['credential_echoed'] : []
  }
}
