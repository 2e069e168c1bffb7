import { ApiError } from '../api-error.ts'
import { type BudgetShare, ByteBudget } from './byte-budget.ts'
import { freeBytes } from './free-bytes.ts'

/** The budget that bytes are counted in, and their holder (an organization). */
export interface ByteRoom {
  limitBytes: number
  /** A single holder cannot use up the whole budget (`ByteBudget`). */
  holder: string
  /** The bytes come from a sender that can be slow: until `arrived`, they can be freed for another holder. */
  isArriving?: boolean
}

let limit = 0
/** The isolate's one budget: requests of the Worker and Durable Objects share it. */
const budget = new ByteBudget(() => limit)

/** Up to this size a buffer is allocated whole; a larger one grows in such steps. */
const STEP_BYTES = 1024 * 1024

/**
 * Bytes that have an owner, which appends to them, reads them and releases them, with their share of the isolate's budget.
 * A large body lives exactly until its owner releases it.
 *
 * Large bytes are in a resizable buffer: it takes memory as bytes arrive, whatever length was declared, and returns all of
 * it to the system when it is freed. Ordinary memory stays with the process for long after it is freed.
 */
export class OwnedBytes {
  readonly #maximum: number
  #buffer: ArrayBuffer
  #length = 0
  #share: BudgetShare | null
  #isFreed = false

  /**
   * @param maximum bytes that are appended in all.
   * @param room null for bytes that are not counted: small ones, and those that replace counted ones.
   */
  constructor(maximum: number, room: ByteRoom | null = null) {
    this.#maximum = maximum
    this.#buffer =
      maximum <= STEP_BYTES ? new ArrayBuffer(maximum) : new ArrayBuffer(0, { maxByteLength: maximum })
    if (room) limit = room.limitBytes
    this.#share = room && budget.open(room.holder, room.isArriving ? () => this.free() : null)
  }

  /** Takes over existing bytes, which are not counted. */
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

  /** All bytes have arrived. @throws ApiError rate_limited if they have lost their place to another holder meanwhile. */
  arrived(): void {
    if (this.#isFreed) throw tooBusy()
    this.#share?.arrived()
  }

  /** The appended bytes, not a copy. Empty after they were freed. */
  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#isFreed ? new Uint8Array(0) : new Uint8Array(this.#buffer, 0, this.#length)
  }

  /** Frees the bytes, but keeps their share of the budget until `release`, for what was made of them. */
  free(): void {
    this.#free(() => {})
  }

  /** Frees the bytes, and releases their share of the budget when they are not borrowed any more. Idempotent. */
  release(): void {
    const share = this.#share
    this.#share = null
    this.#free(() => share?.close())
  }

  #free(freed: () => void): void {
    const wasFreed = this.#isFreed
    this.#isFreed = true
    // A small one is left to the garbage collector.
    if (!wasFreed && this.#buffer.resizable) freeBytes(new Uint8Array(this.#buffer), freed)
    else freed()
  }
}

/**
 * Copies pieces into one array.
 * @param taken called for each piece when it was copied, with its copy.
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
  new ApiError('rate_limited', "The gateway's memory for large requests is in use. Try again in a moment.", {
    retryAfterSeconds: 1,
  })
