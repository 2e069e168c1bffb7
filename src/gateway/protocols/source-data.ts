import { decodeString } from '../../lib/json-string.ts'
import type { JsonPath } from '../../lib/json-visitor.ts'

/** `base64`, if every character of it is written as an escape. */
const LONGEST_TYPE_BYTES = 6 * 6

/**
 * Holds the `data` of sources until the source ends. Data that looks like base64 is text unless the source's `type` is
 * `base64`, and members come in any order.
 */
export class SourceData<Place> {
  readonly #waiting: Array<{ depth: number; place: Place }> = []
  /** Whether an open source is base64, by the length of its path. */
  readonly #isBase64 = new Map<number, boolean>()

  /** Called for every string that is no text. @returns whether its `place` is held until its source ends. */
  string(path: JsonPath, bytes: Uint8Array, start: number, end: number, place: () => Place): boolean {
    const depth = path.length - 1
    if (path[depth - 1] !== 'source') return false
    if (path[depth] === 'type') {
      const isBase64 = end - start <= LONGEST_TYPE_BYTES && decodeString(bytes, start, end) === 'base64'
      this.#isBase64.set(depth, isBase64 && this.#isBase64.get(depth) !== false)
    }
    if (path[depth] !== 'data') return false
    this.#waiting.push({ depth, place: place() })
    return true
  }

  /** Called at the end of every value. @returns the places that it held. */
  end(path: JsonPath): Array<{ place: Place; isBase64: boolean }> {
    const depth = path.length
    if (path[depth - 1] !== 'source') return []
    const isBase64 = this.#isBase64.get(depth) === true
    this.#isBase64.delete(depth)
    const ended: Array<{ place: Place; isBase64: boolean }> = []
    for (let last = this.#waiting.at(-1); last?.depth === depth; last = this.#waiting.at(-1)) {
      ended.push({ place: last.place, isBase64 })
      this.#waiting.pop()
    }
    return ended
  }
}
