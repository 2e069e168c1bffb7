import type { ContextItem } from '../../model/types.ts'
import { untrusted } from '../../model/untrusted.ts'

import { hostedDirection } from './hosted-direction.ts'
import { uncheckedItem } from './input-item.ts'
import type { ItemType, ModelItems } from './item-type.ts'

/**
 * A call of `web_search`, `open_page` or `find_in_page`, which its action distinguishes. `results` has what was found or read;
 * `output` is a remark of this service about it.
 */
export const webSearchCall: ItemType = {
  prefix: 'ws',
  read: uncheckedItem,
  direction: hostedDirection,
  toModel: searchedCall,
  includable: [
    { path: ['results'], include: 'web_search_call.results' },
    { path: ['action', 'sources'], include: 'web_search_call.action.sources' },
  ],
  events: { finalMembers: ['results', 'output', 'error'] },
}

interface SearchItem {
  action?: Partial<WebAction> | null
  results?: unknown
  output?: unknown
  error?: unknown
}

/** The call as the model made it, and its result. Models do not get searches of a vendor, which have no `call_id`. */
function searchedCall({ callId, bytes }: ContextItem): ModelItems {
  const item = JSON.parse(decoder.decode(bytes)) as SearchItem
  const output = outputOf(item)
  if (callId === null || output === '') return { items: [], results: [] }
  const call = { type: 'function_call', call_id: callId, ...functionOf(item.action ?? {}) }
  return {
    items: [encoder.encode(JSON.stringify(call))],
    results: [encoder.encode(JSON.stringify({ type: 'function_call_output', call_id: callId, output }))],
  }
}

/** The action is empty in a call that was refused before its arguments were read. */
function functionOf({ type, ...members }: Partial<WebAction>) {
  const { query, url, offset, pattern } = members as Record<string, unknown>
  const name = type === 'open_page' || type === 'find_in_page' ? type : 'web_search'
  return { name, arguments: JSON.stringify(name === 'web_search' ? { query } : { url, offset, pattern }) }
}

function outputOf({ results, output, error }: SearchItem): string {
  if (typeof error === 'string') return error
  const remark = typeof output === 'string' ? output : ''
  const entries = wellFormed(results)
  const [page] = entries
  if (!page) return remark
  // A page that was read is the only entry, with its text.
  const marked =
    page.text !== undefined
      ? untrusted('a web page', [page.url, page.title, page.text].filter(Boolean).join('\n\n'))
      : untrusted('the results of a web search', entries.map(resultText).join('\n\n'))
  return remark === '' ? marked : `${remark}\n\n${marked}`
}

const resultText = ({ title, url, snippet }: Partial<WebResult>, index: number): string =>
  [`${index + 1}. ${title || url || ''}`, url, snippet].filter(Boolean).join('\n')

/** The texts of the results, as far as they are well-formed: items are also stored from requests. */
function wellFormed(results: unknown): Array<Partial<WebResult>> {
  const entries: unknown[] = Array.isArray(results) ? results : []
  return entries.flatMap((entry) => {
    const members = Object.entries(entry ?? {}).filter(
      ([name, value]) => RESULT_MEMBERS.has(name) && typeof value === 'string',
    )
    return members.length === 0 ? [] : [Object.fromEntries(members) as Partial<WebResult>]
  })
}

const RESULT_MEMBERS = new Set(['title', 'url', 'snippet', 'text'])
const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })

/** A result of a `web_search_call`: of a search, or the text of a page. */
interface WebResult {
  title: string
  url: string
  snippet?: string
  text?: string
}

/** The action of a `web_search_call`, as in the official types. `offset` is ours. */
export type WebAction =
  | { type: 'search'; query: string; queries: string[]; sources?: Array<{ type: 'url'; url: string }> }
  | { type: 'open_page'; url: string; offset?: number }
  | { type: 'find_in_page'; url: string; pattern: string }
