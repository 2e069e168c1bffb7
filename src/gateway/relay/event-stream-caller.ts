import type { Clock } from '../../lib/clock.ts'
import { TurnFailure } from '../calls/turn-failure.ts'
import type { ModelEvent } from '../translation/model-events.ts'
import type { StreamCaller } from './stream-caller.ts'

/** Batches that may wait for their reader until the upstream is no longer read. */
const MOST_UNREAD_BATCHES = 64

/** A caller in this isolate that takes the events of a turn, a batch for each chunk of the upstream. */
export class EventStreamCaller implements StreamCaller<ModelEvent>, AsyncIterable<ModelEvent[]> {
  readonly mostUnread = MOST_UNREAD_BATCHES
  readonly gone: Promise<void>
  lastSent: number
  lastTaken: number
  readonly #clock: Clock
  readonly #left = Promise.withResolvers<void>()
  #batches: ModelEvent[][] = []
  #failure: Error | null = null
  #closed = false
  /** Wakes the reader. */
  #wakeReader: () => void = () => {}
  /** Ends the sender's wait for the reader. */
  #wakeSender: () => void = () => {}

  constructor(clock: Clock) {
    this.#clock = clock
    this.lastSent = this.lastTaken = clock()
    this.gone = this.#left.promise
  }

  get unread(): number {
    return this.#batches.length
  }

  send(units: readonly ModelEvent[]): void {
    if (units.length === 0) return
    this.lastSent = this.#clock()
    if (this.#batches.length === 0) this.lastTaken = this.lastSent
    this.#batches.push([...units])
    this.#wakeReader()
  }

  someRead(): Promise<void> {
    return new Promise((resolve) => {
      this.#wakeSender = resolve
    })
  }

  /** No heartbeat is sent: the response object has heartbeats of its own for its readers. */
  heartbeat(): void {
    this.lastSent = this.#clock()
  }

  fail(message: string): void {
    this.#failure = new TurnFailure(message, { status: null, code: 'stream_error' })
    this.close()
  }

  close(): void {
    this.#closed = true
    this.#wakeReader()
  }

  abort(): void {
    this.close()
    this.#wakeSender()
  }

  /** To be iterated once. Ending early means that the caller leaves. @throws TurnFailure after the last batch of a stream that failed. */
  async *[Symbol.asyncIterator](): AsyncGenerator<ModelEvent[]> {
    try {
      for (;;) {
        const batch = this.#batches.shift()
        if (batch) {
          this.lastTaken = this.#clock()
          this.#wakeSender()
          yield batch
        } else if (this.#closed) {
          if (this.#failure) throw this.#failure
          return
        } else await new Promise<void>((resolve) => (this.#wakeReader = resolve))
      }
    } finally {
      this.#left.resolve()
    }
  }
}
