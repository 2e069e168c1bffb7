import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { hasChromium, startChromium } from './support/chromium.ts'

const SHOWN = { timeout: 30_000 }

describe.skipIf(!hasChromium())('the reference of the APIs in a browser', () => {
  let chromium: { browser: Browser; close: () => Promise<void> }
  beforeAll(async () => {
    chromium = await startChromium()
  })
  afterAll(() => chromium?.close())

  /** Opens a page. @returns it, with the addresses that it loads and the complaints of the browser. */
  async function open(path: string, options: { width?: number; colorScheme?: 'light' | 'dark' } = {}) {
    const { width = 1280, colorScheme = 'light' } = options
    const page = await chromium.browser.newPage({ viewport: { width, height: 800 }, colorScheme })
    const [loaded, complaints]: [string[], string[]] = [[], []]
    page.on('request', (request) => loaded.push(request.url()))
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
    page.on('pageerror', (error) => complaints.push(error.message))
    await page.goto(gateway().baseUrl + path)
    return { page, loaded, complaints }
  }

  const shows = (page: Page, text: string) =>
    page.waitForSelector(`#reference h2:has-text("${text}") >> nth=0`, SHOWN)

  it.each(['light', 'dark'] as const)(
    'shows the public API in %s colors, from this gateway alone',
    async (colorScheme) => {
      const { page, loaded, complaints } = await open('/docs/api', { colorScheme })
      await shows(page, 'Creates a chat completion')
      const hosts = new Set(loaded.map((address) => new URL(address.replace(/^blob:/, '')).origin))
      expect([...hosts]).toEqual([gateway().baseUrl])
      expect(complaints).toEqual([])
      const background = await page.evaluate('getComputedStyle(document.body).backgroundColor')
      expect(background).toBe(colorScheme === 'light' ? 'rgb(255, 255, 255)' : 'rgb(20, 23, 28)')
      await page.close()
    },
  )

  it('fits a screen of 390 pixels', async () => {
    const { page } = await open('/docs/api', { width: 390 })
    await shows(page, 'Creates a chat completion')
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390)
    await page.close()
  })

  it('leads to an operation by the keyboard alone', async () => {
    const { page } = await open('/docs/api')
    await shows(page, 'Creates a chat completion')
    await page.focus('#reference input')
    await page.keyboard.type('webhook')
    await page.waitForSelector('[data-role="search:results"]', SHOWN)
    // The first result is the group of operations.
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await expect.poll(() => new URL(page.url()).hash, SHOWN).toContain('webhooks.fire')
    // Entries of the menu take the keyboard as well.
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await expect.poll(() => new URL(page.url()).hash, SHOWN).not.toContain('webhooks.fire')
    await page.close()
  })

  it('shows the management API to the holder of the administration token only', async () => {
    const { page, complaints } = await open('/docs/api/management')
    const present = async (token: string) => {
      await page.fill('#token', token)
      await page.keyboard.press('Enter')
    }
    await present('wrong')
    await expect.poll(() => page.textContent('#status'), SHOWN).toContain('not the administration token')
    expect(await page.textContent('#reference')).toBe('')
    await present(gateway().adminToken)
    await shows(page, 'Creates an organization')
    expect(await page.content()).not.toContain(gateway().adminToken)
    expect(await page.evaluate('localStorage.length + sessionStorage.length')).toBe(0)
    // The refused token is a 401, which the browser writes down.
    expect(complaints.filter((text) => !text.includes('401'))).toEqual([])
    await page.close()
  })
})
