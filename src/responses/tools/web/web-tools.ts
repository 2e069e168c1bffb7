import { systemClock } from '../../../lib/clock.ts'
import type { HostedTool } from '../hosted-tool.ts'
import type { PageRequest } from './fetch-page.ts'
import { PageStore } from './page-store.ts'
import { pageTools } from './page-tools.ts'
import { type BrowserBinding, screenshotTool } from './screenshot-tool.ts'
import { configuredSearch, type SearchConfiguration } from './search/configured-search.ts'
import { searchTool } from './search-tool.ts'

export interface WebToolDeps extends Partial<Pick<PageRequest, 'limits'>> {
  configuration: SearchConfiguration & { WEB_EGRESS_ALLOW: readonly string[] }
  /** The binding PUBLIC_WEB of a self-hosted runtime; null on Cloudflare, whose network reaches public addresses only. */
  publicNetwork: Pick<Fetcher, 'fetch'> | null
  /** The binding BROWSER; null without it. */
  browser: BrowserBinding | null
  /** By default one for the isolate. */
  pages?: PageStore
}

const isolatePages = new PageStore(systemClock)

/** The tools of the families `web_search` and `browser`. */
export function webTools({
  configuration,
  publicNetwork,
  browser,
  pages = isolatePages,
  limits,
}: WebToolDeps): HostedTool[] {
  const page = { allow: configuration.WEB_EGRESS_ALLOW, publicNetwork, pages, ...(limits && { limits }) }
  return [
    searchTool(configuredSearch(configuration, pages)),
    ...pageTools(page),
    ...(browser ? [screenshotTool(browser, page)] : []),
  ]
}
