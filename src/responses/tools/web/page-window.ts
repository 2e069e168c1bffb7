import type { WebPage } from './load-page.ts'

/** Characters of one window of a page. */
export const WINDOW_CHARACTERS = 20_000
/** Links whose addresses follow a window. */
const MOST_ADDRESSES = 100
const MARK = /\[(\d{1,4})\]/g

export interface PageWindow {
  text: string
  /** What is shown, and how to go on. */
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
  return { text: text + addressesIn(text, page), note: `${shown}${more}${cut}` }
}

/** Does not cut a character of two UTF-16 units. */
function boundary(text: string, at: number): number {
  const code = text.charCodeAt(at)
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at
}

function addressesIn(text: string, { links }: WebPage): string {
  const numbers = new Set([...text.matchAll(MARK)].map(([, number]) => Number(number)))
  const lines = [...numbers].slice(0, MOST_ADDRESSES).flatMap((number) => {
    const link = links[number - 1]
    return link ? [`[${number}]: ${link.url}`] : []
  })
  return lines.length === 0 ? '' : `\n\n${lines.join('\n')}`
}

const MOST_MATCHES = 20
const AROUND = 200

/** The places of a text in a page, in any case and with any white space. */
export function findInPage({ text }: WebPage, pattern: string): PageWindow {
  const words = pattern.split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  const search = new RegExp(words.join('\\s+'), 'giu')
  const matches: string[] = []
  let count = 0
  for (const { 0: found, index } of text.matchAll(search)) {
    count++
    if (count > MOST_MATCHES) break
    const from = boundary(text, Math.max(0, index - AROUND))
    const end = boundary(text, Math.min(text.length, index + found.length + AROUND))
    matches.push(`Offset ${index}: …${text.slice(from, end).replace(/\s+/g, ' ')}…`)
  }
  const note =
    count === 0
      ? 'The text is not in the page.'
      : count > MOST_MATCHES
        ? `The first ${MOST_MATCHES} matches.`
        : `${count} ${count === 1 ? 'match' : 'matches'}.`
  return { text: matches.join('\n\n'), note }
}

const MOST_LISTED = 200

/** The links of a page whose text or address has the filter. */
export function listLinks({ links }: WebPage, filter: string): PageWindow {
  const wanted = filter.toLowerCase()
  const found = links
    .map(({ url, text }, index) => ({ url, text, number: index + 1 }))
    .filter(({ url, text }) => `${text} ${url}`.toLowerCase().includes(wanted))
  const listed = found.slice(0, MOST_LISTED)
  const note = `${listed.length} of ${found.length} links${found.length > listed.length ? '; a filter shows others' : ''}.`
  return {
    text: listed.map(({ number, text, url }) => `[${number}] ${text || '(no text)'}: ${url}`).join('\n'),
    note,
  }
}
