import type { WebAction } from '../../items/types/web-search-call.ts'
import type { HostedTool } from '../hosted-tool.ts'
import { mayOpenPage, type WebPageRequest } from './fetch-page.ts'
import type { SearchProvider, WebSearchResult } from './search/search-provider.ts'
import { runWebCall, searchArguments } from './web-call.ts'

const TIME_LIMIT_MS = 20_000

const DESCRIPTIONS = {
  web: 'Searches the web. Returns titles, addresses and short excerpts. Open a page to read it before relying on it.',
  local:
    'Searches the pages that were opened in this conversation; this deployment has no provider for searches of the web. If the address of a page is known, open it directly.',
}

/**
 * `web_search`. Results that the caller may not open as pages are left out, by the same judgment.
 * @param price of a search, in micro-credits.
 * @param allow exceptions to private addresses, as for pages.
 */
export const searchTool = (
  provider: SearchProvider,
  price: number,
  { allow }: Pick<WebPageRequest, 'allow'>,
): HostedTool => ({
  purpose: 'hosted',
  family: 'web_search',
  definition: {
    type: 'function',
    name: 'web_search',
    description: DESCRIPTIONS[provider.name === 'local' ? 'local' : 'web'],
    parameters: {
      type: 'object',
      properties: { query: { type: 'string', description: 'The words to search for.' } },
      required: ['query'],
      additionalProperties: false,
    },
  },
  itemType: 'web_search_call',
  members: { action: { type: 'search', query: '', queries: [] } satisfies WebAction },
  repeatable: true,
  price,
  timeLimit: TIME_LIMIT_MS,
  run: (call, signal) =>
    runWebCall(
      searchArguments,
      call,
      signal,
      (values) => ({ action: actionOf(values?.query ?? '', []) }),
      async ({ query }) => {
        const { results: found, note } = await provider.search(query, call, signal)
        const results = found.filter(({ url }) => mayOpenPage(url, { allow, rules: call.rights.web }))
        const output = [note, results.length === 0 ? 'No results.' : ''].filter(Boolean).join(' ')
        return { action: actionOf(query, results), ...(output !== '' && { output }), results }
      },
    ),
})

const actionOf = (query: string, results: readonly WebSearchResult[]): WebAction => ({
  type: 'search',
  query,
  queries: query === '' ? [] : [query],
  sources: results.map(({ url }) => ({ type: 'url', url })),
})
