/**
 * How long a match of a pattern in RE2 syntax can get. A small reading of the syntax, only as exact as a bound needs:
 * whatever it does not know makes the answer "no bound", which is always safe.
 */

/** A part of a pattern: its longest match in UTF-16 units, and whether it is one repeated character class. */
interface Extent {
  longest: number | null
  /** A class or character repeated without bound, and nothing else. */
  tail: boolean
}

const ZERO: Extent = { longest: 0, tail: false }
const ZERO_WIDTH = new Set(['b', 'B', 'A', 'z', 'Z'])

/** @returns the bound, and whether every unbounded part is a repeated class at the pattern's very end */
export function lengthOf(source: string): { longest: number | null; endsItself: boolean } {
  const reader = new Reader(source)
  const { longest, selfEnding } = reader.alternatives()
  if (!reader.done) return { longest: null, endsItself: false }
  return { longest, endsItself: selfEnding }
}

interface Sequence {
  longest: number | null
  selfEnding: boolean
}

class Reader {
  readonly #source: string
  #position = 0

  constructor(source: string) {
    this.#source = source
  }

  get done(): boolean {
    return this.#position >= this.#source.length
  }

  alternatives(): Sequence {
    let all = this.#sequence()
    let count = 1
    while (this.#take('|')) {
      const next = this.#sequence()
      all = { longest: most(all.longest, next.longest), selfEnding: false }
      count++
    }
    return count === 1 ? all : { ...all, selfEnding: all.longest !== null }
  }

  #sequence(): Sequence {
    let longest: number | null = 0
    let selfEnding = true
    let ended = false
    while (!this.done && !this.#at('|') && !this.#at(')')) {
      const part = this.#repeated()
      if (part.longest === 0) continue
      if (ended) selfEnding = false
      if (part.longest === null) {
        if (!part.tail) selfEnding = false
        ended = true
      }
      longest = longest === null || part.longest === null ? null : longest + part.longest
    }
    return { longest, selfEnding }
  }

  /** An element with what repeats it. */
  #repeated(): Extent {
    let single = this.#isSingle()
    let { longest } = this.#element()
    for (;;) {
      const times = this.#quantifier()
      if (times === undefined) return { longest, tail: single }
      if (times === null) longest = longest === 0 ? 0 : null
      else {
        longest = longest === null ? null : longest * times
        single = false
      }
      this.#take('?')
    }
  }

  #isSingle(): boolean {
    return !this.#at('(')
  }

  /** @returns how often at most, null for without bound, undefined if there is no quantifier */
  #quantifier(): number | null | undefined {
    if (this.#take('*') || this.#take('+')) return null
    if (this.#take('?')) return 1
    const braces = /^\{(\d+)(?:(,)(\d*))?\}/.exec(this.#source.slice(this.#position, this.#position + 24))
    if (braces === null) return undefined
    this.#position += braces[0].length
    if (braces[2] === undefined) return Number(braces[1])
    return braces[3] === '' ? null : Number(braces[3])
  }

  #element(): Extent {
    const character = this.#source[this.#position++]
    if (character === '(') return this.#group()
    if (character === '[') return this.#class()
    if (character === '\\') return this.#escape()
    if (character === '^' || character === '$') return ZERO
    if (character === '.') return { longest: 2, tail: true }
    const point = this.#source.codePointAt(this.#position - 1) ?? 0
    if (point > 0xffff) this.#position++
    return { longest: point > 0xffff ? 2 : 1, tail: true }
  }

  #group(): Extent {
    const head = /^\?(?:P?<\w+>|[imsU-]*:)/.exec(this.#source.slice(this.#position, this.#position + 80))
    if (head !== null) this.#position += head[0].length
    else if (this.#at('?')) {
      const flags = /^\?[imsU-]+\)/.exec(this.#source.slice(this.#position, this.#position + 12))
      if (flags === null) return this.#unknown()
      this.#position += flags[0].length
      return ZERO
    }
    const { longest } = this.alternatives()
    return this.#take(')') ? { longest, tail: false } : this.#unknown()
  }

  /** A class in brackets: one character, which may be outside of the basic plane. */
  #class(): Extent {
    this.#take('^')
    this.#take(']')
    while (!this.done && !this.#at(']')) {
      if (this.#source.startsWith('[:', this.#position)) {
        const end = this.#source.indexOf(':]', this.#position)
        if (end < 0) return this.#unknown()
        this.#position = end + 2
      } else this.#position += this.#at('\\') ? 2 : 1
    }
    return this.#take(']') ? { longest: 2, tail: true } : this.#unknown()
  }

  #escape(): Extent {
    const letter = this.#source[this.#position++] ?? ''
    if (ZERO_WIDTH.has(letter)) return ZERO
    if (letter === 'Q') return this.#quoted()
    if (letter === 'p' || letter === 'P') {
      if (!this.#take('{')) this.#position++
      else this.#position = this.#source.indexOf('}', this.#position) + 1 || this.#source.length
      return { longest: 2, tail: true }
    }
    if (letter === 'x') {
      const code = /^(?:\{[0-9a-fA-F]+\}|[0-9a-fA-F]{2})/.exec(
        this.#source.slice(this.#position, this.#position + 12),
      )
      if (code === null) return this.#unknown()
      this.#position += code[0].length
      return { longest: 2, tail: true }
    }
    if (/[0-7]/.test(letter)) {
      const digits = /^[0-7]{0,2}/.exec(this.#source.slice(this.#position, this.#position + 2))
      this.#position += digits?.[0].length ?? 0
      return { longest: 1, tail: true }
    }
    // A negated class matches characters outside of the basic plane.
    if (/[DWS]/.test(letter)) return { longest: 2, tail: true }
    return /[dwsafnrtv]|[^A-Za-z0-9]/.test(letter) ? { longest: 1, tail: true } : this.#unknown()
  }

  /** `\Q...\E`: the characters as they are. A quantifier after it repeats the last only; a bound for all is safe. */
  #quoted(): Extent {
    const end = this.#source.indexOf('\\E', this.#position)
    const stop = end < 0 ? this.#source.length : end
    const longest = stop - this.#position
    this.#position = end < 0 ? stop : end + 2
    return { longest, tail: false }
  }

  #unknown(): Extent {
    this.#position = this.#source.length
    return { longest: null, tail: false }
  }

  #at(character: string): boolean {
    return this.#source[this.#position] === character
  }

  #take(character: string): boolean {
    if (!this.#at(character)) return false
    this.#position++
    return true
  }
}

const most = (left: number | null, right: number | null): number | null =>
  left === null || right === null ? null : Math.max(left, right)
