import type { SearchProvider } from './search-provider.ts'
import { memberOf, readResults, type SearchService, searchJson } from './search-request.ts'

/**
 * SearXNG: `GET /search?format=json` (https://docs.searxng.org/dev/search_api). An instance answers 403 unless its settings
 * list the format.
 */
export const searxngSearch = (service: SearchService): SearchProvider => ({
  name: 'searxng',
  async search(query, _call, signal) {
    const address = `${service.url}/search?${new URLSearchParams({ q: query, format: 'json' })}`
    const headers = { accept: 'application/json' }
    const answer = await searchJson('searxng', address, { headers }, service, signal)
    return { results: readResults(memberOf(answer, 'results'), 'content') }
  },
})
