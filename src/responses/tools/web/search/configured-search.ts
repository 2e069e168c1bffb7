import type { PageStore } from '../page-store.ts'
import { BRAVE_URL, braveSearch } from './brave.ts'
import { localSearch } from './local.ts'
import type { SearchProvider } from './search-provider.ts'
import { searxngSearch } from './searxng.ts'
import { TAVILY_URL, tavilySearch } from './tavily.ts'

export interface SearchConfiguration {
  SEARCH_PROVIDER: SearchProvider['name']
  SEARCH_API_KEY?: string | undefined
  SEARCH_URL?: string | undefined
  EGRESS_ALLOW: readonly string[]
}

/** The provider of the configuration, which was checked when it was read (`env.ts`). */
export function configuredSearch(configuration: SearchConfiguration, pages: PageStore): SearchProvider {
  const {
    SEARCH_PROVIDER: name,
    SEARCH_API_KEY: key = '',
    SEARCH_URL: given,
    EGRESS_ALLOW: allow,
  } = configuration
  if (name === 'brave') return braveSearch({ url: given ?? BRAVE_URL, key, allow })
  if (name === 'tavily') return tavilySearch({ url: given ?? TAVILY_URL, key, allow })
  if (name === 'searxng' && given) return searxngSearch({ url: given, key, allow })
  return localSearch(pages)
}
