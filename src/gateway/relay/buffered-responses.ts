import { joinBytes } from '../../lib/byte-edits.ts'
import { type ByteRoom, OwnedBytes } from '../../lib/bytes/owned-bytes.ts'
import { PartReader } from '../../lib/bytes/read-bytes.ts'
import { writeBytes } from '../../lib/bytes/write-bytes.ts'

// Whole answers of upstreams count in the isolate's budget until their callers have read them.

/** Smaller answers are not counted, so that a charged call does not fail while large bodies fill the budget. */
const SMALL_ANSWER_BYTES = 64 * 1024
/** The limit of requests (interface: Limits). */
export const LONGEST_ANSWER_BYTES = 50 * 1024 * 1024
/**
 * Maximum size of an answer that is parsed to a tree, which takes several times as much memory; the same limit as for a frame.
 */
export const LONGEST_TRANSLATED_BYTES = 16 * 1024 * 1024
/** A caller that takes nothing for this long counts as gone. */
const LONGEST_UNREAD_MS = 5 * 60_000

/** Declared length in bytes, which HTTP enforces; infinite without one, and for a body that the runtime decompresses. */
const declaredLength = ({ headers }: Response): number =>
  headers.has('content-encoding')
    ? Number.POSITIVE_INFINITY
    : Number(headers.get('content-length') ?? Number.POSITIVE_INFINITY)

/**
 * Reads a whole answer.
 * @param room the budget of this isolate, and the organization of the answer. @param longest in bytes.
 * @param arrived called with the bytes of each part.
 * @throws TooLongError, BrokenStreamError, and ApiError rate_limited when the answer does not fit into the budget.
 */
export async function readWhole(
  response: Response,
  room: ByteRoom,
  longest: number,
  arrived: (bytes: number) => void,
): Promise<OwnedBytes> {
  const declared = declaredLength(response)
  // Cheaper than reading it in parts.
  if (declared <= SMALL_ANSWER_BYTES || !response.body)
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
          large = new OwnedBytes(Math.min(declared, longest), room)
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

/** The whole answers of one call, and their budget. */
export class BufferedResponses {
  #owned: OwnedBytes[] = []

  /** @returns the bytes of an answer. Those of a large one are not valid after `release`. */
  take(answer: OwnedBytes): Uint8Array {
    this.#owned.push(answer)
    return answer.bytes
  }

  /**
   * The body for the caller. A small one is returned as bytes. A large one is sent without another copy, at the pace of the
   * caller, and keeps its budget until then.
   * @param signal fires when the caller leaves. @param waitUntil takes the sending of a large body.
   */
  handOver(
    pieces: readonly Uint8Array[],
    signal: AbortSignal,
    waitUntil: (work: Promise<unknown>) => void,
  ): Uint8Array | ReadableStream<Uint8Array> {
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
    if (length <= SMALL_ANSWER_BYTES) return joinBytes(pieces.map(lasting))
    const sent = this.#owned.splice(0)
    const { readable, writable } = new FixedLengthStream(length)
    const written = writeBytes(writable, pieces, { longestWait: LONGEST_UNREAD_MS, signal })
    // Rejects when the caller left, or takes nothing.
    waitUntil(written.catch(() => {}).finally(() => releaseAll(sent)))
    return readable
  }

  /** Releases the answers that were not handed over. */
  release(): void {
    releaseAll(this.#owned.splice(0))
  }
}

function releaseAll(owned: readonly OwnedBytes[]): void {
  for (const bytes of owned) bytes.release()
}

/** Bytes that stay valid after `release`: a copy, where they lie in a buffer that it frees. */
const lasting = (bytes: Uint8Array): Uint8Array =>
  bytes.buffer instanceof ArrayBuffer && bytes.buffer.resizable ? bytes.slice() : bytes
