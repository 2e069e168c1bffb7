import { runSlices, type Slices } from '../../../../lib/slices.ts'
import type { WebPage } from '../load-page.ts'
import type { PageStore } from '../page-store.ts'
import { MOST_RESULTS, type SearchProvider, type WebSearchResult } from './search-provider.ts'

const NOTE =
  'No web search provider is configured here. Only the pages that were opened in this conversation in the last minutes were searched. Pages with a known address can be opened.'
const SNIPPET_BEFORE = 120
const SNIPPET_LENGTH = 400
const MOST_WORDS = 20

/**
 * Searches the pages that the conversation has opened, for deployments without a provider. It states this in every answer,
 * and returns nothing that is not in one of these pages.
 */
export const localSearch = (pages: PageStore): SearchProvider => ({
  name: 'local',
  async search(query, call) {
    const words = [...new Set(query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])].slice(0, MOST_WORDS)
    return { results: await runSlices(ranked(pages.all(call), words)), note: NOTE }
  },
})

/** The pages with most of the words first, in a slice for each page. */
function* ranked(pages: readonly WebPage[], words: readonly string[]): Slices<WebSearchResult[]> {
  const found: Array<{ result: WebSearchResult; count: number }> = []
  for (const page of pages) {
    const { count, at } = matchOf(page, words)
    if (count > 0) found.push({ result: resultOf(page, at), count })
    yield
  }
  found.sort((left, right) => right.count - left.count)
  return found.slice(0, MOST_RESULTS).map(({ result }) => result)
}

/** @returns how many of the words are in a page, and where the first of them is in its text. */
function matchOf({ title, text }: WebPage, words: readonly string[]): { count: number; at: number } {
  const lower = text.toLowerCase()
  const lowerTitle = title.toLowerCase()
  const places = words.map((word) => lower.indexOf(word))
  const count = words.filter((word, index) => places[index] !== -1 || lowerTitle.includes(word)).length
  return { count, at: Math.min(...places.filter((place) => place >= 0), text.length) }
}

function resultOf({ title, url, text }: WebPage, at: number): WebSearchResult {
  const from = at >= text.length ? 0 : Math.max(0, at - SNIPPET_BEFORE)
  return {
    title,
    url,
    snippet: text
      .slice(from, from + SNIPPET_LENGTH)
      .replace(/\s+/g, ' ')
      .trim(),
  }
}
