/**
 * How long the matches of a pattern in RE2 syntax can get, and a pattern for their beginnings. The syntax is parsed only
 * as far as a bound needs: anything else counts as "no bound", which is always safe.
 */
interface PatternExtent {
  /** The most UTF-16 units of a match; null for no bound. */
  longest: number | null
  /** Whether every unbounded part is a repeated class at the pattern's very end, where a match ends itself. */
  endsItself: boolean
  /** A pattern that matches each beginning of each match, the empty one too. */
  beginnings: string
}

/** A part of a pattern. */
interface Part {
  longest: number | null
  /** A class or character repeated, and nothing else. */
  single: boolean
  /** Source without names of groups, so that it can be repeated. */
  source: string
  beginnings: string
}

const part = (source: string, longest: number): Part => ({
  source,
  longest,
  single: true,
  beginnings: longest === 0 ? '' : `(?:${source})?`,
})

/** Reads a pattern that compiles. */
export function extentOf(source: string): PatternExtent {
  const reader = new Reader(source)
  const { longest, endsItself, beginnings } = reader.alternatives()
  return reader.done
    ? { longest, endsItself, beginnings }
    : { longest: null, endsItself: false, beginnings: '' }
}

interface Alternatives extends PatternExtent {
  source: string
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

  alternatives(): Alternatives {
    const all = [this.#sequence()]
    while (this.#take('|')) all.push(this.#sequence())
    const [first] = all
    if (all.length === 1 && first !== undefined) return first
    const longest = all.reduce<number | null>((most, { longest }) => larger(most, longest), 0)
    return {
      longest,
      endsItself: longest !== null,
      source: all.map(({ source }) => source).join('|'),
      beginnings: all.map(({ beginnings }) => beginnings).join('|'),
    }
  }

  #sequence(): Alternatives {
    const parts: Part[] = []
    while (!this.done && !this.#at('|') && !this.#at(')')) parts.push(this.#repeated())
    const lengths = parts.map(({ longest }) => longest)
    const unbounded = parts.findIndex(({ longest }) => longest === null)
    const afterwards = parts.slice(unbounded + 1).every(({ longest }) => longest === 0)
    return {
      longest: lengths.reduce<number | null>(
        (sum, each) => (sum === null || each === null ? null : sum + each),
        0,
      ),
      endsItself: unbounded < 0 || (afterwards && parts[unbounded]?.single === true),
      source: parts.map(({ source }) => source).join(''),
      beginnings: beginningsOf(parts),
    }
  }

  /** An element with what repeats it. */
  #repeated(): Part {
    const element = this.#element()
    const start = this.#position
    const times = this.#quantifier()
    if (times === undefined) return element
    this.#take('?')
    const { longest, source, single } = element
    const some = times === null ? '*' : `{0,${times}}`
    return {
      longest: longest === 0 ? 0 : times === null || longest === null ? null : longest * times,
      single,
      source: `${source}${this.#source.slice(start, this.#position)}`,
      beginnings: single ? `(?:${source})${some}` : `(?:${source})${some}(?:${element.beginnings})`,
    }
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

  #element(): Part {
    const start = this.#position
    const character = this.#source[this.#position++]
    if (character === '(') return this.#group()
    let longest: number | null = 1
    if (character === '[') longest = this.#class()
    else if (character === '\\') longest = this.#escape()
    else if (character === '^' || character === '$') longest = 0
    else if (character === '.') longest = 2
    else if ((this.#source.codePointAt(start) ?? 0) > 0xffff) {
      this.#position++
      longest = 2
    }
    return longest === null ? this.#unknown() : part(this.#source.slice(start, this.#position), longest)
  }

  #group(): Part {
    let head =
      /^\?(?:P?<\w+>|[imsU-]*:)/.exec(this.#source.slice(this.#position, this.#position + 80))?.[0] ?? ''
    if (head === '' && this.#at('?')) {
      const flags = /^\?[imsU-]+\)/.exec(this.#source.slice(this.#position, this.#position + 12))?.[0]
      if (flags === undefined) return this.#unknown()
      this.#position += flags.length
      return { ...part(`(${flags}`, 0), beginnings: `(${flags}` }
    }
    this.#position += head.length
    if (!head.endsWith(':')) head = '?:'
    const { longest, source, beginnings } = this.alternatives()
    if (!this.#take(')')) return this.#unknown()
    return { longest, single: false, source: `(${head}${source})`, beginnings: `(${head}${beginnings})` }
  }

  /** A class in brackets: one character, which may be outside of the basic plane. */
  #class(): number | null {
    this.#take('^')
    this.#take(']')
    while (!this.done && !this.#at(']')) {
      if (this.#source.startsWith('[:', this.#position)) {
        const end = this.#source.indexOf(':]', this.#position)
        if (end < 0) return null
        this.#position = end + 2
      } else this.#position += this.#at('\\') ? 2 : 1
    }
    return this.#take(']') ? 2 : null
  }

  /** @returns the most units of what an escape stands for, null for one that is not known */
  #escape(): number | null {
    const letter = this.#source[this.#position++] ?? ''
    if (/[bBAz]/.test(letter)) return 0
    if (letter === 'p' || letter === 'P') {
      if (!this.#take('{')) this.#position++
      else this.#position = this.#source.indexOf('}', this.#position) + 1 || this.#source.length
      return 2
    }
    if (letter === 'x') {
      const code = /^(?:\{[0-9a-fA-F]+\}|[0-9a-fA-F]{2})/.exec(
        this.#source.slice(this.#position, this.#position + 12),
      )
      this.#position += code?.[0].length ?? 0
      return code === null ? null : 2
    }
    // A negated class matches characters outside of the basic plane.
    if (/[DWS]/.test(letter)) return 2
    return /[dwsafnrtv]|[^A-Za-z0-9]/.test(letter) ? 1 : null
  }

  #unknown(): Part {
    this.#position = this.#source.length
    return { longest: null, single: false, source: '', beginnings: '' }
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

/** Each part whole and a beginning of the rest, or a beginning of the part. Parts without width are left out. */
function beginningsOf(parts: readonly Part[]): string {
  return parts.reduceRight((rest, { longest, source, beginnings }) => {
    if (longest === 0) return beginnings + rest
    return rest === '' ? beginnings : `(?:${source}(?:${rest})|${beginnings})`
  }, '')
}

const larger = (left: number | null, right: number | null): number | null =>
  left === null || right === null ? null : Math.max(left, right)
