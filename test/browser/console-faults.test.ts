import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { type ConsoleBrowser, signedInBrowser } from '../harness/console-browser.ts'
import { callEntries } from '../harness/records.ts'
import { send } from '../harness/send.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { addMember, administrator, bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { hasChromium, startChromium } from './support/chromium.ts'
import { expectAccessible, LOOKS, openPage, press, takeSession } from './support/console-page.ts'

/** What a browser reports about requests that a test makes fail. */
const FAILED = ['Failed to load resource', 'ERR_']

// A gateway of its own, which is killed.
describe.skipIf(!hasChromium())('the console, when something fails', () => {
  let chromium: Awaited<ReturnType<typeof startChromium>>
  let address: StartedGateway
  let tenant: Tenant
  let slug: string
  beforeAll(async () => {
    const started = startGateway({ bundleDirectory: inject('bundleDirectory'), isBrief: true })
    ;[chromium, address] = await Promise.all([startChromium(), started])
    tenant = await createTenant(address)
    slug = (await administrator(address).ask<{ slug: string }>('GET', tenant.base)).slug
    await callOf()
    await callEntries(address, tenant, 1)
  }, 60_000)
  afterAll(async () => {
    await chromium?.close()
    await address?.stop()
  })

  const callOf = () =>
    send(`${address.baseUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: bearer(tenant.key),
      body: JSON.stringify({ model: 'scripted-chat', messages: [{ role: 'user', content: 'Hello' }] }),
    })

  const signedIn = async (): Promise<ConsoleBrowser> =>
    signedInBrowser(address, tenant.base, await addMember(address, tenant.base, { role: 'admin' }))

  async function open(path: string, browser: ConsoleBrowser) {
    const opened = await openPage(chromium.browser, LOOKS[0], FAILED)
    await takeSession(opened, browser, address.baseUrl)
    await opened.page.goto(`${address.baseUrl}/console/${slug}${path}`)
    return opened
  }

  it('keeps what was typed when the session has ended, and goes on after a new sign-in', async () => {
    const browser = await signedIn()
    const opened = await open('/settings/api', browser)
    const { page } = opened
    await page.waitForSelector('button:has-text("New key")')
    await press(opened, 'n')
    await page.keyboard.type('laptop of Ada')
    await browser.ask('POST', '/me/sign-out')
    await press(opened, 'Enter')
    await page.waitForSelector('text=You are not signed in')
    expect(await page.inputValue('form input')).toBe('laptop of Ada')
    await expectAccessible(opened)
    await takeSession(opened, await signedIn(), address.baseUrl)
    await page.click('button:has-text("Try again")')
    await page.waitForSelector('text=This key is shown once')
    await page.close()
  })

  it('shows that it waits, and says what failed with the id of the request', async () => {
    const opened = await open('/models', await signedIn())
    const { page } = opened
    await page.waitForSelector('td:has-text("scripted-chat")')
    await page.route('**/overview', async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 800))
      await route.fulfill({
        status: 503,
        headers: { 'x-request-id': 'req_of_this_test' },
        json: { message: 'The database did not answer.' },
      })
    })
    await press(opened, 'g', 'h')
    await page.waitForSelector('h1:has-text("Home")')
    await page.waitForSelector('text=Loading.')
    await page.waitForSelector('text=The database did not answer', { timeout: 30_000 })
    expect(await page.textContent('main')).toContain('req_of_this_test')
    // The other blocks of the page stand.
    expect(await page.$('text=Nothing needs you')).not.toBeNull()
    await expectAccessible(opened)
    await page.unroute('**/overview')
    await page.click('button:has-text("Try again")')
    await page.waitForSelector('h2:has-text("Today")')
    await page.close()
  })

  it('keeps its rows while the gateway is away, and follows new calls when it is back', async () => {
    const opened = await open('/calls', await signedIn())
    const { page } = opened
    await page.waitForSelector('tr[data-index="0"]')
    await address.workerd.kill()
    await press(opened, 'e')
    await page.waitForSelector('main [role="alert"]', { timeout: 30_000 })
    expect(await page.$$eval('tr[data-index]', (rows) => rows.length)).toBe(1)
    await address.restartWorkerd()
    await callOf()
    await expect.poll(() => page.$$eval('tr[data-index]', (rows) => rows.length), { timeout: 30_000 }).toBe(2)
    await expectAccessible(opened)
    await page.close()
  })
})
