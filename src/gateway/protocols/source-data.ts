import { decodeString, type JsonPath } from '../../lib/json-scan.ts'

/** `base64`, if every character of it is written as an escape. */
const LONGEST_TYPE_BYTES = 6 * 6

/**
 * What looks like base64 in the `data` of a source may be a text: the source's `type` tells, and members stand in any
 * order. Data waits here for the end of its source. What does not say that it is base64, and nothing else, is text.
 */
export class SourceData<Place> {
  readonly #waiting: Array<{ depth: number; place: Place }> = []
  /** By path length of a source that is open. */
  readonly #isBase64 = new Map<number, boolean>()

  /** Told of every string that is no text. @returns whether it waits here, as `place` says. */
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

  /** Told of the end of every value. @returns what has waited for it. */
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
