import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { hasChromium, startChromium } from './support/chromium.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

describe.skipIf(!hasChromium())('the console in a browser', () => {
  let chromium: { browser: Browser; close: () => Promise<void> }
  beforeAll(async () => {
    chromium = await startChromium()
  })
  afterAll(() => chromium?.close())

  it.each([
    ['light', 1280],
    ['dark', 390],
  ] as const)('leads to the sign-in in %s at %i pixels, without a violation', async (colorScheme, width) => {
    const page = await chromium.browser.newPage({ viewport: { width, height: 844 }, colorScheme })
    const complaints: string[] = []
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('console', (message) => {
      // Nobody is signed in, which the browser reports as a failed request.
      if (message.type() === 'error' && !message.location().url.endsWith('/api/me'))
        complaints.push(message.text())
    })
    await page.goto(`${gateway().baseUrl}/console/acme/settings/api`)
    await page.waitForSelector('button:has-text("Sign in with a passkey")')
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
    expect(complaints).toEqual([])
    // Through the debugger, which the policy of the page does not concern.
    await page.evaluate(AXE)
    const found = await page.evaluate('axe.run().then(({ violations }) => violations.map(({ id }) => id))')
    expect(found).toEqual([])
    await page.close()
  })
})
