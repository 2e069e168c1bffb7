import { joinBytes } from '../lib/byte-edits.ts'
import { KEEP_ALIVE } from '../responses/log/log-tail.ts'

/** Opens a stream of SSE frames after an event number; null when no further events can follow. */
export type OpenTail = (after: number) => Promise<ReadableStream<Uint8Array> | null>

/**
 * Forwards the frames of a response's object; frames that arrive together are one write. A tail that fails because the
 * object was restarted is opened once more, after the last event that was sent. A second failure ends the answer with an
 * error, so that no client takes it for the end.
 * @param after the number that the first tail was opened after. @param reopen opens a tail on a fresh stub.
 */
export function tailFrames(
  first: ReadableStream<Uint8Array>,
  after: number,
  reopen: OpenTail,
): ReadableStream<Uint8Array> {
  const follower = new TailFollower(first, after, reopen)
  return new ReadableStream(
    {
      async pull(controller) {
        const bytes = await follower.next()
        if (bytes === null) controller.close()
        else controller.enqueue(bytes)
      },
      cancel: (reason) => follower.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

/**
 * A stream of frames that do not exist yet. Until they do, comments keep the connection open.
 * @param coming if it fails, the answer ends with an error. @param milliseconds between two comments.
 */
export function awaitedFrames(
  coming: Promise<ReadableStream<Uint8Array>>,
  milliseconds: number,
): ReadableStream<Uint8Array> {
  const left = Promise.withResolvers<'left'>()
  const arrived = coming.then((stream) => stream.getReader())
  // The promise can fail while no pull awaits it.
  arrived.catch(() => {})
  return new ReadableStream(
    {
      async pull(controller) {
        const reader = await oneOf<Awaited<typeof arrived> | 'left'>([arrived, left.promise], milliseconds)
        if (reader === 'left') return
        if (reader === null) return controller.enqueue(KEEP_ALIVE)
        const { done, value } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel(reason) {
        left.resolve('left')
        arrived.then((reader) => reader.cancel(reason)).catch(() => {})
      },
    },
    { highWaterMark: 0 },
  )
}

/** The first of some results; null when there is none in time. */
async function oneOf<Result>(results: Array<Promise<Result>>, milliseconds: number): Promise<Result | null> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), milliseconds)
  })
  try {
    return await Promise.race([...results, late])
  } finally {
    clearTimeout(timer)
  }
}

class TailFollower {
  #tail: ReadableStreamDefaultReader<Uint8Array>
  #cutter = new FrameCutter()
  #after: number
  #reopen: OpenTail | null
  #pieces: Piece[] = []
  /** The first bytes of the last event that was sent whole, and of one that was sent in part. */
  #last: Uint8Array | null = null
  #current: Uint8Array | null = null
  /** Bytes sent of that event, and how many of them a new tail will repeat. */
  #sent = 0
  #repeated = 0
  /** The reader of the answer has left. */
  #left = false

  constructor(first: ReadableStream<Uint8Array>, after: number, reopen: OpenTail) {
    this.#tail = first.getReader()
    this.#after = after
    this.#reopen = reopen
  }

  /** @returns whole frames, or a part of a long one; null at the end. @throws when the tail has failed twice. */
  async next(): Promise<Uint8Array | null> {
    for (;;) {
      const piece = this.#pieces.shift()
      if (piece) {
        this.#note(piece)
        return piece.bytes
      }
      try {
        const { done, value } = await this.#tail.read()
        if (done) return null
        this.#pieces = this.#cutter.push(this.#withoutRepeated(value))
      } catch (error) {
        if (!(await this.#openAgain(error))) return null
      }
    }
  }

  /** Cancels the tail, and one that is being opened in its place. */
  async cancel(reason: unknown): Promise<void> {
    this.#left = true
    // Fails if the tail has failed.
    await this.#tail.cancel(reason).catch(() => {})
  }

  #note({ bytes, ends }: Piece): void {
    if (!ends) {
      this.#current ??= headOf(bytes)
      this.#sent += bytes.length
      return
    }
    const start = lastEventStart(bytes)
    if (start > 0) this.#last = headOf(bytes.subarray(start))
    // The rest of an event that was sent in parts.
    else if (this.#current) this.#last = this.#current
    else if (bytes[0] !== COLON) this.#last = headOf(bytes)
    this.#current = null
    this.#sent = 0
  }

  /** @returns false when the last event was sent, or the reader has left. @throws the error when there is nothing to open. */
  async #openAgain(error: unknown): Promise<boolean> {
    const last = this.#last && eventHead(this.#last)
    if (last && TERMINAL_EVENTS.has(last.type)) return false
    const tail = await this.#reopen?.(last?.id ?? this.#after)
    this.#reopen = null
    if (!tail) throw error
    this.#tail = tail.getReader()
    if (this.#left) {
      await this.cancel(error)
      return false
    }
    // All readers get the same bytes of an event, so a new tail continues one that was sent in part.
    this.#cutter = new FrameCutter()
    this.#repeated = this.#sent
    return true
  }

  #withoutRepeated(chunk: Uint8Array): Uint8Array {
    const rest = chunk.subarray(this.#repeated)
    this.#repeated -= chunk.length - rest.length
    return rest
  }
}

const TERMINAL_EVENTS = new Set(['response.completed', 'response.failed', 'response.incomplete'])

const decoder = new TextDecoder()
/** `event:` and `id:` are within the first bytes of a frame. */
const HEAD_BYTES = 256

/** The type and number of an event, from the beginning of its frame. */
function eventHead(frame: Uint8Array): { type: string; id: number } | null {
  const text = decoder.decode(frame.subarray(0, HEAD_BYTES))
  const type = /^event: (.*)$/m.exec(text)?.[1]
  const id = /^id: (\d+)$/m.exec(text)?.[1]
  return type === undefined || id === undefined ? null : { type, id: Number(id) }
}

const LINE_FEED = 0x0a
const COLON = 0x3a

/** A copy, because it is kept after the chunk was sent. */
const headOf = (frame: Uint8Array): Uint8Array => frame.slice(0, HEAD_BYTES)

/** Offset of the last event among whole frames; 0 for the first frame also when that is a comment. */
function lastEventStart(frames: Uint8Array): number {
  let start = frames.length
  do start = frameStart(frames, start)
  while (start > 0 && frames[start] === COLON)
  return start
}

/** Offset of the frame that ends at an index. */
function frameStart(frames: Uint8Array, end: number): number {
  for (let at = end - 3; at > 0; at -= 1) {
    at = frames.lastIndexOf(LINE_FEED, at)
    if (at > 0 && frames[at - 1] === LINE_FEED) return at + 1
  }
  return 0
}

/** A longer frame is passed on in parts, since several at a time would fill the isolate's memory. */
const LONGEST_HELD_FRAME = 1024 * 1024

/** Whole frames, or a part of a long one. */
interface Piece {
  bytes: Uint8Array
  /** Whether the piece ends a frame. */
  ends: boolean
}

/** Cuts chunks of any size after the last whole frame. Our frames end with two line feeds. */
class FrameCutter {
  #held: Uint8Array[] = []
  #heldBytes = 0
  /** The last byte of a frame that has not ended yet. */
  #lastByte = 0

  push(chunk: Uint8Array): Piece[] {
    const pieces: Piece[] = []
    const end = this.#endOfFrames(chunk)
    if (end > 0) {
      this.#hold(chunk.subarray(0, end))
      pieces.push({ bytes: this.#take(), ends: true })
      this.#lastByte = 0
    }
    this.#hold(chunk.subarray(end))
    if (this.#heldBytes > LONGEST_HELD_FRAME) pieces.push({ bytes: this.#take(), ends: false })
    return pieces
  }

  /** Offset after the last frame that ends in a chunk; 0 when none does. */
  #endOfFrames(chunk: Uint8Array): number {
    for (let at = chunk.length - 1; at >= 0; at -= 1) {
      at = chunk.lastIndexOf(LINE_FEED, at)
      if (at < 0) return 0
      const before = at === 0 ? this.#lastByte : chunk[at - 1]
      if (before === LINE_FEED) return at + 1
    }
    return 0
  }

  #hold(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    this.#held.push(bytes)
    this.#heldBytes += bytes.length
    this.#lastByte = bytes[bytes.length - 1] ?? 0
  }

  #take(): Uint8Array {
    const bytes = joinBytes(this.#held)
    this.#held = []
    this.#heldBytes = 0
    return bytes
  }
}
