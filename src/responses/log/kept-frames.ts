import type { Frames } from '../storage/commit-rows.ts'
import { endOfFrames } from './packed-frames.ts'

/** Bytes of a block. A buffer for each commit would take more memory than the frames in it. */
const BLOCK_BYTES = 32 * 1024
/** Bytes of a block that has begun: most responses are short. */
const FIRST_BYTES = 4 * 1024

/** Frames that follow each other, in the first bytes of a buffer that may have room for more. */
interface Block {
  first: number
  last: number
  length: number
  buffer: Uint8Array
}

/** The frames of a log that only commits have, in memory for its readers and for the row that they become. */
export class KeptFrames {
  readonly #blocks: Block[] = []
  /** What was added last, which all readers at the live edge send. */
  #newest: Frames | null = null
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  /** Number of the first event; null when there is none. */
  get first(): number | null {
    return this.#blocks[0]?.first ?? null
  }

  /** Number of the last event; null when there is none. */
  get last(): number | null {
    return this.#newest?.last ?? null
  }

  /** Everything, in order. */
  get pieces(): Frames[] {
    return this.#blocks.map(({ first, last, length, buffer }) => ({
      first,
      last,
      bytes: buffer.subarray(0, length),
    }))
  }

  /** Adds frames that follow the last one. */
  add(frames: Frames): void {
    const { length } = frames.bytes
    const block = this.#blockFor(frames.first, length)
    block.buffer.set(frames.bytes, block.length)
    block.length += length
    block.last = frames.last
    this.#newest = frames
    this.#bytes += length
  }

  /** Frames after a number, as many as a block has; null when there are none. The bytes do not change. */
  after(sequence: number): Frames | null {
    const newest = this.#newest
    if (newest === null || sequence >= newest.last) return null
    if (sequence === newest.first - 1) return newest
    const block = this.#blocks.find(({ last }) => last > sequence)
    if (!block) return null
    const { first, last, length, buffer } = block
    const from = sequence < first ? 0 : endOfFrames(buffer, sequence + 1 - first)
    return { first: Math.max(first, sequence + 1), last, bytes: buffer.subarray(from, length) }
  }

  clear(): void {
    this.#blocks.length = 0
    this.#newest = null
    this.#bytes = 0
  }

  /** The last block, with room for so many bytes, or a new one. */
  #blockFor(first: number, length: number): Block {
    const block = this.#blocks.at(-1)
    if (!block || block.length + length > BLOCK_BYTES) {
      const added = { first, last: first, length: 0, buffer: new Uint8Array(Math.max(FIRST_BYTES, length)) }
      this.#blocks.push(added)
      return added
    }
    if (block.length + length > block.buffer.length) {
      const larger = new Uint8Array(BLOCK_BYTES)
      larger.set(block.buffer.subarray(0, block.length))
      block.buffer = larger
    }
    return block
  }
}
