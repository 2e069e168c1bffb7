import { decodeEntities } from './entities.ts'

/** The attributes that are read. */
export type Attributes = Partial<Record<(typeof READ_ATTRIBUTES)[number], string>>

export type HtmlToken =
  | { kind: 'text'; text: string }
  | { kind: 'open'; name: string; attributes: Attributes }
  | { kind: 'close'; name: string }

const READ_ATTRIBUTES = ['href', 'hidden', 'style', 'class', 'role', 'aria-hidden', 'open', 'start'] as const
const READ: ReadonlySet<string> = new Set(READ_ATTRIBUTES)
const LONGEST_VALUE = 4_000
const LONGEST_NAME = 40
/** Characters of one text token: longer texts are several tokens, so that the work on each is short. */
const LONGEST_TEXT = 32 * 1024

/** Further attributes of a tag are left out. */
const MOST_ATTRIBUTES = 200

const [SLASH, LESS, EQUALS, GREATER] = [47, 60, 61, 62]
const SPACES = /[ \t\n\f\r]*/y
const TAG_NAME = /[^ \t\n\f\r/>]*/y
const BEFORE_ATTRIBUTE = /[ \t\n\f\r/]*/y
const ATTRIBUTE_NAME = /[^ \t\n\f\r/>=]*/y
const UNQUOTED = /[^ \t\n\f\r>]*/y
const WITHIN_TAG = /[^>]*/y

/**
 * Splits HTML into tags and texts (https://html.spec.whatwg.org/multipage/parsing.html#tokenization). Comments and
 * declarations are left out. No character is read more than a fixed number of times, whatever the source is.
 */
export class HtmlTokens {
  readonly #source: string
  #at = 0

  constructor(source: string) {
    this.#source = source
  }

  /** How far the source is read, in UTF-16 units. */
  get position(): number {
    return this.#at
  }

  /** @returns null at the end. */
  next(): HtmlToken | null {
    while (this.#at < this.#source.length) {
      const after = this.#source.charCodeAt(this.#at + 1)
      if (this.#source.charCodeAt(this.#at) !== LESS || !beginsMarkup(after)) return this.#text()
      if (isLetter(after)) {
        const tag = this.#tag(1)
        if (tag) return { kind: 'open', ...tag }
      } else if (after === SLASH && isLetter(this.#source.charCodeAt(this.#at + 2))) {
        const tag = this.#tag(2)
        if (tag) return { kind: 'close', name: tag.name }
      } else this.#skipDeclaration()
    }
    return null
  }

  /** Reads the content of an element whose content is text, such as a script, up to its end tag or to the end. */
  rawText(name: string): string {
    const start = this.#at
    const end = new RegExp(`</${name}(?=[\\s/>])`, 'gi')
    end.lastIndex = start
    this.#at = end.exec(this.#source)?.index ?? this.#source.length
    return this.#source.slice(start, this.#at)
  }

  #text(): HtmlToken {
    const start = this.#at
    const most = start + LONGEST_TEXT
    let end = start
    do {
      end = this.#source.indexOf('<', end + 1)
      if (end < 0) end = this.#source.length
    } while (end < most && end < this.#source.length && !beginsMarkup(this.#source.charCodeAt(end + 1)))
    this.#at = Math.min(end, most)
    return { kind: 'text', text: decodeEntities(this.#source.slice(start, this.#at)) }
  }

  /** A comment lasts to `-->`, everything else to `>`. Without an end, both last to the end. */
  #skipDeclaration(): void {
    const comment = this.#source.startsWith('<!--', this.#at)
    // `<!-->` is a comment too.
    const end = comment ? this.#source.indexOf('-->', this.#at + 2) : this.#source.indexOf('>', this.#at)
    this.#at = end < 0 ? this.#source.length : end + (comment ? 3 : 1)
  }

  /** @param offset of the name. @returns null for a tag without an end, which is left out. */
  #tag(offset: number): { name: string; attributes: Attributes } | null {
    const start = this.#at + offset
    this.#at = start
    this.#skip(TAG_NAME)
    const name = this.#source.slice(start, Math.min(this.#at, start + LONGEST_NAME)).toLowerCase()
    const attributes: Attributes = {}
    for (let count = 0; ; count++) {
      this.#skip(BEFORE_ATTRIBUTE)
      if (count === MOST_ATTRIBUTES) this.#skip(WITHIN_TAG)
      if (this.#at >= this.#source.length) return null
      if (this.#source.charCodeAt(this.#at) === GREATER) {
        this.#at++
        return { name, attributes }
      }
      this.#attribute(attributes)
    }
  }

  #attribute(attributes: Attributes): void {
    const start = this.#at++
    this.#skip(ATTRIBUTE_NAME)
    const name = this.#source.slice(start, Math.min(this.#at, start + LONGEST_NAME)).toLowerCase()
    this.#skip(SPACES)
    const value = this.#source.charCodeAt(this.#at) === EQUALS ? this.#value() : ''
    // The first one of a name counts.
    if (READ.has(name) && !(name in attributes)) attributes[name as keyof Attributes] = decodeEntities(value)
  }

  #value(): string {
    this.#at++
    this.#skip(SPACES)
    const quote = this.#source[this.#at]
    const quoted = quote === '"' || quote === "'"
    const start = quoted ? this.#at + 1 : this.#at
    let end = start
    if (quoted) {
      end = this.#source.indexOf(quote, start)
      if (end < 0) end = this.#source.length
      this.#at = end + 1
    } else {
      this.#skip(UNQUOTED)
      end = this.#at
    }
    return this.#source.slice(start, Math.min(end, start + LONGEST_VALUE))
  }

  /** @param run a sticky pattern that matches at every place. */
  #skip(run: RegExp): void {
    run.lastIndex = this.#at
    run.exec(this.#source)
    this.#at = Math.max(this.#at, run.lastIndex)
  }
}

const isLetter = (code: number): boolean => (code | 32) >= 97 && (code | 32) <= 122

/** Whether `<` and this character begin a tag, a comment or a declaration. */
const beginsMarkup = (code: number): boolean =>
  isLetter(code) || code === SLASH || code === 33 /* ! */ || code === 63 /* ? */
