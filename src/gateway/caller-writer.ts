import type { Clock } from '../lib/clock.ts'

/** The caller's end of a stream: knows how much the caller has not read yet, and since when. */
export class CallerWriter {
  readonly body: ReadableStream<Uint8Array>
  /** Bytes written that the caller has not read. */
  unread = 0
  lastWrite: number
  /** When the caller last took something, or could have begun to. */
  lastTaken = 0
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>
  readonly #clock: Clock
  readonly #left: () => void
  /** Ends the wait for the caller to read. */
  #goOn: () => void = () => {}

  /**
   * @param waitingSince when the caller began to wait for a first byte.
   * @param left called when the caller is found to have gone, maybe more than once.
   */
  constructor(clock: Clock, waitingSince: number, left: () => void) {
    const { readable, writable } = new IdentityTransformStream()
    this.body = readable
    this.#clock = clock
    this.#left = left
    this.lastWrite = waitingSince
    this.#writer = writable.getWriter()
    this.#writer.closed.catch(left)
  }

  send(bytes: Uint8Array): void {
    this.lastWrite = this.#clock()
    if (this.unread === 0) this.lastTaken = this.lastWrite
    this.unread += bytes.length
    this.#writer.write(bytes).then(() => {
      this.unread -= bytes.length
      this.lastTaken = this.#clock()
      this.#goOn()
    }, this.#left)
  }

  /**
   * Waits until the caller has read something, or is gone. The writer's `ready` would say the same, but workerd replaces
   * that promise whenever a write completes and room is still short, and the one that somebody waits for is then never
   * resolved.
   */
  someRead(): Promise<void> {
    return new Promise((resolve) => {
      this.#goOn = resolve
    })
  }

  close(): void {
    this.#writer.close().catch(() => {})
  }

  /** A write that waits for a caller that is gone would wait forever. */
  abort(): void {
    this.#writer.abort().catch(() => {})
    this.#goOn()
  }
}
