import { ApiError } from '../api-error.ts'
import { type BudgetShare, ByteBudget } from './byte-budget.ts'
import { freeBytes } from './free-bytes.ts'

/** Where bytes are counted: all that this isolate holds together, and who holds these. */
export interface Room {
  limitBytes: number
  /** Nobody takes the room of others. */
  holder: string
}

let limit = 0
/** One for the isolate, whatever runs in it: requests of the Worker, and objects. */
const budget = new ByteBudget(() => limit)

/** Up to this a buffer is allocated whole; a larger one grows by so much. */
const STEP_BYTES = 1024 * 1024

/**
 * Bytes that have an owner: appended to, read, and freed by it, with their place in the isolate's budget. How long a large
 * body lives is decided where it is released, and nowhere else; `moved` hands it to another owner.
 *
 * Large bytes lie in a resizable buffer: it takes memory as bytes come, whatever length was announced, and gives all of it
 * back to the system when it is freed. Ordinary memory stays with the process for long after it is free.
 */
export class OwnedBytes {
  readonly #maximum: number
  #buffer: ArrayBuffer
  #length = 0
  #share: BudgetShare | null
  #isFreed = false

  /**
   * @param maximum bytes that are appended in all.
   * @param room null for bytes that are not counted: small ones, and what takes the place of something that is.
   */
  constructor(maximum: number, room: Room | null = null) {
    this.#maximum = maximum
    this.#buffer =
      maximum <= STEP_BYTES ? new ArrayBuffer(maximum) : new ArrayBuffer(0, { maxByteLength: maximum })
    if (room) limit = room.limitBytes
    this.#share = room && budget.open(room.holder)
  }

  /** Bytes that are there already, not counted. */
  static of(bytes: Uint8Array<ArrayBuffer>): OwnedBytes {
    const owned = new OwnedBytes(0)
    owned.#buffer = bytes.buffer
    owned.#length = bytes.length
    return owned
  }

  /** @throws RangeError beyond the maximum, ApiError rate_limited when this isolate holds too many bytes already. */
  append(chunk: Uint8Array): void {
    const length = this.#length + chunk.length
    if (length > this.#maximum) throw new RangeError(`longer than ${this.#maximum} bytes`)
    if (this.#share && !this.#share.take(chunk.length)) throw tooBusy()
    if (length > this.#buffer.byteLength) {
      const grown = Math.ceil(length / STEP_BYTES) * STEP_BYTES
      this.#buffer.resize(Math.min(grown, this.#maximum))
    }
    new Uint8Array(this.#buffer, this.#length, chunk.length).set(chunk)
    this.#length = length
  }

  /** What has been appended, in place: the one copy, which is empty once it is freed or moved. */
  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#isFreed ? new Uint8Array(0) : new Uint8Array(this.#buffer, 0, this.#length)
  }

  /** The same bytes and their place for another owner: here are none any more. */
  moved(): OwnedBytes {
    const moved = new OwnedBytes(0)
    moved.#buffer = this.#buffer
    moved.#length = this.#length
    moved.#share = this.#share
    moved.#isFreed = this.#isFreed
    this.#buffer = new ArrayBuffer(0)
    this.#length = 0
    this.#share = null
    return moved
  }

  /** Frees the bytes, but not their place in the budget: what was made of them takes that, until `release`. */
  free(): void {
    this.#free(() => {})
  }

  /** Frees the bytes, and gives back their place with the memory, which may be borrowed for longer. Once is enough. */
  release(): void {
    const share = this.#share
    this.#share = null
    this.#free(() => share?.close())
  }

  #free(freed: () => void): void {
    const wasFreed = this.#isFreed
    this.#isFreed = true
    // A small one is left to the collector.
    if (!wasFreed && this.#buffer.resizable) freeBytes(new Uint8Array(this.#buffer), freed)
    else freed()
  }
}

/**
 * Pieces as one array of its own, of which a large one can be freed.
 * @param taken called when a piece was copied, with the place that it has now.
 */
export function ownedCopy(
  pieces: readonly Uint8Array[],
  taken: (piece: Uint8Array, copy: Uint8Array, index: number) => void = () => {},
): OwnedBytes {
  const owned = new OwnedBytes(pieces.reduce((length, piece) => length + piece.length, 0))
  let end = 0
  for (const [index, piece] of pieces.entries()) {
    owned.append(piece)
    end += piece.length
    taken(piece, owned.bytes.subarray(end - piece.length, end), index)
  }
  return owned
}

const tooBusy = () =>
  new ApiError('rate_limited', 'Too many large requests are in progress here. Try again in a moment.', {
    retryAfterSeconds: 1,
  })
