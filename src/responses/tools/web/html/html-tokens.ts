import { Tokenizer, type TokenizerCallbacks } from 'htmlparser2'

/** The attributes that are read. */
export type Attributes = Partial<Record<(typeof READ_ATTRIBUTES)[number], string>>

export type HtmlToken =
  | { kind: 'text'; text: string }
  | { kind: 'open'; name: string; attributes: Attributes }
  | { kind: 'close'; name: string }
  /** The content of a `title` element, of which the beginning is read. */
  | { kind: 'title'; text: string }
  /** Number of further characters of the source that were read, with or without a token. */
  | { kind: 'read'; characters: number }

const READ_ATTRIBUTES = ['href', 'hidden', 'style', 'class', 'role', 'aria-hidden', 'open', 'start'] as const
const READ: ReadonlySet<string> = new Set(READ_ATTRIBUTES)
/** Elements whose content is text. The tokenizer ends it at their end tag. */
const RAW_TEXT = new Set(
  ['script', 'style', 'title', 'textarea', 'iframe', 'noembed', 'noframes', 'xmp', 'plaintext'], // biome-ignore format: a list
)
/** Browsers that run scripts do not read what is in it. */
const SKIPPED = 'noscript'
/** Elements in which tags end themselves with `/>`, and no element is raw text. */
const FOREIGN = new Set(['svg', 'math'])

const LONGEST_VALUE = 4_000
const LONGEST_NAME = 40
const LONGEST_TITLE = 1_200
/** Characters of one text token: longer texts are several tokens, so that the work on each is short. */
const LONGEST_TEXT = 32 * 1024
/** Further attributes of a tag are left out. */
const MOST_ATTRIBUTES = 200
/** Characters that are tokenized at once. */
const TOKENIZED_LENGTH = 4 * 1024

/**
 * Splits HTML into tags and texts (https://html.spec.whatwg.org/multipage/parsing.html#tokenization), slice by slice.
 * References to characters are decoded; comments and declarations are left out, and so is a tag without an end. No
 * character is read more than a fixed number of times, whatever the source is.
 */
export function* htmlTokens(source: string): Generator<HtmlToken, void, void> {
  const collected = new CollectedTokens(source)
  const tokenizer = new Tokenizer({}, collected)
  for (let at = 0; at < source.length; at += TOKENIZED_LENGTH) {
    tokenizer.write(source.slice(at, at + TOKENIZED_LENGTH))
    yield* collected.take()
    yield { kind: 'read', characters: TOKENIZED_LENGTH }
  }
  tokenizer.end()
  yield* collected.take()
}

/** The tokens of a slice. Positions are those of the whole source, since a tag may begin in an earlier slice. */
class CollectedTokens implements TokenizerCallbacks {
  readonly #source: string
  #tokens: HtmlToken[] = []
  #text = ''
  #name = ''
  #attributes: Attributes = {}
  #attributeCount = 0
  /** The attribute that is being read, if it is one of those that count. */
  #attribute: keyof Attributes | null = null
  #value = ''
  /** The element of raw text that is open. */
  #raw: string | null = null
  #skips = false
  /** Number of open elements of foreign content. */
  #foreign = 0

  constructor(source: string) {
    this.#source = source
  }

  take(): HtmlToken[] {
    const tokens = this.#tokens
    this.#tokens = []
    return tokens
  }

  isInForeignContext(): boolean {
    return this.#foreign > 0
  }

  ontext(start: number, end: number): void {
    if (this.#raw === null || this.#raw === 'title') this.#append(this.#source.slice(start, end))
  }

  ontextentity(code: number): void {
    if (this.#raw === null || this.#raw === 'title') this.#append(String.fromCodePoint(code))
  }

  onopentagname(start: number, end: number): void {
    this.#name = this.#nameAt(start, end)
    this.#attributes = {}
    this.#attributeCount = 0
  }

  onattribname(start: number, end: number): void {
    const name = this.#nameAt(start, end)
    // The first one of a name counts.
    const counts = READ.has(name) && !(name in this.#attributes) && this.#attributeCount < MOST_ATTRIBUTES
    this.#attribute = counts ? (name as keyof Attributes) : null
    this.#attributeCount++
    this.#value = ''
  }

  onattribdata(start: number, end: number): void {
    const room = LONGEST_VALUE - this.#value.length
    if (this.#attribute !== null && room > 0)
      this.#value += this.#source.slice(start, Math.min(end, start + room))
  }

  onattribentity(code: number): void {
    if (this.#attribute !== null && this.#value.length < LONGEST_VALUE)
      this.#value += String.fromCodePoint(code)
  }

  onattribend(): void {
    if (this.#attribute !== null) this.#attributes[this.#attribute] = this.#value
  }

  onopentagend(): void {
    const name = this.#name
    if (this.#skips) return
    if (name === SKIPPED) this.#skips = true
    else if (this.#foreign === 0 && RAW_TEXT.has(name)) this.#beginRaw(name)
    else {
      if (FOREIGN.has(name)) this.#foreign++
      this.#add({ kind: 'open', name, attributes: this.#attributes })
    }
  }

  onselfclosingtag(): void {
    // Elsewhere the slash means nothing.
    if (this.#foreign === 0 && !FOREIGN.has(this.#name)) this.onopentagend()
  }

  onclosetag(start: number, end: number): void {
    const name = this.#nameAt(start, end)
    if (this.#raw !== null) this.#endRaw()
    else if (this.#skips) this.#skips = name !== SKIPPED
    else {
      if (FOREIGN.has(name)) this.#foreign = Math.max(0, this.#foreign - 1)
      this.#add({ kind: 'close', name })
    }
  }

  onend(): void {
    if (this.#raw === null) this.#flush(this.#text.length)
    else this.#endRaw()
  }

  oncomment(): void {}
  oncdata(): void {}
  ondeclaration(): void {}
  onprocessinginstruction(): void {}

  #nameAt(start: number, end: number): string {
    return this.#source.slice(start, Math.min(end, start + LONGEST_NAME)).toLowerCase()
  }

  #append(text: string): void {
    if (this.#skips || (this.#raw !== null && this.#text.length >= LONGEST_TITLE)) return
    this.#text += text
    if (this.#raw !== null) return
    while (this.#text.length >= LONGEST_TEXT) {
      // A character of two units stays whole.
      const isInside = (this.#text.charCodeAt(LONGEST_TEXT - 1) & 0xfc00) === 0xd800
      this.#flush(isInside ? LONGEST_TEXT - 1 : LONGEST_TEXT)
    }
  }

  /** Adds the first units of the collected text as a token. */
  #flush(length: number): void {
    if (length > 0) this.#tokens.push({ kind: 'text', text: this.#text.slice(0, length) })
    this.#text = this.#text.slice(length)
  }

  #add(token: HtmlToken): void {
    this.#flush(this.#text.length)
    this.#tokens.push(token)
  }

  #beginRaw(name: string): void {
    this.#flush(this.#text.length)
    this.#raw = name
  }

  #endRaw(): void {
    if (this.#raw === 'title') this.#tokens.push({ kind: 'title', text: this.#text })
    this.#text = ''
    this.#raw = null
  }
}
