import { joinBytes } from '../../lib/byte-edits.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Dialect } from '../protocols/protocol.ts'
import { GATHER_MS } from './stream-times.ts'

/** The sending end of a caller's stream. It measures how far the caller is behind, and since when. */
export interface StreamCaller<Unit> {
  /** Amount that was sent and that the caller has not read, in the unit of `mostUnread`. */
  readonly unread: number
  /** Up to this the upstream is read on. */
  readonly mostUnread: number
  /** When something was last sent, in milliseconds since the epoch; at first when the caller began to wait. */
  readonly lastSent: number
  /** When the caller last took something, or was first able to. */
  readonly lastTaken: number
  /** Resolves when the caller has gone. */
  readonly gone: Promise<void>
  /** @param gathered whether the units have waited for others already, and leave at once. */
  send(units: readonly Unit[], gathered?: boolean): void
  /** Waits until the caller has read something, or is gone. */
  someRead(): Promise<void>
  /** Keeps a silent connection open. */
  heartbeat(): void
  /** Ends the stream with a failure. @param failureUnits the upstream's own units for it; else the caller's dialect expresses it. */
  fail(message: string, failureUnits?: readonly Unit[]): void
  close(): void
  /** Ends all waits for a caller that has gone. */
  abort(): void
}

/** Bytes that may wait for a slow caller. */
const CALLER_BUFFER_BYTES = 64 * 1024
/**
 * Milliseconds after a write within which further units are gathered for the next one: a write costs more than all
 * processing of an event, and a delay this short is not noticed. A model that writes fewer than a hundred events a second
 * is not delayed.
 */
const QUICK_MS = GATHER_MS
/** This much is written at once. */
const FULL_BYTES = 16 * 1024

/** A caller that reads bytes over HTTP. */
export class HttpStreamCaller implements StreamCaller<Uint8Array> {
  readonly body: ReadableStream<Uint8Array>
  /** A copy of what the caller reads, for the native passage; null where no pipe may write to the stream. */
  readonly readCopy: ReadableStream<Uint8Array> | null
  readonly mostUnread = CALLER_BUFFER_BYTES
  readonly gone: Promise<void>
  /** Bytes sent so far, without those that a pipe wrote. */
  sent = 0
  lastSent: number
  lastTaken = 0
  #held: Uint8Array[] = []
  #heldBytes = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #writtenAt = Number.NEGATIVE_INFINITY
  /** Bytes written that the caller has not read. */
  #unwritten = 0
  readonly #writable: WritableStream<Uint8Array>
  #writer: WritableStreamDefaultWriter<Uint8Array>
  #isPiped = false
  readonly #clock: Clock
  readonly #dialect: Dialect
  readonly #left = Promise.withResolvers<void>()
  /** Ends the wait until the caller reads. */
  #wakeSender: () => void = () => {}

  /**
   * @param dialect of the gateway's own frames. @param canBePiped whether a pipe may write to the stream.
   */
  constructor(clock: Clock, dialect: Dialect, canBePiped = false) {
    const { readable, writable } = new IdentityTransformStream()
    const [body, readCopy] = canBePiped ? readable.tee() : [readable, null]
    this.body = body
    this.readCopy = readCopy
    this.#clock = clock
    this.#dialect = dialect
    this.lastSent = clock()
    this.#writable = writable
    this.#writer = writable.getWriter()
    this.gone = this.#left.promise
    this.#watch()
  }

  get unread(): number {
    return this.#unwritten + this.#heldBytes
  }

  /** The promise rejects as well when the writer releases its lock, which is no sign of the caller. */
  #watch(): void {
    this.#writer.closed.catch(() => {
      if (!this.#isPiped) this.#left.resolve()
    })
  }

  /** Lets a pipe write to the stream. The caller must have read all that was sent; nothing can be sent until `reclaim`. */
  releaseToPipe(): WritableStream<Uint8Array> {
    this.#isPiped = true
    this.#writer.releaseLock()
    return this.#writable
  }

  reclaim(): void {
    this.lastSent = this.#clock()
    this.#writer = this.#writable.getWriter()
    this.#isPiped = false
    this.#watch()
  }

  /** Units that come together leave in one write, and so do those that come soon after it, unless they were gathered before. */
  send(units: readonly Uint8Array[], gathered = false): void {
    for (const unit of units) {
      this.#heldBytes += unit.length
      this.#held.push(unit)
    }
    // The wait is at most QUICK_MS, also when the clock has been set back.
    const wait = gathered ? 0 : Math.min(QUICK_MS, QUICK_MS - (this.#clock() - this.#writtenAt))
    if (wait <= 0 || this.#heldBytes >= FULL_BYTES) this.#writeHeld()
    else this.#timer ??= setTimeout(() => this.#writeHeld(), wait)
  }

  #writeHeld(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#heldBytes = 0
    if (this.#held.length > 0) this.#write(joined(this.#held.splice(0)))
  }

  #write(bytes: Uint8Array): void {
    this.lastSent = this.#writtenAt = this.#clock()
    if (this.#unwritten === 0) this.lastTaken = this.lastSent
    this.sent += bytes.length
    this.#unwritten += bytes.length
    this.#writer.write(bytes).then(() => {
      this.#unwritten -= bytes.length
      this.lastTaken = this.#clock()
      this.#wakeSender()
    }, this.#left.resolve)
  }

  /**
   * The writer's `ready` is not used: workerd replaces that promise when a write completes and room is still short, and the
   * promise that was awaited then never resolves.
   */
  someRead(): Promise<void> {
    return new Promise((resolve) => {
      this.#wakeSender = resolve
    })
  }

  heartbeat(): void {
    this.#writeHeld()
    this.#write(this.#dialect.heartbeat)
  }

  fail(message: string, failureUnits: readonly Uint8Array[] = this.#dialect.failure(message)): void {
    this.send(failureUnits)
    this.close()
  }

  close(): void {
    this.#writeHeld()
    this.#writer.close().catch(() => {})
  }

  /** A write that waits for a caller that has gone would wait forever. */
  abort(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#held = []
    this.#heldBytes = 0
    this.#writer.abort().catch(() => {})
    this.#wakeSender()
  }
}

/** All pieces as one; without a copy where they lie next to each other in one buffer. */
function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const [first = new Uint8Array()] = pieces
  let length = 0
  for (const piece of pieces) {
    if (piece.buffer !== first.buffer || piece.byteOffset !== first.byteOffset + length) {
      return joinBytes(pieces)
    }
    length += piece.length
  }
  return new Uint8Array(first.buffer, first.byteOffset, length)
}
