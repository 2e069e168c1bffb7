import type * as z from 'zod'
import type { ByteBudget } from '../../../lib/bytes/byte-budget.ts'
import { runSlices } from '../../../lib/slices.ts'
import type { WebAction } from '../../items/types/web-search-call.ts'
import type { Members } from '../../model/types.ts'
import type { HostedCall, HostedTool } from '../hosted-tool.ts'
import { mayOpenPage, PAGE_LIMITS, type WebPageRequest } from './fetch-page.ts'
import { loadPage, type WebPage } from './load-page.ts'
import type { PageStore } from './page-store.ts'
import { findInPage, listLinks, type PageWindow, pageWindow } from './page-window.ts'
import { findArguments, linksArguments, openArguments, runWebCall } from './web-call.ts'

interface PageToolDeps extends Pick<WebPageRequest, 'allow' | 'publicNetwork' | 'limits'> {
  pages: PageStore
  budget: ByteBudget
}

/** Longer than a page may take, so that the item of a slow page names it. */
const TIME_LIMIT_MS = PAGE_LIMITS.milliseconds + 5_000

const URL_PARAMETER = { type: 'string', description: 'The address of the page, https or http.' }

const parametersOf = (properties: Record<string, object>, required: readonly string[]) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})

/** The tools that read pages. `open_page` and `find_in_page` are actions of a `web_search_call`, as in the official types. */
export const pageTools = (deps: PageToolDeps): HostedTool[] => [
  openPage(deps),
  findPage(deps),
  pageLinks(deps),
]

const openPage = (deps: PageToolDeps): HostedTool =>
  actionTool({
    name: 'open_page',
    description:
      'Reads a web page as text. Long pages come in windows: continue with the offset that is named at the end. A number in brackets after a text is a link, whose address is below the text.',
    parameters: parametersOf(
      { url: URL_PARAMETER, offset: { type: 'integer', description: 'The first character to read.' } },
      ['url'],
    ),
    schema: openArguments,
    actionOf: ({ url, offset }) => ({ type: 'open_page', url, ...(offset && { offset }) }),
    read: async (call, { url, offset }, signal) => {
      const page = await openedPage(deps, call, url, signal)
      return { page, window: pageWindow(page, offset ?? 0) }
    },
  })

const findPage = (deps: PageToolDeps): HostedTool =>
  actionTool({
    name: 'find_in_page',
    description:
      'Finds a text in a web page. Returns the text around each match, and its offset for open_page.',
    parameters: parametersOf(
      { url: URL_PARAMETER, pattern: { type: 'string', description: 'The text to find, in any case.' } },
      ['url', 'pattern'],
    ),
    schema: findArguments,
    actionOf: ({ url, pattern }) => ({ type: 'find_in_page', url, pattern }),
    read: async (call, { url, pattern }, signal) => {
      const page = await openedPage(deps, call, url, signal)
      return { page, window: await runSlices(findInPage(page, pattern)) }
    },
  })

const pageLinks = (deps: PageToolDeps): HostedTool => ({
  ...COMMON,
  definition: {
    type: 'function',
    name: 'page_links',
    description: 'Lists the links of a web page with their numbers.',
    parameters: parametersOf(
      {
        url: URL_PARAMETER,
        filter: { type: 'string', description: 'Part of the text or address of a link.' },
      },
      ['url'],
    ),
  },
  itemType: 'service_call',
  members: { name: 'page_links' },
  run: (call, signal) =>
    runWebCall(
      linksArguments,
      call,
      signal,
      () => ({}),
      async ({ url, filter }) => {
        const { note, text } = listLinks(await openedPage(deps, call, url, signal), filter ?? '')
        return { output: `${note}\n${text}` }
      },
    ),
})

const COMMON = {
  purpose: 'hosted',
  family: 'browser',
  repeatable: true,
  timeLimit: TIME_LIMIT_MS,
} as const satisfies Partial<HostedTool>

interface ActionTool<Schema extends z.ZodType> {
  name: string
  description: string
  parameters: object
  schema: Schema
  actionOf: (values: z.infer<Schema>) => WebAction
  read: (
    call: HostedCall,
    values: z.infer<Schema>,
    signal: AbortSignal,
  ) => Promise<{ page: WebPage; window: PageWindow }>
}

/** A tool whose calls are items of web search. */
function actionTool<Schema extends z.ZodType>(tool: ActionTool<Schema>): HostedTool {
  const { name, description, parameters, schema, actionOf, read } = tool
  const unread = { type: name, url: '', ...(name === 'find_in_page' && { pattern: '' }) }
  const membersOf = (values: z.infer<Schema> | null): Members => ({
    action: values ? actionOf(values) : unread,
  })
  return {
    ...COMMON,
    definition: { type: 'function', name, description, parameters },
    itemType: 'web_search_call',
    members: { action: unread },
    run: (call, signal) =>
      runWebCall(schema, call, signal, membersOf, async (values) => {
        const { page, window } = await read(call, values, signal)
        const { url, title } = page
        return { output: window.note, results: [{ title, url, text: window.text }] }
      }),
  }
}

/** A page that the conversation has opened, or else a new one. Today's rules hold for both. */
async function openedPage(
  { allow, publicNetwork, limits, pages, budget }: PageToolDeps,
  call: HostedCall,
  address: string,
  signal: AbortSignal,
): Promise<WebPage> {
  const rules = call.rights.web
  const known = pages.get(call, address)
  if (known && [address, known.url].every((url) => mayOpenPage(url, { allow, rules }))) return known
  const request = { allow, rules, publicNetwork, signal, ...(limits && { limits }) }
  const page = await loadPage(address, request, { budget, holder: call.owner.organizationId })
  pages.add(call, address, page)
  return page
}
