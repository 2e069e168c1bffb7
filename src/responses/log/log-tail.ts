import { joinBytes } from '../../lib/byte-edits.ts'
import { type EventSegments, SMALL_SEGMENT_BYTES } from './event-segments.ts'
import type { SegmentHolder } from './held-segments.ts'

/** A comment, which readers ignore. */
export const KEEP_ALIVE = new TextEncoder().encode(': keep-alive\n\n')
const LINE_FEED = 0x0a
/** `event`, `id`, `data` and the blank line. */
const LINES_PER_FRAME = 4

export interface LogTailOptions {
  segments: EventSegments
  /** Number of the last event that the reader has. */
  after: number
  heartbeatMilliseconds: number
  /** Called once, when the reader has everything, has gone or is sent away. */
  ended: () => void
}

/**
 * One reader's way through a log: what is stored, then what comes. It reads the next segment only when the reader has
 * taken the last one, so it holds a segment at most and waits for nobody but its reader.
 *
 * The stream is the platform's own and not a ReadableStream made of JavaScript: a write to it waits for the output gate,
 * so nothing leaves the object before the segment it comes from is durable. A stream of JavaScript goes past that gate.
 *
 * A reader that leaves is noticed at once while it is being written to. At the live edge no stream of the platform tells
 * (https://github.com/cloudflare/workerd/pull/7298), so there one of the next two events or heartbeats finds out.
 */
export class LogTail implements SegmentHolder {
  readonly readable: ReadableStream<Uint8Array>
  readonly #segments: EventSegments
  readonly #heartbeatMilliseconds: number
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>
  readonly #onEnd: () => void
  #after: number
  /** Position of the last segment that was taken. */
  #position = -1
  #ended = false
  #wake: () => void = () => {}

  constructor({ segments, after, heartbeatMilliseconds, ended }: LogTailOptions) {
    const { readable, writable } = new IdentityTransformStream()
    this.readable = readable
    this.#segments = segments
    this.#heartbeatMilliseconds = heartbeatMilliseconds
    this.#writer = writable.getWriter()
    this.#onEnd = ended
    this.#after = Math.max(0, after)
    this.#writer.closed.catch((reason) => this.giveUp(reason))
  }

  /** Sends everything until the log ends. Resolves when the tail has ended, in whatever way. */
  async run(): Promise<void> {
    try {
      if (!this.#ended) this.#position = this.#segments.positionBefore(this.#after + 1)
      while (!this.#ended) {
        const bytes = this.#take() ?? this.#takeLastAgain()
        if (bytes !== null) {
          await this.#writer.write(bytes)
          this.#segments.release(this)
        } else if (this.#segments.closed) {
          this.#end()
          await this.#writer.close()
        } else if (!(await this.#moreCame())) {
          await this.#writer.write(KEEP_ALIVE)
        }
      }
    } catch (error) {
      this.giveUp(error)
    }
  }

  /** Looks for more: something was written, or the log has ended. */
  wake(): void {
    this.#wake()
  }

  /** Ends the tail with an error for its reader, who may take up again after the last event it has. */
  giveUp(reason: unknown): void {
    if (this.#ended) return
    this.#end()
    // A write that waits for a reader who is gone, or who never reads, would wait forever.
    this.#writer.abort(reason).catch(() => {})
  }

  #end(): void {
    if (this.#ended) return
    this.#ended = true
    this.#segments.release(this)
    this.#onEnd()
    this.#wake()
  }

  /** The next whole frames: a large segment by itself, or small ones up to the size of a small one; null if there are none. */
  #take(): Uint8Array | null {
    const pieces: Uint8Array[] = []
    let size = 0
    while (size < SMALL_SEGMENT_BYTES) {
      const segment = this.#segments.after(this.#position, this)
      if (segment === null) break
      if (segment.last > this.#after) {
        const skipped = Math.max(0, this.#after + 1 - segment.first)
        const bytes = skipped === 0 ? segment.bytes : segment.bytes.subarray(endOf(segment.bytes, skipped))
        if (size > 0 && size + bytes.length > SMALL_SEGMENT_BYTES) break
        pieces.push(bytes)
        size += bytes.length
      }
      this.#position = segment.position
    }
    return size === 0 ? null : joinBytes(pieces)
  }

  /** A reader who has everything gets the last event of an ended log again: it is told that this was the end. */
  #takeLastAgain(): Uint8Array | null {
    const { closed, lastSequence } = this.#segments
    if (!closed || lastSequence === 0 || this.#after < lastSequence) return null
    this.#after = lastSequence - 1
    this.#position = this.#segments.positionBefore(lastSequence)
    return this.#take()
  }

  /** Waits at the live edge. @returns false when it is time for a heartbeat instead. */
  async #moreCame(): Promise<boolean> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const came = await new Promise<boolean>((resolve) => {
      this.#wake = () => resolve(true)
      timer = setTimeout(() => resolve(false), this.#heartbeatMilliseconds)
    })
    clearTimeout(timer)
    return came
  }
}

/** Where the first so many frames of a segment end. */
function endOf(bytes: Uint8Array, frames: number): number {
  let end = 0
  for (let lines = frames * LINES_PER_FRAME; lines > 0; lines -= 1) end = bytes.indexOf(LINE_FEED, end) + 1
  return end
}
