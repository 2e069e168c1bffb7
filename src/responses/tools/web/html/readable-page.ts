import type { Slices } from '../../../../lib/slices.ts'
import { visibleText } from '../../visible-text.ts'
import { CELL, CELLS, HIDDEN, LISTS, PREFORMATTED, RAW_TEXT, VOID } from './elements.ts'
import { decodeEntities } from './entities.ts'
import { type HtmlToken, HtmlTokens } from './html-tokens.ts'
import { type OpenElement, OpenElements } from './open-elements.ts'
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
const LONGEST_TITLE = 300
const LONGEST_LINK_TEXT = 200
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
  const tokens = new HtmlTokens(html)
  let sliceEnd = SLICE_STEPS
  let steps = 0
  for (let token = tokens.next(); token && !reader.full; token = tokens.next()) {
    reader.read(token, tokens)
    steps += TOKEN_STEPS
    if (steps + tokens.position < sliceEnd) continue
    sliceEnd = steps + tokens.position + SLICE_STEPS
    yield
  }
  return reader.page()
}

class PageReader {
  readonly #blocks = new PageBlocks()
  readonly #open = new OpenElements<PageElement>((element) => this.#ended(element))
  readonly #numbers = new Map<string, number>()
  readonly #links: Array<{ url: string; text: string }> = []
  #urlCharacters = 0
  #linkText = ''
  #base: string
  #baseGiven = false
  #title = ''

  constructor(url: string) {
    this.#base = url
  }

  get full(): boolean {
    return this.#blocks.full
  }

  read(token: HtmlToken, tokens: HtmlTokens): void {
    if (token.kind === 'text') this.#text(token.text)
    else if (token.kind === 'close') this.#open.close(token.name)
    else if (RAW_TEXT.has(token.name)) this.#rawText(token.name, tokens)
    else if (VOID.has(token.name)) this.#void(token)
    else this.#begin(token)
  }

  page(): ReadablePage {
    const cut = this.full
    this.#open.closeAll()
    return { title: this.#title, text: this.#blocks.content(), links: this.#links, cut }
  }

  #text(text: string): void {
    const { flags } = this.#open
    this.#blocks.append(text, flags)
    if (!(flags & HIDDEN) && this.#linkText.length < LONGEST_LINK_TEXT) this.#linkText += text
  }

  #rawText(name: string, tokens: HtmlTokens): void {
    const content = tokens.rawText(name)
    if (name !== 'title' || this.#title !== '') return
    const text = decodeEntities(content.slice(0, 4 * LONGEST_TITLE))
    this.#title = oneLine(text).slice(0, LONGEST_TITLE)
  }

  #void({ name, attributes }: Extract<HtmlToken, { kind: 'open' }>): void {
    const { flags } = this.#open
    if (name === 'br' && flags & CELL) this.#blocks.append(' ', flags)
    else if (name === 'br') this.#blocks.breakLine(flags)
    else if (name === 'hr') this.#blocks.end()
    else if (name === 'base' && attributes.href !== undefined && !this.#baseGiven) {
      this.#baseGiven = true
      this.#base = absolute(attributes.href, this.#base) ?? this.#base
    }
  }

  #begin({ name, attributes }: Extract<HtmlToken, { kind: 'open' }>): void {
    const around = this.#open.innermost
    let opened: PageElement | null = null
    this.#open.open(name, attributes, (base) => {
      opened = {
        ...base,
        list: around?.list ?? null,
        lists: around?.lists ?? 0,
        quotes: around?.quotes ?? 0,
        link: null,
      }
      return opened
    })
    const element = opened as PageElement | null
    if (!element) return
    if (name === 'blockquote') element.quotes++
    if (LISTS.has(name)) {
      const start = Number.parseInt(attributes.start ?? '', 10)
      element.lists++
      element.list = { ordered: name === 'ol', next: Number.isSafeInteger(start) ? start : 1 }
    }
    if (name === 'a' && attributes.href !== undefined && !(element.flags & HIDDEN)) {
      const number = this.#numberOf(attributes.href)
      this.#linkText = ''
      element.link = number === null ? null : { number, from: this.#blocks.length }
    }
    if (CODE.has(name) && !(element.flags & PREFORMATTED)) this.#blocks.append('`', element.flags)
    if (element.block) this.#beginBlock(name, element)
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
