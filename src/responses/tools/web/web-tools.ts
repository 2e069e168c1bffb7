import { ByteBudget } from '../../../lib/bytes/byte-budget.ts'
import { systemClock } from '../../../lib/clock.ts'
import type { HostedTool } from '../hosted-tool.ts'
import type { WebPageRequest } from './fetch-page.ts'
import { PageStore } from './page-store.ts'
import { pageTools } from './page-tools.ts'
import { type BrowserBinding, screenshotTool } from './screenshot-tool.ts'
import { configuredSearch, type SearchConfiguration } from './search/configured-search.ts'
import { searchTool } from './search-tool.ts'

export interface WebToolDeps extends Partial<Pick<WebPageRequest, 'limits'>> {
  configuration: SearchConfiguration & { WEB_EGRESS_ALLOW: readonly string[]; SEARCH_PRICE: number }
  /** The binding PUBLIC_WEB of a self-hosted runtime; null on Cloudflare, whose network reaches public addresses only. */
  publicNetwork: Pick<Fetcher, 'fetch'> | null
  /** The binding BROWSER; null without it. */
  browser: BrowserBinding | null
  /** The page store; by default one for the isolate. */
  pages?: PageStore
  budget?: ByteBudget
}

/** Bytes of pages that an isolate reads at once; their text takes about as much again. */
const PAGE_BYTES = 16 * 1024 * 1024

const isolatePages = new PageStore(systemClock)
const isolateBudget = new ByteBudget(() => PAGE_BYTES)

/** The tools of the families `web_search` and `browser`. */
export function webTools({
  configuration,
  publicNetwork,
  browser,
  pages = isolatePages,
  budget = isolateBudget,
  limits,
}: WebToolDeps): HostedTool[] {
  const page = {
    allow: configuration.WEB_EGRESS_ALLOW,
    publicNetwork,
    pages,
    budget,
    ...(limits && { limits }),
  }
  return [
    searchTool(configuredSearch(configuration, pages), configuration.SEARCH_PRICE, page),
    ...pageTools(page),
    ...(browser ? [screenshotTool(browser, page)] : []),
  ]
}
