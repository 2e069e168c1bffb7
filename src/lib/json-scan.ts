import { JsonTokens } from './json-tokens.ts'
import { JsonDepthError, type JsonKind, type JsonVisitor, MAXIMUM_DEPTH } from './json-visitor.ts'
import type { Slices } from './slices.ts'

/**
 * A one-pass JSON scanner over bytes. It checks the whole text against RFC 8259 and calls a visitor with the places of
 * strings and shallow values, without a tree. Bodies can be edited in place, so that all other bytes stay as they were
 * sent. Memory is a stack of at most `MAXIMUM_DEPTH` entries.
 */

const NO_NAMES: ReadonlySet<string> = new Set()

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

/** Bytes of a string that are read in one slice. Without slices the limit is larger than any body. */
const STRING_SLICE_BYTES = 64 * 1024
const ALL_BYTES = 2 ** 29

/**
 * Scans one JSON text.
 * @throws JsonSyntaxError if `bytes` is not exactly one JSON value, or nests deeper than `MAXIMUM_DEPTH`.
 */
export function scanJson(bytes: Uint8Array, visitor: JsonVisitor): void {
  new Scanner(bytes, visitor, ALL_BYTES).run()
}

/**
 * `scanJson` with pauses: yields after a value when `isDue` returns true, and within long strings.
 * @param isDue called after every value, with the number of bytes up to its end; by default slices are cut by bytes and
 * values.
 */
export function scanJsonInSlices(
  bytes: Uint8Array,
  visitor: JsonVisitor,
  isDue: (at: number) => boolean = slicesOfBytes(),
): Slices<void> {
  return new Scanner(bytes, visitor, STRING_SLICE_BYTES).runInSlices(isDue)
}

/** Bytes that are read in one slice; every value counts as some. */
const SLICE_BYTES = 64 * 1024
const VALUE_BYTES = 64

/** Returns after a value whether a slice of bytes and values has ended. */
export function slicesOfBytes(): (at: number) => boolean {
  let values = 0
  let sliceEnd = SLICE_BYTES
  return (at) => {
    values++
    const read = at + values * VALUE_BYTES
    if (read < sliceEnd) return false
    sliceEnd = read + SLICE_BYTES
    return true
  }
}

class Scanner {
  readonly #tokens: JsonTokens
  readonly #stringBytes: number
  readonly #visitor: JsonVisitor
  readonly #valueDepth: number
  readonly #watched: ReadonlySet<string>
  readonly #path: Array<string | number> = []
  readonly #isObject: boolean[] = []
  readonly #starts: number[] = []
  readonly #memberStarts: number[] = []
  readonly #nameEnds: number[] = []
  readonly #names: string[] = []
  #name = ''
  /** Path length up to the first watched name, infinite without one. */
  #watchedAt = Number.POSITIVE_INFINITY
  #memberStart = 0
  #nameEnd = 0
  /** Whether a member name comes before the next value. */
  #isNameNext = false

  constructor(bytes: Uint8Array, visitor: JsonVisitor, stringBytes: number) {
    this.#tokens = new JsonTokens(bytes)
    this.#stringBytes = stringBytes
    this.#visitor = visitor
    this.#valueDepth = visitor.valueDepth ?? 1
    this.#watched = visitor.watched ?? NO_NAMES
  }

  run(): void {
    this.#begin()
    for (let more = true; more; ) more = this.#scanValue() || this.#afterValue()
    this.#tokens.end()
  }

  *runInSlices(isDue: (at: number) => boolean): Slices<void> {
    yield* this.#tokens.findLongRuns()
    this.#begin()
    for (let more = true; more; ) {
      more = this.#scanValue() || this.#afterValue()
      if (this.#tokens.readOnFrom > 0 || isDue(this.#tokens.at)) yield
    }
    this.#tokens.end()
  }

  #begin(): void {
    this.#tokens.skipSpace()
    this.#memberStart = this.#tokens.at
  }

  /**
   * Reads one scalar with the name before it, or opens a container.
   * @returns true when a value has yet to be read: the rest of a long string, or one inside the container.
   */
  #scanValue(): boolean {
    if (this.#isNameNext && !this.#scanName()) return true
    const tokens = this.#tokens
    const start = tokens.at
    const byte = tokens.readOnFrom > 0 ? QUOTE : tokens.peek()
    if (byte === QUOTE) {
      if (!tokens.string(this.#stringBytes)) return true
      const within = this.#watchedAt !== Number.POSITIVE_INFINITY
      this.#visitor.string?.(this.#path, start + 1, tokens.at - 1, this.#name, within)
      this.#visitValue('string', start)
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) return this.#open(byte === OPEN_BRACE)
    else if (byte === 0x74) this.#literal('true', 'boolean')
    else if (byte === 0x66) this.#literal('false', 'boolean')
    else if (byte === 0x6e) this.#literal('null', 'null')
    else {
      tokens.number()
      this.#visitValue('number', start)
    }
    return false
  }

  #open(isObject: boolean): boolean {
    const tokens = this.#tokens
    const start = tokens.at
    if (this.#isObject.length >= MAXIMUM_DEPTH) throw new JsonDepthError(start)
    tokens.at++
    tokens.skipSpace()
    if (tokens.peek() === (isObject ? CLOSE_BRACE : CLOSE_BRACKET)) {
      tokens.at++
      this.#visitValue(isObject ? 'object' : 'array', start)
      return false
    }
    this.#isObject.push(isObject)
    this.#starts.push(start)
    this.#memberStarts.push(this.#memberStart)
    this.#nameEnds.push(this.#nameEnd)
    this.#names.push(this.#name)
    this.#path.push(0)
    this.#isNameNext = isObject
    if (!isObject) this.#memberStart = tokens.at
    return true
  }

  /**
   * Reads what follows a value: a comma before the next member or element, or the end of containers. @returns true when a value
   * follows.
   */
  #afterValue(): boolean {
    const tokens = this.#tokens
    while (this.#isObject.length > 0) {
      tokens.skipSpace()
      const isObject = this.#isObject[this.#isObject.length - 1] === true
      const byte = tokens.peek()
      if (byte === COMMA) {
        tokens.at++
        tokens.skipSpace()
        this.#isNameNext = isObject
        if (!isObject) {
          const last = this.#path.length - 1
          this.#path[last] = (this.#path[last] as number) + 1
          this.#memberStart = tokens.at
        }
        return true
      }
      if (byte !== (isObject ? CLOSE_BRACE : CLOSE_BRACKET)) tokens.fail('expected a comma or the end')
      this.#path.pop()
      if (this.#watchedAt > this.#path.length) this.#watchedAt = Number.POSITIVE_INFINITY
      this.#close()
    }
    return false
  }

  #close(): void {
    this.#tokens.at++
    const kind = this.#isObject.pop() ? 'object' : 'array'
    const start = this.#starts.pop() ?? 0
    this.#memberStart = this.#memberStarts.pop() ?? 0
    this.#nameEnd = this.#nameEnds.pop() ?? 0
    this.#name = this.#names.pop() ?? ''
    this.#visitValue(kind, start)
  }

  #visitValue(kind: JsonKind, start: number): void {
    if (this.#path.length <= this.#valueDepth) {
      this.#visitor.value?.(this.#path, kind, start, this.#tokens.at, this.#memberStart, this.#nameEnd)
    }
  }

  #literal(text: string, kind: JsonKind): void {
    const start = this.#tokens.at
    this.#tokens.literal(text)
    this.#visitValue(kind, start)
  }

  /** Reads the name of a member, up to its value. @returns false when more of the name has to be read. */
  #scanName(): boolean {
    const tokens = this.#tokens
    const start = tokens.at
    if (tokens.readOnFrom === 0 && tokens.peek() !== QUOTE) tokens.fail('expected a member name')
    if (!tokens.string(this.#stringBytes)) return false
    this.#isNameNext = false
    this.#nameEnd = tokens.at - 1
    this.#enterMember(tokens.nameFrom(start))
    tokens.skipSpace()
    if (tokens.peek() !== COLON) tokens.fail('expected a colon')
    tokens.at++
    tokens.skipSpace()
    this.#memberStart = start
    return true
  }

  #enterMember(name: string): void {
    const depth = this.#path.length
    this.#path[depth - 1] = name
    this.#name = name
    if (depth <= this.#watchedAt) {
      this.#watchedAt = this.#watched.has(name) ? depth : Number.POSITIVE_INFINITY
    }
  }
}
