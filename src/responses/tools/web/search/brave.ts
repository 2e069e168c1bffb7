import { MOST_RESULTS, type SearchProvider } from './search-provider.ts'
import { memberOf, readResults, type SearchService, searchJson } from './search-request.ts'

export const BRAVE_URL = 'https://api.search.brave.com'
/** Longer queries are refused (https://api-dashboard.search.brave.com/api-reference/web/search/get). */
const LONGEST_QUERY = 400
const MOST_WORDS = 50

/** Brave Search: `GET /res/v1/web/search`. */
export const braveSearch = (service: SearchService): SearchProvider => ({
  name: 'brave',
  async search(query, _call, signal) {
    const words = query.split(/\s+/).slice(0, MOST_WORDS).join(' ').slice(0, LONGEST_QUERY)
    const parameters = new URLSearchParams({
      q: words,
      count: String(MOST_RESULTS),
      text_decorations: 'false',
    })
    const address = `${service.url}/res/v1/web/search?${parameters}`
    const headers = { accept: 'application/json', 'x-subscription-token': service.key }
    const answer = await searchJson('brave', address, { headers }, service, signal)
    return { results: readResults(memberOf(memberOf(answer, 'web'), 'results'), 'description') }
  },
})
