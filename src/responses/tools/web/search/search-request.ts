import { readAll } from '../../../../lib/bytes/read-bytes.ts'
import { safeFetch } from '../../../../lib/safe-fetch.ts'
import { visibleText } from '../../../../lib/visible-text.ts'
import { MOST_RESULTS, SearchError, type SearchProvider, type WebSearchResult } from './search-provider.ts'

/** Access to a provider of searches. */
export interface SearchService {
  /** Address without a trailing slash. */
  url: string
  /** Empty for a provider that needs none. */
  key: string
  /** `host:port` exceptions to private addresses (configuration EGRESS_ALLOW). */
  allow: readonly string[]
}

/** Below the time limit of the tool, so that its item names the search that failed. */
const TIME_LIMIT_MS = 15_000
const LONGEST_ANSWER = 2 * 1024 * 1024
const LONGEST_TITLE = 300
const LONGEST_SNIPPET = 1_000
const LONGEST_URL = 2_000
const TAGS = /<\/?(?:strong|b|em|i|mark)>/gi

/** Sends a search and reads its answer as JSON. Redirects are not followed, since the request has a key. */
export async function searchJson(
  name: SearchProvider['name'],
  address: string,
  init: RequestInit,
  { allow }: Pick<SearchService, 'allow'>,
  signal: AbortSignal,
): Promise<unknown> {
  const time = new AbortController()
  const timer = setTimeout(() => time.abort(), TIME_LIMIT_MS)
  try {
    const limited = AbortSignal.any([signal, time.signal])
    const response = await safeFetch(address, { ...init, allow, signal: limited })
    if (!response.ok || !response.body) {
      await response.body?.cancel()
      throw new SearchError(`The search provider ${name} ${reasonOf(response.status)}.`)
    }
    return JSON.parse(new TextDecoder().decode(await readAll(response.body, LONGEST_ANSWER)))
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof SearchError) throw error
    const reason = time.signal.aborted ? 'took too long' : 'did not give an answer that can be read'
    throw new SearchError(`The search provider ${name} ${reason}.`)
  } finally {
    clearTimeout(timer)
  }
}

function reasonOf(status: number): string {
  if (status === 401 || status === 403)
    return `refused the request with status ${status}: its configuration has to be checked`
  if (status === 429) return 'has reached its limit; try again later'
  return `answered with status ${status}`
}

/** Reads the results of a provider's answer. Those without an address that can be opened are left out. */
export function readResults(list: unknown, snippetMember: string): WebSearchResult[] {
  const entries = Array.isArray(list) ? list : []
  return entries
    .flatMap((entry: unknown) => {
      const { title, url, [snippetMember]: snippet } = (entry ?? {}) as Record<string, unknown>
      if (
        typeof url !== 'string' ||
        url.length > LONGEST_URL ||
        !/^https?:\/\//.test(url) ||
        !URL.canParse(url)
      )
        return []
      return [{ title: plain(title, LONGEST_TITLE), url, snippet: plain(snippet, LONGEST_SNIPPET) }]
    })
    .slice(0, MOST_RESULTS)
}

/** Providers mark the words of the query with tags. */
const plain = (text: unknown, longest: number): string =>
  typeof text === 'string'
    ? visibleText(text.slice(0, 4 * longest))
        .replace(TAGS, '')
        .replace(/\s+/g, ' ')
        .trim()
        .slice(0, longest)
    : ''

/** The member of an object; undefined for anything else. */
export const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
