import { createHash } from 'node:crypto'
import { joinBytes } from '../../lib/byte-edits.ts'
import { borrowBytes } from '../../lib/bytes/free-bytes.ts'
import { writeBytes } from '../../lib/bytes/write-bytes.ts'
import { runSlices, type Slices } from '../../lib/slices.ts'

/** The body of a request: bytes, or pieces in order. */
export type RequestBody = Uint8Array | { pieces: readonly Uint8Array[]; length: number }

/** Below this a copy is cheaper than a stream. */
const JOINED_BYTES = 1024 * 1024
const BEGINNING_SLICES = 5
const SLICE_BYTES = 8 * 1024

/**
 * A body as `fetch` takes it: small ones as bytes, a large one as a stream of known length, without another copy.
 * @param onConnected called once a connection stands; null where it is not needed, because it takes a stream.
 */
export function bodyInit(body: RequestBody, onConnected: (() => void) | null): BodyInit {
  const { pieces, length } = body instanceof Uint8Array ? { pieces: [body], length: body.length } : body
  if (length > JOINED_BYTES) return streamed(pieces, onConnected)
  const joined = joinBytes(pieces) as Uint8Array<ArrayBuffer>
  return onConnected ? streamed([joined], onConnected) : joined
}

/** About a millisecond: other requests have their turn while a large body is hashed. */
const HASH_SLICE_BYTES = 512 * 1024

/** SHA-256 in lowercase hex, without joining the pieces. */
export const bodyHash = (body: RequestBody): Promise<string> =>
  runSlices(hashed(body instanceof Uint8Array ? [body] : body.pieces))

function* hashed(pieces: readonly Uint8Array[]): Slices<string> {
  const hash = createHash('sha256')
  let room = HASH_SLICE_BYTES
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; ) {
      const part = piece.subarray(at, at + room)
      hash.update(part)
      at += part.length
      room -= part.length
      if (room > 0) continue
      yield
      room = HASH_SLICE_BYTES
    }
  }
  return hash.digest('hex')
}

/**
 * `fetch` does not report when it is connected, but it reads the body only a few writes (three, as measured) ahead of
 * what the connection takes. So the beginning of the body is written in more slices than that.
 */
function streamed(pieces: readonly Uint8Array[], onConnected: (() => void) | null): ReadableStream {
  const { readable, writable } = new FixedLengthStream(
    pieces.reduce((length, piece) => length + piece.length, 0),
  )
  // An upstream may answer before it has read the whole body: the buffers must outlive the call.
  const giveBack = pieces.map(borrowBytes)
  const beginning = { slices: BEGINNING_SLICES, bytes: SLICE_BYTES, written: onConnected ?? (() => {}) }
  writeBytes(writable, pieces, { beginning })
    // A failed write means that the upstream closed the connection: the fetch itself rejects.
    .catch(() => {})
    .finally(() => {
      for (const end of giveBack) end()
    })
  return readable
}
