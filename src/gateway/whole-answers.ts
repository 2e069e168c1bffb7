import { BodyCollector, type HeldBody } from '../lib/body-collector.ts'
import { joinBytes } from '../lib/byte-edits.ts'
import { TooLongError } from '../lib/read-stream.ts'
import { withinTime } from '../lib/time-limit.ts'

// Whole answers of upstreams are in the isolate's budget from when they are read until their callers have them.

/** Up to this they are not counted: a call that is paid for does not fail because large bodies take all the room. */
export const SMALL_ANSWER_BYTES = 64 * 1024
/** As of requests (interface: Limits). */
export const LONGEST_ANSWER_BYTES = 50 * 1024 * 1024
/** Of one that is parsed to a tree, which takes several times as much; as one frame of a stream. */
export const LONGEST_TRANSLATED_BYTES = 16 * 1024 * 1024
/** A caller that takes nothing for so long is gone, or as good as gone. */
const LONGEST_UNREAD_MS = 5 * 60_000
const SLICE_BYTES = 256 * 1024

/** In bytes; infinite where it is not told, and where what comes is not what was sent. HTTP holds a sender to it. */
const toldLength = ({ headers }: Response): number =>
  headers.has('content-encoding')
    ? Number.POSITIVE_INFINITY
    : Number(headers.get('content-length') ?? Number.POSITIVE_INFINITY)

const unheld = (bytes: Uint8Array): HeldBody => ({ bytes, release: () => {} })

/**
 * Reads an answer whole.
 * @param room `limitBytes` of all bodies of this isolate together, `holder` whose answer it is.
 * @param longest bytes that it may have. @param arrived told what has come, in bytes.
 * @throws TooLongError, ApiError rate_limited when it does not fit beside what this isolate holds already, and whatever
 * the stream throws.
 */
export async function readWhole(
  response: Response,
  room: { limitBytes: number; holder: string },
  longest: number,
  arrived: (bytes: number) => void,
): Promise<HeldBody> {
  const told = toldLength(response)
  // Gathered by the runtime, which takes less than to read it in parts.
  if (told <= SMALL_ANSWER_BYTES || !response.body)
    return unheld(new Uint8Array(await response.arrayBuffer()))
  const reader = response.body.getReader()
  const beginning: Uint8Array[] = []
  let collector: BodyCollector | null = null
  let length = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return collector ? collector.finish() : unheld(joinBytes(beginning))
      length += value.length
      arrived(value.length)
      if (length > longest) throw new TooLongError(longest)
      if (!collector && length > SMALL_ANSWER_BYTES) {
        collector = new BodyCollector(Math.min(told, longest), room.limitBytes, room.holder)
        for (const piece of beginning.splice(0)) collector.add(piece)
      }
      if (collector) collector.add(value)
      else beginning.push(value)
    }
  } catch (error) {
    collector?.release()
    reader.cancel().catch(() => {})
    throw error
  }
}

/** The whole answers of one call, and the room they take. */
export class WholeAnswers {
  #rooms: Array<() => void> = []

  /** @returns its bytes, which are gone after `release` when they are many. */
  take({ bytes, release }: HeldBody): Uint8Array {
    this.#rooms.push(release)
    return bytes
  }

  /**
   * Makes what the caller is given: small answers are, large ones are sent without another copy of them, as fast as the
   * caller reads, and keep their room until then.
   * @param signal fires when the caller leaves. @param waitUntil given what goes on after this.
   */
  handOver(
    pieces: readonly Uint8Array[],
    signal: AbortSignal,
    waitUntil: (work: Promise<unknown>) => void,
  ): Uint8Array | ReadableStream<Uint8Array> {
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
    if (length <= SMALL_ANSWER_BYTES) return joinBytes(pieces.map(kept))
    const taken = new WholeAnswers()
    taken.#rooms = this.#rooms.splice(0)
    const { readable, writable } = new FixedLengthStream(length)
    waitUntil(writeAll(writable.getWriter(), pieces, signal).finally(() => taken.release()))
    return readable
  }

  /** Gives back what was not handed over. */
  release(): void {
    for (const release of this.#rooms.splice(0)) release()
  }
}

/** The same bytes, in memory that stays when large buffers are freed. */
const kept = (bytes: Uint8Array): Uint8Array =>
  bytes.buffer instanceof ArrayBuffer && bytes.buffer.resizable ? bytes.slice() : bytes

async function writeAll(
  writer: WritableStreamDefaultWriter<Uint8Array>,
  pieces: readonly Uint8Array[],
  signal: AbortSignal,
): Promise<void> {
  // A write that waits for a caller that is gone would wait forever.
  const leave = () => void writer.abort().catch(() => {})
  writer.closed.catch(() => {})
  signal.addEventListener('abort', leave)
  try {
    signal.throwIfAborted()
    for (const piece of pieces) {
      for (let at = 0; at < piece.length; at += SLICE_BYTES) {
        const slice = piece.subarray(at, at + SLICE_BYTES)
        await withinTime(writer.write(slice), LONGEST_UNREAD_MS, 'reading an answer')
      }
    }
    await writer.close()
  } catch {
    leave()
  } finally {
    signal.removeEventListener('abort', leave)
  }
}
