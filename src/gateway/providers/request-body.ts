import { createHash } from 'node:crypto'
import { joinBytes } from '../../lib/byte-edits.ts'
import { borrowBytes } from '../../lib/bytes/free-bytes.ts'
import { writeBytes } from '../../lib/bytes/write-bytes.ts'

/** The body of a request: text, bytes, or pieces in order. */
export type RequestBody = string | Uint8Array | { pieces: readonly Uint8Array[]; length: number }

/** Below this a copy is cheaper than a stream. */
const JOINED_BYTES = 1024 * 1024
const BEGINNING_SLICES = 5
const SLICE_BYTES = 8 * 1024

const encoder = new TextEncoder()

/**
 * A body as `fetch` takes it. Text and small bytes go as they are; a large body is streamed with a known length, without
 * another copy of it.
 * @param onConnected called once a connection stands; null where that is not asked for, because it takes a stream.
 */
export function bodyInit(body: RequestBody, onConnected: (() => void) | null): BodyInit {
  if (typeof body === 'string') return onConnected ? streamed([encoder.encode(body)], onConnected) : body
  const { pieces, length } = body instanceof Uint8Array ? { pieces: [body], length: body.length } : body
  if (length > JOINED_BYTES) return streamed(pieces, onConnected)
  const joined = joinBytes(pieces) as Uint8Array<ArrayBuffer>
  return onConnected ? streamed([joined], onConnected) : joined
}

/** SHA-256 in lowercase hex. Of pieces, without joining them. */
export async function bodyHash(body: RequestBody): Promise<string> {
  const hash = createHash('sha256')
  if (typeof body === 'string' || body instanceof Uint8Array) return hash.update(body).digest('hex')
  for (const piece of body.pieces) hash.update(piece)
  return hash.digest('hex')
}

/**
 * `fetch` does not say when it is connected, but it reads of the body only a few writes ahead of what the connection
 * takes (three, as measured). So the body's beginning is written in more slices than that.
 */
function streamed(pieces: readonly Uint8Array[], onConnected: (() => void) | null): ReadableStream {
  const { readable, writable } = new FixedLengthStream(
    pieces.reduce((length, piece) => length + piece.length, 0),
  )
  // An upstream may answer before it has read all of it, and the answer may be on its way to the caller by then.
  const giveBack = pieces.map(borrowBytes)
  const beginning = { slices: BEGINNING_SLICES, bytes: SLICE_BYTES, written: onConnected ?? (() => {}) }
  writeBytes(writable, pieces, { beginning })
    // A failed write is the upstream hanging up: the fetch itself rejects and tells it.
    .catch(() => {})
    .finally(() => {
      for (const end of giveBack) end()
    })
  return readable
}
