import type { HostedCall } from '../../hosted-tool.ts'

/** A result of a search. */
export interface SearchResult {
  title: string
  url: string
  snippet: string
}

interface SearchAnswer {
  results: SearchResult[]
  /** For the model and the caller: what was searched, where that is not the web. */
  note?: string
}

/** What searches the web, or what stands in for that. */
export interface SearchProvider {
  name: 'local' | 'brave' | 'tavily' | 'searxng'
  /** @throws SearchError, and the reason of the signal. */
  search(query: string, call: HostedCall, signal: AbortSignal): Promise<SearchAnswer>
}

/** A search that failed. The message is for the model: never a key, an address or a text of the provider. */
export class SearchError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'SearchError'
  }
}

export const MOST_RESULTS = 10
