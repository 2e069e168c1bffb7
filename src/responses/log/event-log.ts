import type { Clock } from '../../lib/clock.ts'
import { withinTime } from '../../lib/time-limit.ts'
import { type EmittedEvent, eventFrame } from '../model/events.ts'
import type { Frames } from '../storage/commit-rows.ts'
import { FlushTimer } from '../storage/flush-timer.ts'
import type { FrameSource } from '../storage/live-parts.ts'
import type { Slice } from '../storage/slice.ts'
import { LogTail } from './log-tail.ts'
import { joined } from './packed-frames.ts'
import { StoredEvents } from './stored-events.ts'
import type { UnflushedEvents } from './unflushed-events.ts'

/**
 * Longest time that readers wait for a coalesced segment.
 * @internal A bound that tests reach.
 */
export const FLUSH_MILLISECONDS = 100
/**
 * A segment is written as soon as it has this many events,
 * @internal A bound that tests reach.
 */
export const FLUSH_EVENTS = 16
/**
 * or this many bytes.
 * @internal A bound that tests reach.
 */
export const FLUSH_BYTES = 32 * 1024

/** Events up to the first delta of a message are stored without any delay while there is a reader. */
const FIRST_EVENTS = 5
/** Longest time that events of a shared object wait which nobody reads. */
const UNREAD_FLUSH_MILLISECONDS = 1_000

interface EventLogOptions {
  slice: Slice
  /** Shared by the logs of an object. */
  unflushed: UnflushedEvents
  clock: Clock
  /** Time between two comments to the readers of a silent log. */
  heartbeatMilliseconds: number
}

/**
 * The events of one response in the SQLite of its object, as the frames that every reader gets. An event is stored before
 * any reader gets it, so that all readers get the same events, also after the object has restarted.
 *
 * A segment is written at the end of a synchronous run in which one of these holds, otherwise 100 ms after the first
 * pending event:
 * - a boundary event was appended
 * - 16 events or 32 KB are pending
 * - the last segment is 100 ms old
 *
 * Events that are appended in one run share a row. A response thus writes 10 rows a second, or one for 16 events, and one
 * more for each run with a boundary.
 *
 * In an object of many responses, all logs are stored together, in a commit, whenever one of them is due, and 100 ms after the
 * last commit. Events that nobody reads wait for up to a second.
 *
 * The terminal event and `close` belong in one synchronous run: they are stored together, and a restarted object finds
 * both or neither.
 */
export class EventLog implements FrameSource {
  readonly #options: EventLogOptions
  readonly #tails = new Set<LogTail>()
  readonly #stored: StoredEvents
  readonly #timer = new FlushTimer(() => this.#tryFlush())
  #pending: Frames[] = []
  #pendingBytes = 0
  #lastSequence: number
  #lastFlush = Number.NEGATIVE_INFINITY
  /** What a commit is about to store. */
  #taken: Frames | null = null
  #failure: { error: unknown } | null = null
  #allTailsEnded = Promise.withResolvers<void>()

  constructor(options: EventLogOptions) {
    this.#options = options
    this.#stored = new StoredEvents(options.slice, options.unflushed)
    this.#lastSequence = this.#stored.lastSequence
    if (options.slice.live) options.slice.live.frames = this
  }

  /** Number of the last event, pending or stored; 0 when there is none. */
  get lastSequence(): number {
    return this.#lastSequence
  }

  get closed(): boolean {
    return this.#stored.closed
  }

  get openTails(): number {
    return this.#tails.size
  }

  /** Number of rows written since construction. */
  get rowsWritten(): number {
    return this.#stored.rowsWritten
  }

  /**
   * Appends an event. Readers get it when it is stored.
   * @throws without appending it: when the number is not the next one, the log is closed, the event is not one frame, or
   * an earlier event could not be stored.
   */
  append({ sequence, type, payload, boundary }: EmittedEvent): void {
    this.#checkFailure()
    if (this.closed) throw new Error('the event log is closed')
    if (sequence !== this.#lastSequence + 1) {
      throw new RangeError(`event ${sequence} after event ${this.#lastSequence}`)
    }
    const bytes = eventFrame({ type, sequence, payload })
    this.#pending.push({ first: sequence, last: sequence, bytes })
    this.#pendingBytes += bytes.length
    this.#lastSequence = sequence
    const left = boundary ? 0 : this.#timeLeft()
    const { live } = this.#options.slice
    const timer = live?.group ?? this.#timer
    // In an object of many responses, events after the first ones wait for what else happens in this turn of the event loop.
    if (left <= 0 && (!live || sequence <= FIRST_EVENTS)) timer.soon()
    else timer.within(left, this.#options.clock())
  }

  /** Stores the pending events and wakes the readers. @throws the error of SQLite; every later call throws it too. */
  flush(): void {
    this.#checkFailure()
    if (this.#pending.length === 0) return
    const { live } = this.#options.slice
    if (live) live.commit()
    else this.#write(false)
  }

  /** Stores the pending events and ends the log: readers end after the last event. @throws as flush. */
  close(): void {
    this.#checkFailure()
    if (!this.closed) this.#write(true)
  }

  /**
   * A stream of SSE frames: the stored events after a number, then live ones, until the log ends. A client that has the
   * last event of a closed log gets that one again.
   * @param after number of the last event that the client has, 0 for none; it may be higher than the last one.
   */
  tail(after: number): ReadableStream<Uint8Array> {
    const tail = new LogTail({
      stored: this.#stored,
      after,
      heartbeatMilliseconds: this.#options.heartbeatMilliseconds,
      ended: () => {
        this.#tails.delete(tail)
        if (this.#tails.size === 0) this.#allTailsEnded.resolve()
      },
    })
    this.#tails.add(tail)
    if (this.#failure !== null) tail.abort(this.#failure.error)
    else if (this.#pending.length > 0) this.#options.slice.live?.group.soon()
    void tail.run()
    return tail.readable
  }

  /** Resolves when there is no reader any more, or after so many milliseconds. */
  async waitForReaders(milliseconds: number): Promise<void> {
    if (this.#tails.size === 0) return
    this.#allTailsEnded = Promise.withResolvers()
    await withinTime(this.#allTailsEnded.promise, milliseconds, 'reading to the end').catch(() => {})
  }

  /** The payloads of all stored events, in order. */
  *payloads(): Generator<string> {
    const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
    let text = ''
    for (const bytes of this.#stored.bodies()) {
      text += decoder.decode(bytes, { stream: true })
      // A blank line ends every frame, since payloads have no line breaks. The last frame may continue in the next row.
      const frames = text.split('\n\n')
      text = frames.pop() ?? ''
      for (const frame of frames) yield frame.slice(frame.indexOf('\ndata: ') + '\ndata: '.length)
    }
  }

  /** Ends all readers with an error. */
  endTails(): void {
    this.#abortTails(new Error('the response is gone'))
  }

  /**
   * Removes the events after a number, none of which a reader may have got.
   * @throws RangeError if there is no event of that number, or it is larger than a row. Then nothing is removed.
   */
  cut(after: number): void {
    this.#stored.cut(after)
    this.#takePending()
    this.#lastSequence = after
  }

  /** Continues after the last stored event: pending events and a failure to store are dropped, and all readers ended. */
  reopen(): void {
    this.endTails()
    this.#takePending()
    this.#lastSequence = this.#stored.lastSequence
    this.#lastFlush = Number.NEGATIVE_INFINITY
    this.#failure = null
  }

  get keptBytes(): number {
    return this.#stored.keptBytes
  }

  take(): Frames | null {
    this.#taken = null
    if (this.#pending.length === 0 || this.#failure !== null) return null
    if (!this.#stored.fitsCommit(this.#pendingBytes)) {
      this.#write(false)
      return null
    }
    this.#taken = joined(this.#takePending(), 0)
    return this.#taken
  }

  stored(): void {
    if (this.#taken) this.#stored.keep(this.#taken)
    this.#taken = null
    this.#wakeTails()
  }

  storeAlone(): void {
    const taken = this.#taken
    this.#taken = null
    if (taken) this.#store([taken], false)
  }

  spill(): void {
    this.#stored.spill()
  }

  drop(): void {
    this.#stored.drop()
  }

  /** Milliseconds until the pending events have to be stored. */
  #timeLeft(): number {
    const { slice, clock } = this.#options
    const isRead = !slice.live || this.#tails.size > 0
    if (this.#pendingBytes >= FLUSH_BYTES || (isRead && this.#pending.length >= FLUSH_EVENTS)) return 0
    if (!isRead) return UNREAD_FLUSH_MILLISECONDS
    const past = clock() - (slice.live?.group.lastCommit ?? this.#lastFlush)
    if (past >= FLUSH_MILLISECONDS) return 0
    return slice.live ? FLUSH_MILLISECONDS - past : FLUSH_MILLISECONDS
  }

  /** Without a caller that could handle the error: it has ended the readers, and the next call throws it. */
  #tryFlush(): void {
    try {
      this.flush()
    } catch {}
  }

  #write(closes: boolean): void {
    this.#store(this.#takePending(), closes)
  }

  #store(frames: readonly Frames[], closes: boolean): void {
    try {
      this.#stored.write(frames, closes)
    } catch (error) {
      // Numbered events are missing, so that none may follow.
      this.#failure = { error }
      this.#abortTails(error)
      throw error
    }
    this.#wakeTails()
  }

  #wakeTails(): void {
    this.#lastFlush = this.#options.clock()
    for (const tail of this.#tails) tail.wake()
  }

  #takePending(): Frames[] {
    const frames = this.#pending
    this.#pending = []
    this.#pendingBytes = 0
    this.#timer.cancel()
    return frames
  }

  #abortTails(reason: unknown): void {
    for (const tail of [...this.#tails]) tail.abort(reason)
  }

  #checkFailure(): void {
    if (this.#failure !== null) throw this.#failure.error
  }
}
