import type { HostedCall } from '../../hosted-tool.ts'

/** A result of a search. */
export interface WebSearchResult {
  title: string
  url: string
  snippet: string
}

interface SearchAnswer {
  results: WebSearchResult[]
  /** A note for the model and the caller: the searched source, when it is not the web. */
  note?: string
}

/** A search of the web, or a replacement for it. */
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
