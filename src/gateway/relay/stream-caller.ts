import type { Clock } from '../../lib/clock.ts'
import type { Dialect } from '../protocols/protocol.ts'

/** The end of a stream that a caller reads: takes units, and knows how far the caller is behind, and since when. */
export interface StreamCaller<Unit> {
  /** How much was sent that the caller has not taken, in the measure of `mostUnread`. */
  readonly unread: number
  /** Beyond this the upstream is no longer read. */
  readonly mostUnread: number
  /** When something was sent last, in milliseconds since the epoch; at first when the caller began to wait. */
  readonly lastSent: number
  /** When the caller last took something, or could have begun to. */
  readonly lastTaken: number
  /** Resolves when the caller has gone. */
  readonly gone: Promise<void>
  send(units: readonly Unit[]): void
  /** Waits until the caller has taken something, or is gone. */
  someTaken(): Promise<void>
  /** Shows a caller that waits that its stream lives. */
  heartbeat(): void
  /** Tells a failure. @param farewell the upstream's own words for it; null for ours. */
  fail(message: string, farewell: readonly Unit[] | null): void
  close(): void
  /** Ends waits for a caller that is gone. */
  abort(): void
}

/** Bytes that may wait for a slow caller. */
const CALLER_BUFFER_BYTES = 64 * 1024
/**
 * What follows a write sooner than this waits so long for company, in milliseconds: a write costs more than what is done
 * with an event before, and nobody sees a delay of so little.
 */
const QUICK_MS = 4
/** So much is written at once. */
const FULL_BYTES = 16 * 1024

/** A caller that reads bytes over HTTP. */
export class HttpStreamCaller implements StreamCaller<Uint8Array> {
  readonly body: ReadableStream<Uint8Array>
  /** What the caller takes, a second time, for who lends the stream to a pipe; null where that is not intended. */
  readonly taken: ReadableStream<Uint8Array> | null
  readonly mostUnread = CALLER_BUFFER_BYTES
  readonly gone: Promise<void>
  /** Bytes sent so far, but for those that a pipe carried. */
  sent = 0
  lastSent: number
  lastTaken = 0
  #held: Uint8Array[] = []
  #heldBytes = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #writtenAt = Number.NEGATIVE_INFINITY
  /** Bytes written that the caller has not taken. */
  #unwritten = 0
  readonly #writable: WritableStream<Uint8Array>
  #writer: WritableStreamDefaultWriter<Uint8Array>
  #isLent = false
  readonly #clock: Clock
  readonly #dialect: Dialect
  readonly #left = Promise.withResolvers<void>()
  /** Ends the wait for the caller to read. */
  #goOn: () => void = () => {}

  /**
   * @param dialect what the gateway itself says to this caller.
   * @param isLent whether the stream may be lent to a pipe.
   */
  constructor(clock: Clock, dialect: Dialect, isLent = false) {
    const { readable, writable } = new IdentityTransformStream()
    const [body, taken] = isLent ? readable.tee() : [readable, null]
    this.body = body
    this.taken = taken
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

  /** A writer that lets go of its stream says nothing of the caller. */
  #watch(): void {
    this.#writer.closed.catch(() => {
      if (!this.#isLent) this.#left.resolve()
    })
  }

  /** Lends the stream to a pipe, when all that was sent has been taken. Nothing can be sent until it is taken back. */
  lend(): WritableStream<Uint8Array> {
    this.#isLent = true
    this.#writer.releaseLock()
    return this.#writable
  }

  takeBack(): void {
    this.lastSent = this.#clock()
    this.#writer = this.#writable.getWriter()
    this.#isLent = false
    this.#watch()
  }

  /** All that comes together, or soon after the last write, leaves in one. */
  send(units: readonly Uint8Array[]): void {
    for (const { length } of units) this.#heldBytes += length
    this.#held.push(...units)
    // No longer than that, also when the clock has been set back.
    const wait = Math.min(QUICK_MS, QUICK_MS - (this.#clock() - this.#writtenAt))
    if (wait <= 0 || this.#heldBytes >= FULL_BYTES) this.#writeHeld()
    else this.#timer ??= setTimeout(() => this.#writeHeld(), wait)
  }

  #writeHeld(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#heldBytes = 0
    for (const bytes of joinedPieces(this.#held.splice(0))) this.#write(bytes)
  }

  #write(bytes: Uint8Array): void {
    this.lastSent = this.#writtenAt = this.#clock()
    if (this.#unwritten === 0) this.lastTaken = this.lastSent
    this.sent += bytes.length
    this.#unwritten += bytes.length
    this.#writer.write(bytes).then(() => {
      this.#unwritten -= bytes.length
      this.lastTaken = this.#clock()
      this.#goOn()
    }, this.#left.resolve)
  }

  /**
   * The writer's `ready` would tell the same, but workerd replaces that promise whenever a write completes and room is
   * still short, and the one that is awaited is then never resolved.
   */
  someTaken(): Promise<void> {
    return new Promise((resolve) => {
      this.#goOn = resolve
    })
  }

  heartbeat(): void {
    this.#writeHeld()
    this.#write(this.#dialect.heartbeat)
  }

  fail(message: string, farewell: readonly Uint8Array[] | null): void {
    this.send(farewell ?? this.#dialect.failure(message))
    this.close()
  }

  close(): void {
    this.#writeHeld()
    this.#writer.close().catch(() => {})
  }

  /** A write that waits for a caller that is gone would wait forever. */
  abort(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#held = []
    this.#heldBytes = 0
    this.#writer.abort().catch(() => {})
    this.#goOn()
  }
}

/** Pieces of one chunk that lie next to each other are one piece again, without a copy; small ones are copied together. */
function joinedPieces(pieces: readonly Uint8Array[]): Uint8Array[] {
  if (pieces.length <= 1) return [...pieces]
  const joined: Uint8Array[] = []
  for (const piece of pieces) {
    const last = joined.at(-1)
    const isNext = last?.buffer === piece.buffer && last.byteOffset + last.byteLength === piece.byteOffset
    if (last && isNext) {
      joined[joined.length - 1] = new Uint8Array(last.buffer, last.byteOffset, last.length + piece.length)
    } else joined.push(piece)
  }
  return joined.length > 1 ? [copied(joined)] : joined
}

function copied(pieces: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}
