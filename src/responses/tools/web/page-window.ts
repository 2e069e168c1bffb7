import type { Slices } from '../../../lib/slices.ts'
import type { WebPage } from './load-page.ts'

/** Characters of one window of a page. */
const WINDOW_CHARACTERS = 20_000
/** Links whose addresses follow a window, and the characters of these lines together. */
const MOST_ADDRESSES = 100
const ADDRESS_CHARACTERS = 8_000
const MARK = /\[(\d{1,4})\]/g

export interface PageWindow {
  text: string
  /** A note about the visible part, and how to read the next one. */
  note: string
}

/** A part of a page, with the addresses of the links in it. */
export function pageWindow(page: WebPage, offset: number): PageWindow {
  const { length } = page.text
  const from = boundary(page.text, Math.min(offset, length))
  const end = boundary(page.text, Math.min(from + WINDOW_CHARACTERS, length))
  const text = page.text.slice(from, end)
  const more = end < length ? ` Continue with offset ${end}.` : ''
  const cut = page.cut && end === length ? ' The page is longer than can be read here.' : ''
  const shown =
    length === 0
      ? 'The page has no text that can be read here.'
      : `Characters ${from} to ${end} of ${length}.`
  const addresses = addressLines(text, page)
  const lines = limited(addresses, MOST_ADDRESSES, ADDRESS_CHARACTERS)
  const left = addresses.length - lines.length
  const unlisted = left === 0 ? '' : ` ${left} addresses of links are left out; page_links lists them.`
  return {
    text: lines.length === 0 ? text : `${text}\n\n${lines.join('\n')}`,
    note: `${shown}${more}${cut}${unlisted}`,
  }
}

/** Does not cut a character of two UTF-16 units. */
function boundary(text: string, at: number): number {
  const code = text.charCodeAt(at)
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at
}

function addressLines(text: string, { links }: WebPage): string[] {
  const numbers = new Set([...text.matchAll(MARK)].map(([, number]) => Number(number)))
  return [...numbers].flatMap((number) => {
    const link = links[number - 1]
    return link ? [`[${number}]: ${link.url}`] : []
  })
}

/** The first lines, limited by number and characters: the page determines how long its addresses are. */
function limited(lines: readonly string[], most: number, characters: number): string[] {
  let left = characters
  const first = lines.slice(0, most)
  const end = first.findIndex((line) => {
    left -= line.length + 1
    return left < 0
  })
  return end < 0 ? first : first.slice(0, end)
}

const MOST_MATCHES = 20
const AROUND = 200

/** Characters in which matches begin that one slice finds, and those after them in which they may end. */
const SLICE_CHARACTERS = 32 * 1024
const LONGEST_MATCH = 1_000

/**
 * The places of a text in a page, in any case and with any white space. Sliced, because a page and a pattern of one repeated
 * letter take a step for each letter of the pattern at each place.
 */
export function* findInPage({ text }: WebPage, pattern: string): Slices<PageWindow> {
  const words = pattern.split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  const search = new RegExp(words.join('\\s+'), 'giu')
  const matches: string[] = []
  for (let from = 0; from < text.length && matches.length <= MOST_MATCHES; from += SLICE_CHARACTERS) {
    const part = text.slice(from, from + SLICE_CHARACTERS + LONGEST_MATCH)
    for (const { 0: found, index } of part.matchAll(search)) {
      if (index >= SLICE_CHARACTERS || matches.length > MOST_MATCHES) break
      matches.push(matchAt(text, from + index, found.length))
    }
    yield
  }
  return { text: matches.slice(0, MOST_MATCHES).join('\n\n'), note: countOf(matches.length) }
}

function matchAt(text: string, index: number, length: number): string {
  const from = boundary(text, Math.max(0, index - AROUND))
  const end = boundary(text, Math.min(text.length, index + length + AROUND))
  return `Offset ${index}: …${text.slice(from, end).replace(/\s+/g, ' ')}…`
}

function countOf(matches: number): string {
  if (matches === 0) return 'The text is not in the page.'
  if (matches > MOST_MATCHES) return `The first ${MOST_MATCHES} matches.`
  return `${matches} ${matches === 1 ? 'match' : 'matches'}.`
}

const MOST_LISTED = 200
const LISTED_CHARACTERS = 20_000

/** The links of a page whose text or address has the filter. */
export function listLinks({ links }: WebPage, filter: string): PageWindow {
  const wanted = filter.toLowerCase()
  const found = links.flatMap(({ url, text }, index) =>
    `${text} ${url}`.toLowerCase().includes(wanted) ? [`[${index + 1}] ${text || '(no text)'}: ${url}`] : [],
  )
  const listed = limited(found, MOST_LISTED, LISTED_CHARACTERS)
  const left = found.length - listed.length
  const others = left === 0 ? '' : ` ${left} are left out; a filter shows others.`
  return { text: listed.join('\n'), note: `${listed.length} of ${found.length} links.${others}` }
}
