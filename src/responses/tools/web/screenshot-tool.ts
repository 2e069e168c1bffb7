import type { EgressRules } from '../../../identity/tool-rights.ts'
import { BrokenStreamError } from '../../../lib/bytes/read-bytes.ts'
import type { HostedTool } from '../hosted-tool.ts'
import { fetchPage, PageError, readUpTo, type WebPageRequest } from './fetch-page.ts'
import { runWebCall, screenshotArguments } from './web-call.ts'

/**
 * The part of a Browser Run binding that is used
 * (https://developers.cloudflare.com/browser-run/quick-actions/screenshot-endpoint/).
 */
export type BrowserBinding = Pick<BrowserRun, 'quickAction'>

const TIME_LIMIT_MS = 70_000
const LOAD_MS = 20_000
/**
 * Maximum size in bytes. As base64 it is within the limit of results of tools, 1 MB.
 * @internal A bound that tests reach.
 */
export const LARGEST_IMAGE = 750 * 1024
const VIEWPORT = { width: 1280, height: 800 }

/** `take_screenshot`, for deployments with a browser. The model gets the image. */
export const screenshotTool = (
  browser: BrowserBinding,
  page: Pick<WebPageRequest, 'allow' | 'publicNetwork'>,
): HostedTool => ({
  purpose: 'hosted',
  family: 'browser',
  definition: {
    type: 'function',
    name: 'take_screenshot',
    description: 'Shows a web page as an image, for what its text does not say. Reading the text is cheaper.',
    parameters: {
      type: 'object',
      properties: { url: { type: 'string', description: 'The address of the page, https or http.' } },
      required: ['url'],
      additionalProperties: false,
    },
  },
  itemType: 'service_call',
  members: { name: 'take_screenshot' },
  repeatable: true,
  timeLimit: TIME_LIMIT_MS,
  run: (call, signal) =>
    runWebCall(
      screenshotArguments,
      call,
      signal,
      () => ({}),
      async ({ url }) => {
        const rules = call.rights.web
        // The browser follows redirects by itself, so that it gets the address at their end, which has passed every rule.
        const checked = await fetchPage(url, { ...page, rules, signal, limits: { bytes: 1 } })
        const image = await screenshot(browser, checked.url, rules, signal)
        return { output: [{ type: 'input_image', image_url: image }] }
      },
    ),
})

/** @returns a data URL. @throws PageError, and the reason of the signal. */
async function screenshot(
  browser: BrowserBinding,
  url: string,
  rules: EgressRules,
  signal: AbortSignal,
): Promise<string> {
  const response = await browser.quickAction('screenshot', {
    url,
    viewport: VIEWPORT,
    gotoOptions: { timeout: LOAD_MS, waitUntil: 'load' },
    screenshotOptions: { type: 'jpeg', quality: 70 },
    allowRequestPattern: requestPatterns(rules),
    cacheTTL: 0,
  })
  // A quick action takes no signal: its image can be cancelled once it arrives.
  if (signal.aborted || !response.ok || !response.body) {
    await response.body?.cancel()
    signal.throwIfAborted()
    throw new PageError(`The browser answered with status ${response.status}.`)
  }
  const { bytes, cut } = await readUpTo(response.body, LARGEST_IMAGE, { signal }).catch((error: unknown) => {
    throw error instanceof BrokenStreamError
      ? new PageError('The browser did not send the whole image.')
      : error
  })
  if (cut) throw new PageError(`The image of the page is longer than ${LARGEST_IMAGE / 1024} KB.`)
  return `data:image/jpeg;base64,${Buffer.from(bytes).toString('base64')}`
}

/**
 * The rules for hosts as patterns of the addresses that a page in the browser may load. `*` stands for names with a domain:
 * a page has no reason to load from a bare address, which may be one of the browser's own network.
 * @internal Tests compare it with the guarded fetch.
 */
export function requestPatterns({ allow, deny }: EgressRules): string[] {
  const denied = deny.map((entry) => hostPattern(entry, ANY_HOST)).join('|')
  const except = denied === '' ? '' : `(?!(?:${denied})\\.?(?::\\d+)?(?:[/?#]|$))`
  const allowed = allow.map(
    (entry) => `${except}${hostPattern(entry, ANY_NAME)}\\.?(?::(?:80|443))?(?:[/?#]|$)`,
  )
  return [...allowed.map((pattern) => `^https?://${pattern}`), '^data:', '^blob:']
}

const ANY_HOST = '[^/?#@:]+'
const ANY_NAME = '[^/?#@:]+\\.[a-z][a-z0-9-]*'

/** Converts a rule into a pattern. @param any the replacement of `*`. */
function hostPattern(entry: string, any: string): string {
  if (entry === '*') return any
  const escaped = entry.replace(/^\*/, '').replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return entry.startsWith('*.') ? ANY_HOST + escaped : escaped
}
