import type { Clock } from '../../lib/clock.ts'
import { withinTime } from '../../lib/time-limit.ts'
import { eventFrame } from '../emitter/event-writer.ts'
import { EventSegments, type Frame } from './event-segments.ts'
import { LogTail } from './log-tail.ts'

/** Readers wait for a coalesced segment no longer than this. */
export const FLUSH_MILLISECONDS = 100
/** A segment is written as soon as it holds so many events, */
export const FLUSH_EVENTS = 16
/** or so many bytes. */
export const FLUSH_BYTES = 32 * 1024

export interface EventLogOptions {
  storage: DurableObjectStorage
  clock: Clock
  /** How long a reader of a silent log waits for a sign of life. */
  heartbeatMilliseconds: number
}

export interface LogEvent {
  /** One more than that of the event before; the first is 1. */
  sequence: number
  type: string
  /** JSON on one line. */
  payload: string
  /** Does not wait for others: the beginning or the end of something. */
  boundary: boolean
}

/**
 * The events of one response as its readers get them, in the SQLite of its object. An event is stored before any reader
 * sees it, as the bytes that every reader gets: what one has seen is what all others see, also after the object died.
 *
 * When a segment is written: at the end of the synchronous run in which a boundary event was appended, in which 16 events
 * or 32 KB were waiting, or in which the last segment was 100 ms old; else 100 ms after the first event that waits. What
 * is appended in one run thus becomes one row, and a response writes 10 rows a second, or one for 16 events, and one more
 * for each run with a boundary.
 *
 * The terminal event and `close` belong into one synchronous run: they are stored together then, and an object that comes
 * to life again finds either both or none.
 */
export class EventLog {
  readonly #segments: EventSegments
  readonly #clock: Clock
  readonly #heartbeatMilliseconds: number
  readonly #tails = new Set<LogTail>()
  #pending: Frame[] = []
  #pendingBytes = 0
  #lastSequence: number
  #lastFlush = Number.NEGATIVE_INFINITY
  /** A flush at the end of this synchronous run is owed. */
  #due = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #failure: { error: unknown } | null = null
  #left = Promise.withResolvers<void>()

  constructor({ storage, clock, heartbeatMilliseconds }: EventLogOptions) {
    this.#segments = new EventSegments(storage)
    this.#clock = clock
    this.#heartbeatMilliseconds = heartbeatMilliseconds
    this.#lastSequence = this.#segments.lastSequence
  }

  /** Number of the last event, whether it is stored yet or not; 0 when there is none. */
  get lastSequence(): number {
    return this.#lastSequence
  }

  get closed(): boolean {
    return this.#segments.closed
  }

  get openTails(): number {
    return this.#tails.size
  }

  /** Since construction. */
  get rowsWritten(): number {
    return this.#segments.rowsWritten
  }

  /**
   * Appends an event, which its readers see when it is stored.
   * @throws when the number is not the next one, the log is closed, the event would not be one frame, or an earlier one
   * could not be stored; nothing has been appended then.
   */
  append({ sequence, type, payload, boundary }: LogEvent): void {
    this.#checkFailure()
    if (this.closed) throw new Error('the event log is closed')
    if (sequence !== this.#lastSequence + 1) {
      throw new RangeError(`event ${sequence} after event ${this.#lastSequence}`)
    }
    const bytes = eventFrame({ type, sequence, payload })
    this.#pending.push({ sequence, bytes })
    this.#pendingBytes += bytes.length
    this.#lastSequence = sequence
    if (boundary || this.#isDue()) this.#flushSoon()
    else this.#timer ??= setTimeout(() => this.#flushQuietly(), FLUSH_MILLISECONDS)
  }

  /** Stores what is pending now, and tells the tails. @throws what SQLite throws; the log takes no more events then. */
  flush(): void {
    this.#checkFailure()
    if (this.#pending.length > 0) this.#write(false)
  }

  /** Ends the log, for good, with what is pending: tails end after the last event. @throws as flush. */
  close(): void {
    this.#checkFailure()
    if (!this.closed) this.#write(true)
  }

  /**
   * A reader's stream of SSE frames: the stored events after a number, then live ones, until the log ends. A reader of a
   * closed log who has its last event already gets that one again.
   * @param after number of the last event that the reader has, 0 for none; beyond the last one it waits for higher ones.
   */
  tail(after: number): ReadableStream<Uint8Array> {
    const tail = new LogTail({
      segments: this.#segments,
      after,
      heartbeatMilliseconds: this.#heartbeatMilliseconds,
      ended: () => {
        this.#tails.delete(tail)
        if (this.#tails.size === 0) this.#left.resolve()
      },
    })
    this.#tails.add(tail)
    if (this.#failure !== null) tail.giveUp(this.#failure.error)
    void tail.run()
    return tail.readable
  }

  /** Resolves when nobody reads any more, or after so many milliseconds. */
  async left(milliseconds: number): Promise<void> {
    if (this.#tails.size === 0) return
    this.#left = Promise.withResolvers()
    await withinTime(this.#left.promise, milliseconds, 'reading to the end').catch(() => {})
  }

  /** The payloads of all stored events, in order: for an object that has come to life again. */
  *payloads(): Generator<string> {
    const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
    let text = ''
    for (const bytes of this.#segments.bodies()) {
      text += decoder.decode(bytes, { stream: true })
      // A payload has no line breaks, so that a blank line ends every frame; the last piece may go on in the next row.
      const frames = text.split('\n\n')
      text = frames.pop() ?? ''
      for (const frame of frames) yield frame.slice(frame.indexOf('\ndata: ') + '\ndata: '.length)
    }
  }

  /** Ends all tails with an error for their readers: there is nothing more to read here. */
  endTails(): void {
    this.#endTails(new Error('the response is gone'))
  }

  /** Deletes everything, stored or pending, and ends all tails. The log is then a new one, open and empty. */
  clear(): void {
    this.endTails()
    this.#takePending()
    this.#segments.clear()
    this.#lastSequence = 0
    this.#lastFlush = Number.NEGATIVE_INFINITY
    this.#failure = null
  }

  #isDue(): boolean {
    return (
      this.#pending.length >= FLUSH_EVENTS ||
      this.#pendingBytes >= FLUSH_BYTES ||
      this.#clock() - this.#lastFlush >= FLUSH_MILLISECONDS
    )
  }

  #flushSoon(): void {
    if (this.#due) return
    this.#due = true
    queueMicrotask(() => {
      if (this.#due) this.#flushQuietly()
    })
  }

  /** Nobody is there to catch what it throws: the next call throws it, and the tails have been told. */
  #flushQuietly(): void {
    try {
      this.flush()
    } catch {}
  }

  #write(closes: boolean): void {
    const frames = this.#takePending()
    try {
      this.#segments.write(frames, closes)
    } catch (error) {
      // Events are missing now that have numbers, so none may follow.
      this.#failure = { error }
      this.#endTails(error)
      throw error
    }
    this.#lastFlush = this.#clock()
    for (const tail of this.#tails) tail.wake()
  }

  #takePending(): Frame[] {
    const frames = this.#pending
    this.#pending = []
    this.#pendingBytes = 0
    this.#due = false
    // A pending timer would keep the object from being put to sleep.
    clearTimeout(this.#timer)
    this.#timer = undefined
    return frames
  }

  #endTails(reason: unknown): void {
    for (const tail of [...this.#tails]) tail.giveUp(reason)
  }

  #checkFailure(): void {
    if (this.#failure !== null) throw this.#failure.error
  }
}
