import { createHash } from 'node:crypto'
import { holdBuffer } from '../../lib/buffer-holds.ts'
import { joinBytes } from '../../lib/byte-edits.ts'

/** The body of a request: text, bytes, or pieces in order. */
export type RequestBody = string | Uint8Array | { pieces: readonly Uint8Array[]; length: number }

/** Below this a copy is cheaper than a stream. */
const JOINED_BYTES = 1024 * 1024
const BEGINNING_SLICES = 5
const SLICE_BYTES = 8 * 1024
const LARGE_SLICE_BYTES = 256 * 1024

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

function streamed(pieces: readonly Uint8Array[], onConnected: (() => void) | null): ReadableStream {
  const { readable, writable } = new FixedLengthStream(
    pieces.reduce((length, piece) => length + piece.length, 0),
  )
  // An upstream may answer before it has read all of it, and the answer may be on its way to the caller by then.
  const letGo = pieces.map(holdBuffer)
  writeSlices(writable, pieces, onConnected ?? (() => {}))
    // A failed write is the upstream hanging up: the fetch itself rejects and tells it.
    .catch(() => {})
    .finally(() => {
      for (const end of letGo) end()
    })
  return readable
}

/**
 * `fetch` does not say when it is connected, but it reads of the body only a few writes ahead of what the connection
 * takes (three, as measured). So the body's beginning is written in more slices than that.
 */
async function writeSlices(
  writable: WritableStream<Uint8Array>,
  pieces: readonly Uint8Array[],
  onConnected: () => void,
): Promise<void> {
  const writer = writable.getWriter()
  let left = BEGINNING_SLICES
  for (const piece of pieces) {
    let at = 0
    for (; left > 0 && at < piece.length; left--) {
      // What is left to slice may lie in later pieces, but a short piece makes short slices.
      const end = at + Math.max(1, Math.min(SLICE_BYTES, Math.floor((piece.length - at) / left)))
      await writer.write(piece.subarray(at, end))
      at = end
      if (left === 1) onConnected()
    }
    // The runtime copies each slice that it is given.
    for (; at < piece.length; at += LARGE_SLICE_BYTES) {
      await writer.write(piece.subarray(at, at + LARGE_SLICE_BYTES))
    }
  }
  onConnected()
  await writer.close()
}
