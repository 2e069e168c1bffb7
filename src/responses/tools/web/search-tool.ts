import { isHostAllowed } from '../../../governance/tool-rights.ts'
import { plainHost } from '../../../lib/safe-fetch.ts'
import type { HostedTool } from '../hosted-tool.ts'
import type { SearchProvider, SearchResult } from './search/search-provider.ts'
import { runWebCall, searchArguments, type WebAction } from './web-call.ts'

const TIME_LIMIT_MS = 20_000

const DESCRIPTIONS = {
  web: 'Searches the web. Returns titles, addresses and short excerpts. Open a page to read it before relying on it.',
  local:
    'Searches the pages that were opened in this conversation; this deployment has no provider for searches of the web. If the address of a page is known, open it directly.',
}

/**
 * `web_search`. Results on hosts that the rules of the organization do not allow are left out.
 * @param price of a search, in micro-credits.
 */
export const searchTool = (provider: SearchProvider, price: number): HostedTool => ({
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
        const results = found.filter(({ url }) => isHostAllowed(call.rights.web, plainHost(new URL(url))))
        const output = [note, results.length === 0 ? 'No results.' : ''].filter(Boolean).join(' ')
        return { action: actionOf(query, results), ...(output !== '' && { output }), results }
      },
    ),
})

const actionOf = (query: string, results: readonly SearchResult[]): WebAction => ({
  type: 'search',
  query,
  queries: query === '' ? [] : [query],
  sources: results.map(({ url }) => ({ type: 'url', url })),
})
