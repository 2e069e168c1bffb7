import { joinBytes } from '../../lib/byte-edits.ts'
import { OwnedBytes, type Room } from '../../lib/bytes/owned-bytes.ts'
import { PartReader } from '../../lib/bytes/read-bytes.ts'
import { writeBytes } from '../../lib/bytes/write-bytes.ts'

// Whole answers of upstreams are in the isolate's budget from when they are read until their callers have them.

/** Up to this they are not counted: a call that is paid for does not fail because large bodies take all the room. */
export const SMALL_ANSWER_BYTES = 64 * 1024
/** As of requests (interface: Limits). */
export const LONGEST_ANSWER_BYTES = 50 * 1024 * 1024
/** Of one that is parsed to a tree, which takes several times as much; as one frame of a stream. */
export const LONGEST_TRANSLATED_BYTES = 16 * 1024 * 1024
/** A caller that takes nothing for so long is gone, or as good as gone. */
const LONGEST_UNREAD_MS = 5 * 60_000

/** In bytes; infinite where it is not told, and where what comes is not what was sent. HTTP holds a sender to it. */
const toldLength = ({ headers }: Response): number =>
  headers.has('content-encoding')
    ? Number.POSITIVE_INFINITY
    : Number(headers.get('content-length') ?? Number.POSITIVE_INFINITY)

/**
 * Reads an answer whole.
 * @param room whose answer it is, in the budget of this isolate. @param longest bytes that it may have.
 * @param arrived told what has come, in bytes.
 * @throws TooLongError, ApiError rate_limited when it does not fit beside what this isolate holds already, and
 * BrokenStreamError.
 */
export async function readWhole(
  response: Response,
  room: Room,
  longest: number,
  arrived: (bytes: number) => void,
): Promise<OwnedBytes> {
  const told = toldLength(response)
  // Gathered by the runtime, which takes less than to read it in parts.
  if (told <= SMALL_ANSWER_BYTES || !response.body)
    return OwnedBytes.of(new Uint8Array(await response.arrayBuffer()))
  const reader = new PartReader(response.body)
  const small = new OwnedBytes(SMALL_ANSWER_BYTES)
  let large: OwnedBytes | null = null
  let length = 0
  try {
    await reader.each(
      (part) => {
        length += part.length
        arrived(part.length)
        if (length <= SMALL_ANSWER_BYTES) return small.append(part)
        if (!large) {
          large = new OwnedBytes(Math.min(told, longest), room)
          large.append(small.bytes)
        }
        large.append(part)
      },
      { longest },
    )
    return large ?? small
  } catch (error) {
    ;(large as OwnedBytes | null)?.release()
    reader.cancel()
    throw error
  }
}

/** The whole answers of one call, and the room they take. */
export class BufferedResponses {
  #owned: OwnedBytes[] = []

  /** @returns its bytes, which are gone after `release` when they are many. */
  take(answer: OwnedBytes): Uint8Array {
    this.#owned.push(answer)
    return answer.bytes
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
    const sent = this.#owned.splice(0)
    const { readable, writable } = new FixedLengthStream(length)
    const written = writeBytes(writable, pieces, { longestWait: LONGEST_UNREAD_MS, signal })
    // A caller that left, or takes nothing, is not waited for.
    waitUntil(written.catch(() => {}).finally(() => releaseAll(sent)))
    return readable
  }

  /** Gives back what was not handed over. */
  release(): void {
    releaseAll(this.#owned.splice(0))
  }
}

function releaseAll(owned: readonly OwnedBytes[]): void {
  for (const bytes of owned) bytes.release()
}

/** The same bytes, in memory that stays when large buffers are freed. */
const kept = (bytes: Uint8Array): Uint8Array =>
  bytes.buffer instanceof ArrayBuffer && bytes.buffer.resizable ? bytes.slice() : bytes
