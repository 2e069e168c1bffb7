import type { Slices } from '../../../../lib/slices.ts'
import { visibleText } from '../../../../lib/visible-text.ts'
import { BLOCK, CELL, CELLS, flagsIn, HIDDEN, LISTS, PREFORMATTED, VOID } from './elements.ts'
import { type Attributes, type HtmlToken, htmlTokens } from './html-tokens.ts'
import { DEEPEST, type OpenElement, OpenElements } from './open-elements.ts'
import { PageBlocks } from './page-blocks.ts'

/** A page as a person reads it. */
export interface ReadablePage {
  title: string
  /** Markdown. A link is followed by its number, as in `text [12]`. */
  text: string
  /** Addresses of the links; the number of each is its index plus one. */
  links: Array<{ url: string; text: string }>
  /** Whether the page has more text than is kept. */
  cut: boolean
}

/** An element with what its end needs. */
interface PageElement extends OpenElement {
  flags: number
  /** The list that it is or is in. */
  list: { ordered: boolean; next: number } | null
  /** Numbers of lists and quotes that it is or is in. */
  lists: number
  quotes: number
  /** Number of a link, and the length of the text before it. */
  link: { number: number; from: number } | null
}

const SLICE_STEPS = 64 * 1024
/** Steps of a token besides its characters. */
const TOKEN_STEPS = 32
const MOST_LINKS = 2_000
const LONGEST_URL = 2_000
/** Characters of all addresses of a page: a long base address would be part of each. */
const MOST_URL_CHARACTERS = 256 * 1024
/** Characters of addresses that are parsed, each with its base: to parse one takes many times the step of a character. */
const MOST_PARSED_CHARACTERS = 1024 * 1024
const LONGEST_TITLE = 300
const LONGEST_LINK_TEXT = 200
/** Characters of which the text of a link is made. */
const LONGEST_LINK_SOURCE = 1_000
const DEEPEST_INDENT = 6
const HEADING = /^h[1-6]$/
const CODE = new Set(['code', 'kbd', 'samp', 'tt'])

/**
 * Reads the visible text and the links of a page, in slices: its HTML comes from anybody, and other callers share the
 * isolate. No tree is built, and the work grows with the length of the page only.
 * @param url of the page, for its relative links.
 */
export function* readablePage(html: string, url: string): Slices<ReadablePage> {
  const reader = new PageReader(url)
  let steps = 0
  for (const token of htmlTokens(html)) {
    reader.read(token)
    if (reader.full) break
    steps += stepsOf(token)
    if (steps < SLICE_STEPS) continue
    steps = 0
    yield
  }
  return reader.page()
}

function stepsOf(token: HtmlToken): number {
  if (token.kind === 'read') return token.characters
  return TOKEN_STEPS + (token.kind === 'text' ? token.text.length : 0)
}

class PageReader {
  readonly #blocks = new PageBlocks()
  readonly #open = new OpenElements<PageElement>()
  /** An element beyond the greatest depth, and how many of its name are open: all of it is left out. */
  #tooDeep: { name: string; count: number } | null = null
  readonly #numbers = new Map<string, number>()
  readonly #links: Array<{ url: string; text: string }> = []
  #parsedCharacters = 0
  #urlCharacters = 0
  #linkText = ''
  #base: string
  #baseGiven = false
  #title: string | null = null

  constructor(url: string) {
    this.#base = url
  }

  get full(): boolean {
    return this.#blocks.full
  }

  read(token: HtmlToken): void {
    if (token.kind === 'title') this.#title ??= oneLine(token.text).slice(0, LONGEST_TITLE)
    else if (token.kind === 'read') return
    else if (this.#tooDeep) this.#leaveOut(this.#tooDeep, token)
    else if (token.kind === 'text') this.#text(token.text)
    else if (token.kind === 'close') this.#closeTo(this.#open.depthAfter(token.name))
    else if (VOID.has(token.name)) this.#void(token)
    else this.#begin(token)
  }

  page(): ReadablePage {
    const cut = this.full
    this.#closeTo(0)
    return { title: this.#title ?? '', text: this.#blocks.content(), links: this.#links, cut }
  }

  get #flags(): number {
    return this.#open.innermost?.flags ?? 0
  }

  #text(text: string): void {
    const flags = this.#flags
    this.#blocks.append(text, flags)
    const room = LONGEST_LINK_SOURCE - this.#linkText.length
    if (!(flags & HIDDEN) && room > 0) this.#linkText += text.slice(0, room)
  }

  #void({ name, attributes }: { name: string; attributes: Attributes }): void {
    const flags = this.#flags
    if (name === 'br' && flags & CELL) this.#blocks.append(' ', flags)
    else if (name === 'br') this.#blocks.breakLine(flags)
    else if (name === 'hr') this.#blocks.end()
    else if (name === 'base' && attributes.href !== undefined && !this.#baseGiven) {
      this.#baseGiven = true
      this.#base = absolute(attributes.href, this.#base) ?? this.#base
    }
  }

  #begin({ name, attributes }: { name: string; attributes: Attributes }): void {
    this.#closeTo(this.#open.depthBefore(name))
    const block = BLOCK.has(name)
    const flags = flagsIn(name, attributes, this.#flags)
    if (this.#open.depth === DEEPEST) {
      // The text of a visible inline element is that of the element around it.
      if (block || flags & HIDDEN) this.#tooDeep = { name, count: 1 }
      return
    }
    const { list = null, lists = 0, quotes = 0 } = this.#open.innermost ?? {}
    const element: PageElement = { name, block, flags, list, lists, quotes, link: null }
    this.#open.push(element)
    if (name === 'blockquote') element.quotes++
    if (LISTS.has(name)) {
      const start = Number.parseInt(attributes.start ?? '', 10)
      element.lists++
      element.list = { ordered: name === 'ol', next: Number.isSafeInteger(start) ? start : 1 }
    }
    if (name === 'a' && attributes.href !== undefined && !(flags & HIDDEN)) {
      const number = this.#numberOf(attributes.href)
      this.#linkText = ''
      element.link = number === null ? null : { number, from: this.#blocks.length }
    }
    if (CODE.has(name) && !(flags & PREFORMATTED)) this.#blocks.append('`', flags)
    if (block) this.#beginBlock(name, element)
  }

  #leaveOut(around: { name: string; count: number }, token: HtmlToken): void {
    if (!('name' in token) || token.name !== around.name) return
    around.count += token.kind === 'open' ? 1 : -1
    if (around.count === 0) this.#tooDeep = null
  }

  #closeTo(depth: number): void {
    while (this.#open.depth > depth) this.#ended(this.#open.pop())
  }

  #beginBlock(name: string, element: PageElement): void {
    const { flags, list } = element
    if (flags & CELL) {
      // Blocks in a cell stay on the line of their row.
      this.#blocks.append(CELLS.has(name) ? ' | ' : ' ', flags)
      return
    }
    const indent = indentOf(element, name === 'li' ? 1 : 0)
    if (name === 'li') this.#blocks.begin(list?.ordered ? `${list.next++}. ` : '- ', 'item', indent)
    else if (HEADING.test(name)) this.#blocks.begin(`${'#'.repeat(Number(name[1]))} `, 'text', indent)
    else if (name === 'tr') this.#blocks.begin('', 'row', indent)
    else this.#blocks.continue(indent)
  }

  #ended({ name, block, flags, link }: PageElement): void {
    if (CODE.has(name) && !(flags & PREFORMATTED)) this.#blocks.appendMark('`', flags)
    if (link && this.#blocks.length > link.from) {
      this.#blocks.appendMark(` [${link.number}]`, flags)
      const entry = this.#links[link.number - 1]
      if (entry && entry.text === '') entry.text = oneLine(this.#linkText).slice(0, LONGEST_LINK_TEXT)
    }
    if (!block || flags & CELL) return
    const indent = indentOf(this.#open.innermost, 0)
    if (name === 'li' || name === 'tr' || HEADING.test(name)) this.#blocks.begin('', 'text', indent)
    else this.#blocks.continue(indent)
  }

  /** Links with the same address have one number. Null for an address that cannot be opened, or beyond the limits. */
  #numberOf(href: string): number | null {
    this.#parsedCharacters += href.length + this.#base.length
    if (this.#parsedCharacters > MOST_PARSED_CHARACTERS) return null
    const url = absolute(href, this.#base)
    if (url === null) return null
    const known = this.#numbers.get(url)
    if (known !== undefined) return known
    const characters = this.#urlCharacters + url.length
    if (this.#links.length >= MOST_LINKS || characters > MOST_URL_CHARACTERS) return null
    this.#urlCharacters = characters
    const number = this.#links.push({ url, text: '' })
    this.#numbers.set(url, number)
    return number
  }
}

/** @param less levels of lists that do not count. */
function indentOf(element: PageElement | undefined, less: number): string {
  const { lists = 0, quotes = 0 } = element ?? {}
  const depth = Math.max(0, Math.min(lists, DEEPEST_INDENT) - less)
  return '> '.repeat(Math.min(quotes, DEEPEST_INDENT)) + '  '.repeat(depth)
}

/** The address without its fragment; null unless it can be opened. */
function absolute(href: string, base: string): string | null {
  if (href.startsWith('#') || href.length > LONGEST_URL || !URL.canParse(href, base)) return null
  const url = new URL(href, base)
  if (!/^https?:$/.test(url.protocol) || url.username || url.password) return null
  url.hash = ''
  return url.href.length > LONGEST_URL ? null : url.href
}

const oneLine = (text: string): string => visibleText(text).replace(/\s+/g, ' ').trim()
