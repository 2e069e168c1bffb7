import { decodeName, decodeString } from './json-string.ts'
import { JsonSyntaxError } from './json-visitor.ts'
import type { Slices } from './slices.ts'

/**
 * The engine reads resizable buffers slowly, and code that was compiled for them is slow for all others. Such bytes are
 * read through a window of ordinary memory.
 */
const isResizable = ({ buffer }: Uint8Array) => buffer instanceof ArrayBuffer && buffer.resizable
const WINDOW_BYTES = 16 * 1024

/**
 * No protocol has longer names, and their text could take several times the memory of the body.
 * @internal A bound that tests reach.
 */
export const LONGEST_NAME_BYTES = 1024
const ABBREVIATED_NAME_BYTES = 64

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** A byte order mark within a string is a character of it: without it two different names would be equal. */
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })

/** A table indexed by byte: 1 for the bytes of one kind. */
const tableOf = (isMember: (byte: number) => boolean) =>
  Uint8Array.from({ length: 256 }, (_, byte) => Number(isMember(byte)))

const isDigit = (byte: number) => byte >= 0x30 && byte <= 0x39
const isHexDigit = (byte: number) => isDigit(byte) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66)
const isSpace = (byte: number) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** Table of the bytes that need no escape in a string. */
export const PLAIN = tableOf((byte) => byte >= 0x20 && byte !== QUOTE && byte !== BACKSLASH)
const DIGITS = tableOf(isDigit)
const SPACES = tableOf(isSpace)

/** Bytes of a stretch that is looked up in place of being read, where all of it is digits, or space. */
const STRETCH_BYTES = 64 * 1024

/** Reads the tokens of a JSON text from left to right, and checks them against RFC 8259. Errors are JsonSyntaxErrors. */
export class JsonTokens {
  /** Position of the next token. */
  at = 0
  /** Position where an unfinished long string continues; 0 while no string is unfinished. */
  readOnFrom = 0
  /** Whether the last string holds an escape. */
  isEscaped = false
  readonly #bytes: Uint8Array
  /** The part of the bytes that is being read, and its offset in them. Reading only moves forward. */
  #window: Uint8Array
  #windowStart = 0
  /** Table of bytes for each stretch, when all bytes of the stretch are in that table; empty until the stretch was searched. */
  #stretches: Array<Uint8Array | undefined> = []

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.#window = isResizable(bytes) ? new Uint8Array() : bytes
  }

  /**
   * Finds numbers and blanks of so many bytes that reading them at once would take long. A stretch of them begins and ends
   * with such a byte, so that no other is read.
   */
  *findLongRuns(): Slices<void> {
    const bytes = this.#bytes
    const stretches: Array<Uint8Array | undefined> = []
    for (let start = 0; start + STRETCH_BYTES <= bytes.length; start += STRETCH_BYTES) {
      const kind = [DIGITS, SPACES].find((table) => table[bytes[start] as number])
      if (!kind?.[bytes[start + STRETCH_BYTES - 1] as number]) continue
      // A copy: resizable buffers are read slowly.
      const stretch = bytes.slice(start, start + STRETCH_BYTES)
      if (stretch.every((byte) => kind[byte] === 1)) stretches[start / STRETCH_BYTES] = kind
      yield
    }
    this.#stretches = stretches
  }

  /** The first byte of the next token, or undefined after the end. */
  peek(): number | undefined {
    return this.#byteAt(this.at)
  }

  skipSpace(): void {
    while (isSpace(this.#byteAt(this.at) ?? 0)) this.at = this.#skip(SPACES, this.at, this.#stretchEnd())
  }

  /**
   * Reads a string, or continues a long one.
   * @param most bytes that are read at once. @returns false when there are more: called again, it continues.
   */
  string(most: number): boolean {
    if (this.readOnFrom === 0) this.isEscaped = false
    let at = this.readOnFrom || this.at + 1
    const limit = at + most
    for (;;) {
      at = this.#skip(PLAIN, at, limit)
      const byte = this.#byteAt(at)
      if (byte === QUOTE) break
      if (byte === BACKSLASH) {
        this.isEscaped = true
        at = this.#escape(at)
      } else if (byte === undefined) this.fail('unterminated string', at)
      else if (byte < 0x20) this.fail('control character in a string', at)
      if (at < limit) continue
      this.readOnFrom = at
      return false
    }
    this.readOnFrom = 0
    this.at = at + 1
    return true
  }

  /** The text of a name that was read as a string, from its opening quote; a long one is abbreviated. */
  nameFrom(quote: number): string {
    const [start, end] = [quote + 1, this.at - 1]
    if (end - start > LONGEST_NAME_BYTES) {
      return `${decoder.decode(this.#bytes.subarray(start, start + ABBREVIATED_NAME_BYTES))}… at byte ${start}`
    }
    const offset = start - this.#windowStart
    if (offset < 0) return decodeString(this.#bytes, start, end, this.isEscaped)
    const decode = this.isEscaped ? decodeString : decodeName
    return decode(this.#window, offset, end - this.#windowStart)
  }

  number(): void {
    if (this.peek() === 0x2d) this.at++
    if (this.peek() === 0x30) this.at++
    else this.#digits()
    if (this.peek() === 0x2e) {
      this.at++
      this.#digits()
    }
    const exponent = this.peek()
    if (exponent === 0x65 || exponent === 0x45) {
      this.at++
      const sign = this.peek()
      if (sign === 0x2b || sign === 0x2d) this.at++
      this.#digits()
    }
  }

  literal(text: string): void {
    const start = this.at
    for (let index = 0; index < text.length; index++) {
      if (this.#byteAt(start + index) !== text.charCodeAt(index)) this.fail('unexpected character')
    }
    this.at += text.length
  }

  end(): void {
    this.skipSpace()
    if (this.at < this.#bytes.length) this.fail('unexpected text after the JSON value')
  }

  fail(message: string, at = this.at): never {
    throw new JsonSyntaxError(message, at)
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

  /** Skips bytes of one kind. @returns the offset of the next byte of another kind, or the end of the window, or `limit`. */
  #skip(kind: Uint8Array, at: number, limit: number): number {
    if (at % STRETCH_BYTES === 0 && this.#stretches[at / STRETCH_BYTES] === kind) return at + STRETCH_BYTES
    const window = this.#window
    const end = Math.min(window.length, limit - this.#windowStart)
    let index = at - this.#windowStart
    while (index < end && kind[window[index] as number]) index++
    return index + this.#windowStart
  }

  /** The end of the stretch that the current byte is in. */
  #stretchEnd(): number {
    const { length } = this.#bytes
    if (this.#stretches.length === 0) return length
    return Math.min(length, (Math.floor(this.at / STRETCH_BYTES) + 1) * STRETCH_BYTES)
  }

  #escape(at: number): number {
    const byte = this.#byteAt(at + 1) ?? 0
    if (byte === 0x75) {
      for (let digit = at + 2; digit < at + 6; digit++) {
        if (!isHexDigit(this.#byteAt(digit) ?? 0)) this.fail('invalid unicode escape', at)
      }
      return at + 6
    }
    if (!'"\\/bfnrt'.includes(String.fromCharCode(byte))) this.fail('invalid escape', at)
    return at + 2
  }

  #digits(): void {
    const start = this.at
    const { length } = this.#bytes
    while (isDigit(this.#byteAt(this.at) ?? 0)) {
      this.at = this.#skip(DIGITS, this.at, this.#stretchEnd())
    }
    if (this.at === start) this.fail(start >= length ? 'unexpected end' : 'unexpected character')
  }
}
