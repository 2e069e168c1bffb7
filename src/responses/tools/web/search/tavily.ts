import { MOST_RESULTS, type SearchProvider } from './search-provider.ts'
import { memberOf, readResults, type SearchService, searchJson } from './search-request.ts'

export const TAVILY_URL = 'https://api.tavily.com'

/** Tavily: `POST /search` (https://docs.tavily.com/api-reference/endpoint/search). */
export const tavilySearch = (service: SearchService): SearchProvider => ({
  name: 'tavily',
  async search(query, _call, signal) {
    const body = JSON.stringify({ query, max_results: MOST_RESULTS, search_depth: 'basic' })
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${service.key}` }
    const answer = await searchJson(
      'tavily',
      `${service.url}/search`,
      { method: 'POST', headers, body },
      service,
      signal,
    )
    return { results: readResults(memberOf(answer, 'results'), 'content') }
  },
})
