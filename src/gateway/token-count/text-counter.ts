import { BytePairs, LONGEST_PIECE } from './byte-pairs.ts'
import { KIND, kindOfPiece, PIECE_KINDS } from './piece-kinds.ts'
import { PieceReader } from './text-pieces.ts'
import { loadVocabulary } from './vocabulary.ts'

/** Size of the buffer through which text is counted. */
const WINDOW_BYTES = 1 << 16
/**
 * Added for every cut of a piece. Pieces longer than `LONGEST_PIECE` or the window are cut; real text has none. Near a
 * cut the bytes join differently, by fewer tokens than this in all measurements.
 */
const CUT_TOKENS = 8
/** Room for one escape or character, with the spaces that may follow it. */
const WRITE_ROOM = 16
/**
 * Twice the largest context window of any model. Text beyond so many tokens is not read: every byte of it counts as a
 * token, which is an upper bound.
 */
const MOST_TOKENS = 4_000_000
/**
 * Limit of work, about two seconds. Real texts of `MOST_TOKENS` take half of it; only words of thousands of letters
 * take more. Text beyond it counts in bytes, as above.
 */
const MOST_LOOKUPS = 30_000_000
/** Tokens that a number with an exponent may gain when it is written out, with up to 21 digits. */
const EXPONENT_TOKENS = 7

const QUOTE = 0x22
const BACKSLASH = 0x5c
const SLASH = 0x2f

const SPACE_AFTER = ' '
const LINE_AFTER = '\n    '

/** `JSON.stringify`; Python's `json.dumps`; the same with every member on a line of its own. */
export type JsonLayout = 'compact' | 'spaced' | 'indented'

/** Counts of texts, by kind of piece (indexes of `PIECE_KINDS`). */
export interface TextTotals {
  /** Tokens of o200k_base. */
  tokens: Float64Array
  digits: number
  /** Tokens of no kind, such as those of text that was not read. */
  more: number
}

/**
 * Counts the tokens of texts, each pushed in parts. Texts are UTF-8, or the contents of JSON strings, whose escapes are
 * decoded here, so that no text is held in memory as a whole.
 */
export class TextCounter {
  readonly totals: TextTotals = { tokens: new Float64Array(PIECE_KINDS.length), digits: 0, more: 0 }
  /** Tokens of o200k_base so far. */
  tokens = 0
  readonly #window = new Uint8Array(WINDOW_BYTES)
  readonly #reader = new PieceReader(this.#window)
  readonly #pairs = new BytePairs(loadVocabulary())
  #filled = 0
  /** The first half of a surrogate pair in escapes, until the second half follows; else 0. */
  #highSurrogate = 0
  #words = 0
  #wordTokens = 0
  #latinWords = 0

  readonly #limits: { tokens: number; lookups: number }

  /** @param limits after which texts count in bytes. */
  constructor(limits: { tokens: number; lookups: number } = { tokens: MOST_TOKENS, lookups: MOST_LOOKUPS }) {
    this.#limits = limits
  }

  /** Look-ups in the vocabulary so far, as a measure of work. */
  get lookups(): number {
    return this.#pairs.lookups
  }

  /** Adds the contents of a JSON string, its escapes untouched, to the current text. */
  pushJson(bytes: Uint8Array, start: number, end: number): void {
    let at = start
    while (at < end) {
      if (this.#isFull(end - at)) return
      if (bytes[at] === BACKSLASH) at = this.#pushEscape(bytes, at)
      else at = this.#pushCharacter(bytes, at, end)
    }
  }

  /** Adds a JSON value as text, serialized anew: white space by `layout`, and only the necessary escapes. */
  pushJsonSource(bytes: Uint8Array, start: number, end: number, layout: JsonLayout): void {
    let at = start
    let inString = false
    while (at < end) {
      if (this.#isFull(end - at)) return
      const byte = bytes[at] as number
      if (byte === QUOTE) inString = !inString
      if (byte === BACKSLASH) at = this.#pushNeededEscape(bytes, at)
      else if (!inString && byte <= 0x20) at++
      else {
        // An e after a digit is an exponent; in `true` and `false` it follows a letter.
        if (!inString && (byte | 0x20) === 0x65 && isDigit(bytes[at - 1])) this.totals.more += EXPONENT_TOKENS
        at = this.#pushCharacter(bytes, at, end)
        if (!inString && layout !== 'compact') this.#pushSpaces(byte, layout)
      }
    }
  }

  /** Adds plain text to the current text. */
  push(text: string): void {
    const bytes = encoder.encode(text)
    for (let at = 0; at < bytes.length; ) {
      if (this.#isFull(bytes.length - at)) return
      at = this.#pushCharacter(bytes, at, bytes.length)
    }
  }

  /** Ends the current text. */
  end(): void {
    this.#flushSurrogate()
    this.#count(true)
    // In other languages than English even words without special letters take more tokens.
    const foreign = this.#latinWords > 0 && this.#latinWords * 40 >= this.#words
    this.#addTo(foreign ? KIND.foreignWord : KIND.word, this.#wordTokens)
    this.#words = 0
    this.#wordTokens = 0
    this.#latinWords = 0
  }

  /** Copies a character, so that a window never ends within one. @returns where the next one begins. */
  #pushCharacter(bytes: Uint8Array, start: number, end: number): number {
    if (this.#highSurrogate !== 0) this.#flushSurrogate()
    let at = start
    this.#window[this.#filled++] = bytes[at++] as number
    if ((bytes[start] as number) < 0x80) return at
    const last = Math.min(end, start + 4)
    while (at < last && ((bytes[at] as number) & 0xc0) === 0x80) {
      this.#window[this.#filled++] = bytes[at++] as number
    }
    return at
  }

  /** The spaces that Python writes after a character of JSON. */
  #pushSpaces(byte: number, layout: JsonLayout): void {
    const breaks = byte === 0x2c || byte === 0x7b || byte === 0x5b
    const spaces = layout === 'spaced' ? SPACE_AFTER : breaks ? LINE_AFTER : byte === 0x3a ? SPACE_AFTER : ''
    if (layout === 'spaced' && byte !== 0x2c && byte !== 0x3a) return
    for (let index = 0; index < spaces.length; index++)
      this.#window[this.#filled++] = spaces.charCodeAt(index)
  }

  /** Makes room in the window. @returns true beyond the limits, where `rest` is added in bytes. */
  #isFull(rest: number): boolean {
    if (this.tokens >= this.#limits.tokens || this.lookups >= this.#limits.lookups) {
      this.totals.more += rest
      return true
    }
    if (this.#filled > WINDOW_BYTES - WRITE_ROOM) this.#count(false)
    return false
  }

  #pushEscape(bytes: Uint8Array, at: number): number {
    const letter = bytes[at + 1] as number
    if (letter !== 0x75) {
      if (this.#highSurrogate !== 0) this.#flushSurrogate()
      this.#window[this.#filled++] = SHORT_ESCAPES[letter] ?? letter
      return at + 2
    }
    this.#pushUnit(unitOfEscape(bytes, at))
    return at + 6
  }

  /** As `#pushEscape`, for text that is JSON itself: necessary escapes stay. */
  #pushNeededEscape(bytes: Uint8Array, at: number): number {
    const letter = bytes[at + 1] as number
    const unit = letter === 0x75 ? unitOfEscape(bytes, at) : 0
    if (unit >= 0x20 && unit !== QUOTE && unit !== BACKSLASH) return this.#pushEscape(bytes, at)
    if (this.#highSurrogate !== 0) this.#flushSurrogate()
    if (letter !== SLASH) this.#window[this.#filled++] = BACKSLASH
    this.#window[this.#filled++] = letter
    return at + 2
  }

  /** A UTF-16 code unit. An unpaired surrogate becomes U+FFFD, as in the encoded request. */
  #pushUnit(unit: number): void {
    const high = this.#highSurrogate
    if (high !== 0 && unit >= 0xdc00 && unit <= 0xdfff) {
      this.#highSurrogate = 0
      this.#write(0x1_0000 + ((high - 0xd800) << 10) + (unit - 0xdc00))
      return
    }
    this.#flushSurrogate()
    if (unit >= 0xd800 && unit <= 0xdbff) this.#highSurrogate = unit
    else this.#write(unit >= 0xdc00 && unit <= 0xdfff ? 0xfffd : unit)
  }

  #flushSurrogate(): void {
    if (this.#highSurrogate === 0) return
    this.#highSurrogate = 0
    this.#write(0xfffd)
  }

  #write(codePoint: number): void {
    const window = this.#window
    if (codePoint < 0x80) window[this.#filled++] = codePoint
    else {
      const following = codePoint < 0x800 ? 1 : codePoint < 0x1_0000 ? 2 : 3
      window[this.#filled++] = (0xf00 >> (following + 1)) | (codePoint >> (6 * following))
      for (let index = following - 1; index >= 0; index--) {
        window[this.#filled++] = 0x80 | ((codePoint >> (6 * index)) & 0x3f)
      }
    }
  }

  /** Counts the window's pieces; unless `final`, the last piece waits for the bytes that follow it. */
  #count(final: boolean): void {
    const window = this.#window
    const reader = this.#reader
    let at = 0
    while (at < this.#filled) {
      const end = reader.next(at, this.#filled)
      if (reader.starved && !final) {
        if (at > WINDOW_BYTES / 2 || this.#filled < WINDOW_BYTES - WRITE_ROOM) break
        this.totals.more += CUT_TOKENS
      }
      this.#addPiece(at, end)
      at = end
    }
    window.copyWithin(0, at, this.#filled)
    this.#filled -= at
  }

  #addPiece(start: number, end: number): void {
    const kind = kindOfPiece(this.#window, start, end)
    if (kind === KIND.digits) this.totals.digits += end - start
    else if (kind === KIND.word) this.#words++
    else if (kind === KIND.latin || kind === KIND.vietnamese) this.#latinWords++
    let at = start
    for (; end - at > LONGEST_PIECE; at += LONGEST_PIECE) {
      this.#add(kind, this.#pairs.count(this.#window, at, at + LONGEST_PIECE))
      this.totals.more += CUT_TOKENS
    }
    this.#add(kind, this.#pairs.count(this.#window, at, end))
  }

  #add(kind: number, tokens: number): void {
    this.tokens += tokens
    if (kind === KIND.word) this.#wordTokens += tokens
    else this.#addTo(kind, tokens)
  }

  #addTo(kind: number, tokens: number): void {
    this.totals.tokens[kind] = (this.totals.tokens[kind] as number) + tokens
  }
}

const encoder = new TextEncoder()

const SHORT_ESCAPES: Readonly<Record<number, number>> = {
  98: 0x08,
  102: 0x0c,
  110: 0x0a,
  114: 0x0d,
  116: 0x09,
}

/** The code unit of `\uXXXX`, which begins at a place. */
function unitOfEscape(bytes: Uint8Array, at: number): number {
  let unit = 0
  for (let digit = at + 2; digit < at + 6; digit++) unit = unit * 16 + hexValue(bytes[digit] as number)
  return unit
}

const isDigit = (byte: number | undefined) => byte !== undefined && byte >= 0x30 && byte <= 0x39
const hexValue = (byte: number) => (byte <= 0x39 ? byte - 0x30 : (byte | 0x20) - 0x57)
