import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import { expect } from 'vitest'
import { type ConsoleBrowser, SESSION_COOKIE } from '../../harness/console-browser.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Elements that stand out of the page at the right, but for those that scroll by themselves. */
const WIDER = `[...document.querySelectorAll('body *')]
  .filter((each) => each.getBoundingClientRect().right > innerWidth && !each.closest('[data-scrolls], pre'))
  .map((each) => each.outerHTML.slice(0, 120))`

/** Looks of the console: both themes, on a screen and on a phone. */
export const LOOKS = [
  { colorScheme: 'light', width: 1280 },
  { colorScheme: 'dark', width: 390 },
] as const

interface ConsoleLook {
  colorScheme: 'light' | 'dark'
  width: number
}

/** A page of the console, with everything that its browser complains about: errors, and what the policy of the page refuses. */
export interface ConsolePage {
  page: Page
  complaints: string[]
  width: number
}

/**
 * Opens a page that collects complaints.
 * @param expected parts of complaints that belong to the test, such as the status of a request that has to fail.
 */
export async function openPage(
  browser: Browser,
  { colorScheme, width }: ConsoleLook = LOOKS[0],
  expected: readonly string[] = [],
): Promise<ConsolePage> {
  const page = await browser.newPage({ viewport: { width, height: 844 }, colorScheme })
  const complaints: string[] = []
  const complain = (text: string) => expected.some((part) => text.includes(part)) || complaints.push(text)
  page.on('pageerror', (error) => complain(error.message))
  page.on('console', (message) => {
    const { url } = message.location()
    // Nobody is signed in at first, which the browser reports as a failed request.
    if (message.type() === 'error' && !url.endsWith('/api/me')) complain(`${message.text()} ${url}`)
  })
  return { page, complaints, width }
}

/** Gives a page the session of a browser that has signed in. @param baseUrl of the gateway. */
export async function takeSession(
  { page }: ConsolePage,
  browser: ConsoleBrowser,
  baseUrl: string,
): Promise<void> {
  const value = browser.cookies.get(SESSION_COOKIE) ?? ''
  const url = baseUrl.replace('http:', 'https:')
  await page.context().addCookies([{ name: SESSION_COOKIE, value, secure: true, url }])
}

/** No violation of WCAG, nothing wider than the page, and no complaint so far. */
export async function expectAccessible({ page, width, complaints }: ConsolePage): Promise<void> {
  expect(await page.evaluate(WIDER)).toEqual([])
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
  // Through the debugger, which the policy of the page does not concern.
  await page.evaluate(AXE)
  const found = await page.evaluate(
    'axe.run().then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + " " + html.slice(0, 200))))',
  )
  expect(found).toEqual([])
  expect(complaints).toEqual([])
}

/** Presses keys one after the other. */
export async function press({ page }: ConsolePage, ...keys: string[]): Promise<void> {
  for (const key of keys) await page.keyboard.press(key)
}
