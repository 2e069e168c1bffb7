import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SESSION_COOKIE, signedInBrowser } from '../harness/console-browser.ts'
import { gateway } from '../harness/gateway.ts'
import { flush } from '../harness/records.ts'
import { send } from '../harness/send.ts'
import { addMember, bearer, createTenant } from '../harness/tenant.ts'
import { hasChromium, startChromium } from './support/chromium.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Elements that stand out of the page at the right, but for those that scroll by themselves. */
const WIDER = `[...document.querySelectorAll('body *')]
  .filter((each) => each.getBoundingClientRect().right > innerWidth && !each.closest('section[tabindex]'))
  .map((each) => each.outerHTML.slice(0, 120))`

describe.skipIf(!hasChromium())('the console in a browser', () => {
  let chromium: { browser: Browser; close: () => Promise<void> }
  beforeAll(async () => {
    chromium = await startChromium()
  })
  afterAll(() => chromium?.close())

  /** A page that collects what a browser complains about. */
  async function open(colorScheme: 'light' | 'dark', width: number) {
    const page = await chromium.browser.newPage({ viewport: { width, height: 844 }, colorScheme })
    const complaints: string[] = []
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('console', (message) => {
      // Nobody is signed in at first, which the browser reports as a failed request.
      if (message.type() === 'error' && !message.location().url.endsWith('/api/me'))
        complaints.push(message.text())
    })
    return { page, complaints }
  }

  /** No violation of WCAG, nothing wider than the page. */
  async function expectAccessible(page: Page, width: number): Promise<void> {
    expect(await page.evaluate(WIDER)).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
    // Through the debugger, which the policy of the page does not concern.
    await page.evaluate(AXE)
    const found = await page.evaluate(
      'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + " " + nodes[0].html))',
    )
    expect(found).toEqual([])
  }

  it.each([
    ['light', 1280],
    ['dark', 390],
  ] as const)('leads to the sign-in in %s at %i pixels', async (colorScheme, width) => {
    const { page, complaints } = await open(colorScheme, width)
    await page.goto(`${gateway().baseUrl}/console/acme/settings/api`)
    await page.waitForSelector('button:has-text("Sign in with a passkey")')
    await expectAccessible(page, width)
    expect(complaints).toEqual([])
    await page.close()
  })

  it.each([
    ['light', 1280],
    ['dark', 390],
  ] as const)(
    'gives a user a key and its first call in %s at %i pixels, by the keyboard',
    async (colorScheme, width) => {
      const tenant = await createTenant(gateway())
      const userId = await addMember(gateway(), tenant.base, { name: 'Ada' })
      const { cookies } = await signedInBrowser(gateway(), tenant.base, userId)
      const { page, complaints } = await open(colorScheme, width)
      const session = { name: SESSION_COOKIE, value: cookies.get(SESSION_COOKIE) ?? '', secure: true }
      await page.context().addCookies([{ ...session, url: gateway().baseUrl.replace('http:', 'https:') }])
      await page.goto(`${gateway().baseUrl}/console`)
      await page.waitForSelector('text=You have no API key')
      await expectAccessible(page, width)
      await page.keyboard.press('n')
      await page.keyboard.type('laptop')
      await page.keyboard.press('Enter')
      await page.waitForSelector('text=This key is shown once')
      await expectAccessible(page, width)
      const key = (await page.textContent('pre')) ?? ''
      await page.keyboard.press('g')
      await page.keyboard.press('c')
      await page.waitForSelector('text=No call matches')
      await expectAccessible(page, width)
      const body = JSON.stringify({ model: 'scripted-chat', messages: [{ role: 'user', content: 'Hello' }] })
      const url = `${gateway().baseUrl}/v1/chat/completions`
      expect((await send(url, { method: 'POST', headers: bearer(key), body })).status).toBe(200)
      await page.waitForSelector('td:has-text("scripted-chat")')
      await expectAccessible(page, width)
      await flush(gateway(), tenant)
      await page.click('td a:has-text("scripted-chat")')
      await page.waitForSelector('h2:has-text("Record")')
      await expectAccessible(page, width)
      expect(complaints).toEqual([])
      await page.close()
    },
  )
})
