import { BOTH, BREAK, classOf, END, LOWER, MARK, NUMBER, OTHER, SPACE, UPPER } from './character-classes.ts'

/**
 * Splits UTF-8 text into the pieces that o200k_base encodes one by one. The rule is the vendor's regular expression
 * (`pat_str` of o200k_base, https://github.com/openai/tiktoken/blob/main/tiktoken_ext/openai_public.py), as code:
 * every alternative is one run over the characters, so that the work is linear.
 */
export class PieceReader {
  readonly #bytes: Uint8Array
  #end = 0
  /** Bytes of the character that was read last. */
  #size = 0
  /** Whether the last piece depended on what follows the bytes at hand. */
  starved = false

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  /** @returns where the piece that begins at `start` ends. @param end of the text; `start` lies before it. */
  next(start: number, end: number): number {
    this.#end = end
    this.starved = false
    const first = this.#read(start)
    const second = start + this.#size
    if (first === NUMBER) return this.#numbers(second)
    if (first === BREAK || first === SPACE) {
      return (first === SPACE && this.#afterSpace(start, second)) || this.#spaces(start)
    }
    const word = first === OTHER ? this.#word(second) : this.#wordAt(first, start, second)
    return word || this.#symbols(start)
  }

  /** A character that is no letter and no number may lead a word; a mark may also be its first letter. */
  #wordAt(first: number, start: number, second: number): number {
    if (first !== MARK) return this.#word(start)
    return (
      this.#lowerWord(second) || this.#lowerWord(start) || this.#upperWord(second) || this.#upperWord(start)
    )
  }

  /** @returns the end of the word that begins at `start`, or 0. */
  #word(start: number): number {
    return this.#lowerWord(start) || this.#upperWord(start)
  }

  #afterSpace(start: number, second: number): number {
    const word = this.#word(second)
    if (word > 0) return word
    if (this.#bytes[start] !== 0x20) return 0
    const next = this.#read(second)
    return next === OTHER || next === MARK ? this.#symbols(second) : 0
  }

  /**
   * `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` and a contraction. Where no lower case letter ends the
   * first half, its last character without case has to be the second half.
   */
  #lowerWord(start: number): number {
    let at = start
    let kind = this.#read(at)
    let afterBoth = 0
    while ((kind & UPPER) !== 0) {
      at += this.#size
      if ((kind & BOTH) === BOTH) afterBoth = at
      kind = this.#read(at)
    }
    if (kind !== LOWER) return afterBoth && this.#contraction(afterBoth)
    while ((kind & LOWER) !== 0) {
      at += this.#size
      kind = this.#read(at)
    }
    return this.#contraction(at)
  }

  /** `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+` and a contraction, where `#lowerWord` found nothing: no lower case follows. */
  #upperWord(start: number): number {
    let at = start
    for (let kind = this.#read(at); (kind & UPPER) !== 0; kind = this.#read(at)) {
      at += this.#size
    }
    return at === start ? 0 : this.#contraction(at)
  }

  /** `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll` or `'d` in either case. @returns the end of it, or `at` without one. */
  #contraction(at: number): number {
    if (this.#byte(at) !== 0x27) return at
    const first = this.#byte(at + 1) | 0x20
    if (first === 0x73 || first === 0x74 || first === 0x6d || first === 0x64) return at + 2
    const second = this.#byte(at + 2) | 0x20
    // The long s is an s without regard to case: bytes c5 bf, here with the bit of lower case.
    if (this.#byte(at + 1) === 0xc5 && this.#byte(at + 2) === 0xbf) return at + 3
    if ((first === 0x72 || first === 0x76) && second === 0x65) return at + 3
    return first === 0x6c && second === 0x6c ? at + 3 : at
  }

  #numbers(second: number): number {
    let at = second
    for (let count = 1; count < 3 && this.#read(at) === NUMBER; count++) at += this.#size
    return at
  }

  /** `[^\s\p{L}\p{N}]+[\r\n/]*` */
  #symbols(start: number): number {
    let at = start
    let kind = this.#read(at)
    while (kind === OTHER || kind === MARK) {
      at += this.#size
      kind = this.#read(at)
    }
    while (kind === BREAK || this.#byte(at) === 0x2f) {
      at++
      kind = this.#read(at)
    }
    return at
  }

  /** `\s*[\r\n]+|\s+(?!\S)|\s+`: up to the last line break, or else all spaces but the one before a word. */
  #spaces(start: number): number {
    let at = start
    let last = start
    let afterBreak = 0
    let kind = this.#read(at)
    while (kind === SPACE || kind === BREAK) {
      last = at
      at += this.#size
      if (kind === BREAK) afterBreak = at
      kind = this.#read(at)
    }
    if (afterBreak > 0) return afterBreak
    return kind === END || last === start ? at : last
  }

  #byte(at: number): number {
    if (at < this.#end) return this.#bytes[at] as number
    this.starved = true
    return 0
  }

  /** The class of the character at a place; its length goes to `#size`. Invalid UTF-8 is read byte by byte. */
  #read(at: number): number {
    this.#size = 1
    if (at >= this.#end) {
      this.starved = true
      return END
    }
    const first = this.#bytes[at] as number
    if (first < 0x80) return classOf(first)
    const size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1
    if (size === 1 || at + size > this.#end) return OTHER
    let codePoint = first & (0x7f >> size)
    for (let index = 1; index < size; index++) {
      codePoint = (codePoint << 6) | ((this.#bytes[at + index] as number) & 0x3f)
    }
    this.#size = size
    return codePoint > 0x10_ffff ? OTHER : classOf(codePoint)
  }
}
