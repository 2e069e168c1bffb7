import type { LogCursor } from './segment-reader.ts'
import type { StoredEvents } from './stored-events.ts'
import type { SegmentHolder } from './unflushed-events.ts'

/** A comment, which SSE readers ignore. */
export const KEEP_ALIVE = new TextEncoder().encode(': keep-alive\n\n')

interface LogTailOptions {
  stored: StoredEvents
  /** Number of the last event that the client has. */
  after: number
  heartbeatMilliseconds: number
  /** Called once: when the client has everything, has left, or the tail was aborted. */
  ended: () => void
}

/**
 * One reader of a log: the stored events, then live ones. It loads the next segment when its client has taken the last
 * one, so that it holds one segment at most and does not slow down the log or other readers.
 *
 * The stream is the platform's IdentityTransformStream: a write to it waits for the output gate, so that nothing leaves the
 * object before its segment is durable. A ReadableStream made of JavaScript bypasses that gate.
 *
 * A client that leaves is noticed at once while it is written to. At the live edge the platform's streams do not report
 * it (https://github.com/cloudflare/workerd/pull/7298): one of the next two writes fails.
 */
export class LogTail implements SegmentHolder {
  readonly readable: ReadableStream<Uint8Array>
  readonly #options: LogTailOptions
  readonly #stored: StoredEvents
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>
  #cursor: LogCursor | null = null
  #ended = false
  #wake: () => void = () => {}

  constructor(options: LogTailOptions) {
    const { readable, writable } = new IdentityTransformStream()
    this.readable = readable
    this.#options = options
    this.#stored = options.stored
    this.#writer = writable.getWriter()
    this.#writer.closed.catch((reason) => this.abort(reason))
  }

  /** Sends everything until the log ends. Resolves when the tail has ended, for whatever reason. */
  async run(): Promise<void> {
    try {
      if (!this.#ended) this.#cursor = this.#stored.cursorAfter(Math.max(0, this.#options.after))
      while (!this.#ended) {
        const bytes = this.#next() ?? this.#lastEventAgain()
        if (bytes !== null) {
          await this.#writer.write(bytes)
          this.#stored.release(this)
        } else if (this.#stored.closed) {
          this.#end()
          await this.#writer.close()
        } else if (!(await this.#waitForMore())) {
          await this.#writer.write(KEEP_ALIVE)
        }
      }
    } catch (error) {
      this.abort(error)
    }
  }

  /** To be called when segments were written or the log was closed. */
  wake(): void {
    this.#wake()
  }

  /** Ends the tail with an error for its client, which may resume after the last event it has. */
  abort(reason: unknown): void {
    if (this.#ended) return
    this.#end()
    // Without the abort, a write to a client that has left or never reads would wait forever.
    this.#writer.abort(reason).catch(() => {})
  }

  #end(): void {
    if (this.#ended) return
    this.#ended = true
    this.#stored.release(this)
    this.#options.ended()
    this.#wake()
  }

  /** The next whole frames; null at the live edge. */
  #next(): Uint8Array | null {
    return this.#cursor && this.#stored.next(this.#cursor, this)
  }

  /** A client that has every event of a closed log gets the last one again: that event marks the end of the response. */
  #lastEventAgain(): Uint8Array | null {
    const { closed, lastSequence } = this.#stored
    if (!closed || lastSequence === 0 || !this.#cursor || this.#cursor.after < lastSequence) return null
    this.#cursor = this.#stored.cursorAfter(lastSequence - 1)
    return this.#next()
  }

  /** Waits at the live edge. @returns false when a heartbeat is due instead. */
  async #waitForMore(): Promise<boolean> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const woken = await new Promise<boolean>((resolve) => {
      this.#wake = () => resolve(true)
      timer = setTimeout(() => resolve(false), this.#options.heartbeatMilliseconds)
    })
    clearTimeout(timer)
    return woken
  }
}
