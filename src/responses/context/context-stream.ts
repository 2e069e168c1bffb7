import { PartReader } from '../../lib/bytes/read-bytes.ts'
import type { ContextItem } from '../model/types.ts'

/** An item is the length of its head and of its JSON, four bytes each, then the head and the JSON. */
const LENGTHS_BYTES = 8
/** Longer than any head: a larger length is no encoded item. */
const LONGEST_HEAD = 64 * 1024

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** Encodes the items of a context, which may have more bytes than a call between objects. One item is held at a time. */
export function contextStream(items: AsyncIterator<ContextItem>): ReadableStream<Uint8Array> {
  return new ReadableStream(
    {
      type: 'bytes',
      async pull(controller) {
        const { done, value } = await items.next()
        if (!done) return controller.enqueue(encoded(value))
        controller.close()
        controller.byobRequest?.respond(0)
      },
      async cancel() {
        await items.return?.()
      },
    } as UnderlyingByteSource,
    { highWaterMark: 0 },
  )
}

function encoded({ bytes, ...head }: ContextItem): Uint8Array {
  const { id, type, role, callId } = head
  const headBytes = encoder.encode(JSON.stringify({ id, type, role, callId }))
  const whole = new Uint8Array(LENGTHS_BYTES + headBytes.length + bytes.length)
  const lengths = new DataView(whole.buffer)
  lengths.setUint32(0, headBytes.length)
  lengths.setUint32(4, bytes.length)
  whole.set(headBytes, LENGTHS_BYTES)
  whole.set(bytes, LENGTHS_BYTES + headBytes.length)
  return whole
}

/**
 * Reads what `contextStream` encodes.
 * @param mostBytes of the items together. @param tooLong makes the error for a longer context.
 * @throws that error, and BrokenStreamError for a stream that fails or ends in an item.
 */
export async function readContextStream(
  stream: ReadableStream<Uint8Array>,
  mostBytes: number,
  tooLong: () => Error,
): Promise<ContextItem[]> {
  const source = new ExactReader(new PartReader(stream))
  const items: ContextItem[] = []
  let left = mostBytes
  try {
    for (;;) {
      const lengths = await source.read(LENGTHS_BYTES)
      if (lengths === null) return items
      const view = new DataView(lengths.buffer)
      const [headLength, length] = [view.getUint32(0), view.getUint32(4)]
      left -= length
      if (left < 0) throw tooLong()
      if (headLength > LONGEST_HEAD) throw new Error('the context of a response is not readable')
      const head = JSON.parse(decoder.decode(await source.need(headLength))) as Omit<ContextItem, 'bytes'>
      items.push({ ...head, bytes: await source.need(length) })
    }
  } catch (error) {
    source.cancel(error)
    throw error
  }
}

/** Reads a stream in pieces of given lengths, each a copy. */
class ExactReader {
  readonly #reader: PartReader

  constructor(reader: PartReader) {
    this.#reader = reader
  }

  /** @returns null at the end of the stream. @throws for an end within the piece. */
  async read(length: number): Promise<Uint8Array<ArrayBuffer> | null> {
    const piece = new Uint8Array(length)
    let filled = 0
    while (filled < length) {
      const part = await this.#next(length - filled)
      if (part === null && filled === 0) return null
      if (part === null) throw new Error('the context of a response broke off')
      piece.set(part, filled)
      filled += part.length
    }
    return piece
  }

  async need(length: number): Promise<Uint8Array<ArrayBuffer>> {
    const piece = await this.read(length)
    if (piece === null) throw new Error('the context of a response broke off')
    return piece
  }

  cancel(reason: unknown): void {
    this.#reader.cancel(reason)
  }

  #rest: Uint8Array = new Uint8Array(0)

  /** The next bytes, at most so many: a stream need not obey the limit of a read. */
  async #next(most: number): Promise<Uint8Array | null> {
    if (this.#rest.length === 0) {
      const part = await this.#reader.next()
      if (part === null) return null
      this.#rest = part
    }
    const taken = this.#rest.subarray(0, most)
    this.#rest = this.#rest.subarray(most)
    return taken
  }
}
