/**
 * A one-pass JSON scanner over bytes. It checks the whole text against RFC 8259 and calls a visitor with the places of
 * strings and shallow values, without a tree. Bodies can be edited in place, so that all other bytes stay as they were
 * sent. Memory is a stack of at most `MAXIMUM_DEPTH` entries.
 */

/**
 * Member names and element indexes from the root. The scanner changes it in place: copy it to keep it. A name above
 * `LONGEST_NAME_BYTES` is abbreviated to its first bytes and its offset, which makes it unique.
 */
export type JsonPath = ReadonlyArray<string | number>

export type JsonKind = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null'

export interface JsonVisitor {
  /**
   * A string value; `start` and `end` enclose its contents without the quotes, escapes untouched.
   * @param name the last member name on the path, '' without one. @param within whether one of `watched` is on the
   * path. Both are passed because a search through the path of every string takes too long in a deep body.
   */
  string?(path: JsonPath, start: number, end: number, name: string, within: boolean): void
  /** Member names for `within`. */
  watched?: ReadonlySet<string>
  /**
   * The end of a value no deeper than `valueDepth`.
   * @param memberStart where its key begins (for an element, or the root: where the value begins).
   */
  value?(path: JsonPath, kind: JsonKind, start: number, end: number, memberStart: number): void
  /** Values deeper than this many path entries are not passed to `value`. Default 1: the root's members. */
  valueDepth?: number
}

/** Text that is not JSON. `offset` is in bytes. */
export class JsonSyntaxError extends Error {
  readonly offset: number
  constructor(message: string, offset: number) {
    super(`${message} at byte ${offset}`)
    this.name = 'JsonSyntaxError'
    this.offset = offset
  }
}

/** Deeper nesting is refused: no client needs it, and later readers of the body may be recursive. */
export const MAXIMUM_DEPTH = 256

/** Text that may be JSON, but nests deeper than `MAXIMUM_DEPTH`. */
export class JsonDepthError extends JsonSyntaxError {
  constructor(offset: number) {
    super(`nested too deeply (at most ${MAXIMUM_DEPTH} levels)`, offset)
    this.name = 'JsonDepthError'
  }
}

/**
 * The engine reads resizable buffers slowly, and code that was compiled for them is slow for all others. Such bytes are
 * read through a window of ordinary memory.
 */
const isResizable = ({ buffer }: Uint8Array) => buffer instanceof ArrayBuffer && buffer.resizable
const WINDOW_BYTES = 16 * 1024

/** No protocol has longer names, and their text could take several times the memory of the body. */
export const LONGEST_NAME_BYTES = 1024
const ABBREVIATED_NAME_BYTES = 64
const NO_NAMES: ReadonlySet<string> = new Set()

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

/** A byte order mark within a string is a character of it: without it two different names would be equal. */
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })

/**
 * Scans one JSON text.
 * @throws JsonSyntaxError if `bytes` is not exactly one JSON value, or nests deeper than `MAXIMUM_DEPTH`.
 */
export function scanJson(bytes: Uint8Array, visitor: JsonVisitor): void {
  new Scanner(bytes, visitor).run()
}

/**
 * As `scanJson`, with pauses: yields after a value when `isDue` returns true.
 * @param isDue called after every value.
 */
export function scanJsonInSlices(
  bytes: Uint8Array,
  visitor: JsonVisitor,
  isDue: () => boolean,
): Generator<void, void> {
  return new Scanner(bytes, visitor).runInSlices(isDue)
}

/** By byte: 1 for bytes that end a run of plain bytes in a string. */
const ENDS_PLAIN = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 || byte === QUOTE || byte === BACKSLASH ? 1 : 0,
)

class Scanner {
  readonly #bytes: Uint8Array
  /** The part of the bytes that is being read, and where it begins in them. Reading only goes forward. */
  #window: Uint8Array
  #windowStart = 0
  readonly #visitor: JsonVisitor
  readonly #valueDepth: number
  readonly #watched: ReadonlySet<string>
  readonly #path: Array<string | number> = []
  readonly #isObject: boolean[] = []
  readonly #starts: number[] = []
  readonly #memberStarts: number[] = []
  readonly #names: string[] = []
  #name = ''
  /** Path length up to the first watched name, infinite without one. */
  #watchedAt = Number.POSITIVE_INFINITY
  #at = 0
  #memberStart = 0

  constructor(bytes: Uint8Array, visitor: JsonVisitor) {
    this.#bytes = bytes
    this.#window = isResizable(bytes) ? new Uint8Array() : bytes
    this.#visitor = visitor
    this.#valueDepth = visitor.valueDepth ?? 1
    this.#watched = visitor.watched ?? NO_NAMES
  }

  run(): void {
    this.#begin()
    for (let more = true; more; ) more = this.#scanValue() || this.#afterValue()
    this.#end()
  }

  *runInSlices(isDue: () => boolean): Generator<void, void> {
    this.#begin()
    for (let more = true; more; ) {
      more = this.#scanValue() || this.#afterValue()
      if (isDue()) yield
    }
    this.#end()
  }

  #begin(): void {
    this.#skipSpace()
    this.#memberStart = this.#at
  }

  #end(): void {
    this.#skipSpace()
    if (this.#at < this.#bytes.length) this.#fail('unexpected text after the JSON value')
  }

  /** @returns the byte at an offset that is not before the window, or undefined after the end. */
  #byteAt(at: number): number | undefined {
    const index = at - this.#windowStart
    if (index < this.#window.length) return this.#window[index]
    return at < this.#bytes.length ? this.#moveWindow(at) : undefined
  }

  #moveWindow(at: number): number | undefined {
    const part = this.#bytes.subarray(at, at + WINDOW_BYTES)
    if (this.#window.length < part.length) this.#window = new Uint8Array(part.length)
    this.#window.set(part)
    this.#window = this.#window.subarray(0, part.length)
    this.#windowStart = at
    return this.#window[0]
  }

  /** Reads one scalar, or opens a container. @returns true when a value has yet to be read inside it. */
  #scanValue(): boolean {
    const start = this.#at
    const byte = this.#byteAt(start)
    if (byte === QUOTE) {
      this.#scanString()
      const within = this.#watchedAt !== Number.POSITIVE_INFINITY
      this.#visitor.string?.(this.#path, start + 1, this.#at - 1, this.#name, within)
      this.#visitValue('string', start)
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) return this.#open(byte === OPEN_BRACE)
    else if (byte === 0x74) this.#literal('true', 'boolean')
    else if (byte === 0x66) this.#literal('false', 'boolean')
    else if (byte === 0x6e) this.#literal('null', 'null')
    else this.#scanNumber()
    return false
  }

  #open(isObject: boolean): boolean {
    if (this.#isObject.length >= MAXIMUM_DEPTH) throw new JsonDepthError(this.#at)
    this.#isObject.push(isObject)
    this.#starts.push(this.#at)
    this.#memberStarts.push(this.#memberStart)
    this.#names.push(this.#name)
    this.#at++
    this.#skipSpace()
    if (this.#byteAt(this.#at) === (isObject ? CLOSE_BRACE : CLOSE_BRACKET)) {
      this.#close()
      return false
    }
    this.#path.push(0)
    if (isObject) this.#scanKey()
    else this.#memberStart = this.#at
    return true
  }

  /** After a value: the next member or element, or the end of containers. @returns true when a value follows. */
  #afterValue(): boolean {
    while (this.#isObject.length > 0) {
      this.#skipSpace()
      const isObject = this.#isObject[this.#isObject.length - 1] === true
      const byte = this.#byteAt(this.#at)
      if (byte === COMMA) {
        this.#at++
        this.#skipSpace()
        if (isObject) this.#scanKey()
        else {
          const last = this.#path.length - 1
          this.#path[last] = (this.#path[last] as number) + 1
          this.#memberStart = this.#at
        }
        return true
      }
      if (byte !== (isObject ? CLOSE_BRACE : CLOSE_BRACKET)) this.#fail(`expected a comma or the end`)
      this.#path.pop()
      if (this.#watchedAt > this.#path.length) this.#watchedAt = Number.POSITIVE_INFINITY
      this.#close()
    }
    return false
  }

  #close(): void {
    this.#at++
    const kind = this.#isObject.pop() ? 'object' : 'array'
    const start = this.#starts.pop() ?? 0
    this.#memberStart = this.#memberStarts.pop() ?? 0
    this.#name = this.#names.pop() ?? ''
    this.#visitValue(kind, start)
  }

  #visitValue(kind: JsonKind, start: number): void {
    if (this.#path.length <= this.#valueDepth) {
      this.#visitor.value?.(this.#path, kind, start, this.#at, this.#memberStart)
    }
  }

  #scanKey(): void {
    const start = this.#at
    if (this.#byteAt(start) !== QUOTE) this.#fail('expected a member name')
    const escaped = this.#scanString()
    this.#enterMember(this.#nameOf(start + 1, this.#at - 1, escaped))
    this.#skipSpace()
    if (this.#byteAt(this.#at) !== COLON) this.#fail('expected a colon')
    this.#at++
    this.#skipSpace()
    this.#memberStart = start
  }

  #enterMember(name: string): void {
    const depth = this.#path.length
    this.#path[depth - 1] = name
    this.#name = name
    if (depth <= this.#watchedAt) {
      this.#watchedAt = this.#watched.has(name) ? depth : Number.POSITIVE_INFINITY
    }
  }

  #nameOf(start: number, end: number, escaped: boolean): string {
    if (end - start <= LONGEST_NAME_BYTES) {
      const offset = start - this.#windowStart
      if (offset < 0) return decodeString(this.#bytes, start, end, escaped)
      return decodeString(this.#window, offset, end - this.#windowStart, escaped)
    }
    return `${decoder.decode(this.#bytes.subarray(start, start + ABBREVIATED_NAME_BYTES))}… at byte ${start}`
  }

  /** @returns whether the string holds an escape. */
  #scanString(): boolean {
    let escaped = false
    let at = this.#at + 1
    for (;;) {
      at = this.#skipPlain(at)
      const byte = this.#byteAt(at)
      if (byte === QUOTE) break
      if (byte === BACKSLASH) {
        escaped = true
        at = this.#scanEscape(at)
      } else if (byte === undefined) this.#fail('unterminated string', at)
      else if (byte < 0x20) this.#fail('control character in a string', at)
    }
    this.#at = at + 1
    return escaped
  }

  /** @returns the offset of the next byte that is not plain, or the end of the window. */
  #skipPlain(at: number): number {
    const window = this.#window
    let index = at - this.#windowStart
    while (index < window.length && !ENDS_PLAIN[window[index] as number]) index++
    return index + this.#windowStart
  }

  #scanEscape(at: number): number {
    const byte = this.#byteAt(at + 1) ?? 0
    if (byte === 0x75) {
      for (let digit = at + 2; digit < at + 6; digit++) {
        if (!isHexDigit(this.#byteAt(digit) ?? 0)) this.#fail('invalid unicode escape', at)
      }
      return at + 6
    }
    if (!'"\\/bfnrt'.includes(String.fromCharCode(byte))) this.#fail('invalid escape', at)
    return at + 2
  }

  #scanNumber(): void {
    const start = this.#at
    if (this.#byteAt(this.#at) === 0x2d) this.#at++
    if (this.#byteAt(this.#at) === 0x30) this.#at++
    else this.#digits()
    if (this.#byteAt(this.#at) === 0x2e) {
      this.#at++
      this.#digits()
    }
    const exponent = this.#byteAt(this.#at)
    if (exponent === 0x65 || exponent === 0x45) {
      this.#at++
      const sign = this.#byteAt(this.#at)
      if (sign === 0x2b || sign === 0x2d) this.#at++
      this.#digits()
    }
    this.#visitValue('number', start)
  }

  #digits(): void {
    const start = this.#at
    while (isDigit(this.#byteAt(this.#at) ?? 0)) this.#at++
    if (this.#at === start)
      this.#fail(start >= this.#bytes.length ? 'unexpected end' : 'unexpected character')
  }

  #literal(text: string, kind: JsonKind): void {
    const start = this.#at
    for (let index = 0; index < text.length; index++) {
      if (this.#byteAt(start + index) !== text.charCodeAt(index)) this.#fail('unexpected character')
    }
    this.#at += text.length
    this.#visitValue(kind, start)
  }

  #skipSpace(): void {
    for (;;) {
      const byte = this.#byteAt(this.#at)
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return
      this.#at++
    }
  }

  #fail(message: string, at = this.#at): never {
    throw new JsonSyntaxError(message, at)
  }
}

const isDigit = (byte: number) => byte >= 0x30 && byte <= 0x39
const isHexDigit = (byte: number) => isDigit(byte) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66)

/**
 * The text of a JSON string's contents, whose escapes are valid. Short strings are decoded here: a text decoder and a
 * parser take many times as long for them.
 * @param escaped false skips the search for escapes.
 */
export function decodeString(bytes: Uint8Array, start: number, end: number, escaped = true): string {
  if (end - start > SHORT_BYTES) return decodeLong(bytes.subarray(start, end), escaped)
  let text = ''
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number
    if (byte >= 0x80) return decodeLong(bytes.subarray(start, end), escaped)
    if (byte !== BACKSLASH) text += String.fromCharCode(byte)
    else {
      const kind = bytes[++at] as number
      text += kind === 0x75 ? String.fromCharCode(hexadecimal(bytes, at + 1)) : (ESCAPED[kind] ?? '')
      if (kind === 0x75) at += 4
    }
  }
  return text
}

function decodeLong(contents: Uint8Array, escaped: boolean): string {
  if (escaped && contents.includes(BACKSLASH)) {
    return JSON.parse(`"${decoder.decode(contents)}"`) as string
  }
  return decoder.decode(contents)
}

/** The value of four hexadecimal digits. */
function hexadecimal(bytes: Uint8Array, start: number): number {
  let value = 0
  for (let at = start; at < start + 4; at++) {
    const byte = bytes[at] as number
    value = value * 16 + (isDigit(byte) ? byte - 0x30 : (byte | 0x20) - 0x57)
  }
  return value
}

/** By the byte after a backslash: the character (RFC 8259 section 7). */
const ESCAPED: string[] = []
for (const [letter, character] of ['""', '\\\\', '//', 'b\b', 'f\f', 'n\n', 'r\r', 't\t']) {
  ESCAPED[(letter as string).charCodeAt(0)] = character as string
}

/** Up to this size a text decoder takes longer than decoding byte by byte. */
const SHORT_BYTES = 48
