import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { organizationId, userId } from '../../scripts/demo-organizations.ts'
import { send } from '../harness/send.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { addMember, administrator, bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { hasChromium, startChromium } from './support/chromium.ts'
import { expectAccessible, LOOKS, openPage, press } from './support/console-page.ts'

const START = 'start-token-of-this-test-0123456789abcdef'
const MEMBERS = [
  `${organizationId('acme')}/${userId('owner')}`,
  `${organizationId('other')}/${userId('other_org')}`,
]
const TWO_MINUTES = 120_000

/** A device with passkeys, of which the browser asks (https://chromedevtools.github.io/devtools-protocol/tot/WebAuthn). */
async function addAuthenticator(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page)
  await session.send('WebAuthn.enable')
  await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
}

// A gateway of a local system, since browsers have no passkeys at an IP address.
describe.skipIf(!hasChromium())('signing in with a browser', () => {
  let chromium: Awaited<ReturnType<typeof startChromium>>
  let address: StartedGateway
  let tenant: Tenant
  let origin: string
  beforeAll(async () => {
    const variables = { LOCAL_SIGN_IN: [START, ...MEMBERS].join(',') }
    const started = startGateway({ bundleDirectory: inject('bundleDirectory'), variables, isBrief: true })
    ;[chromium, address] = await Promise.all([startChromium(), started])
    origin = address.baseUrl.replace('127.0.0.1', 'localhost')
    tenant = await createTenant(address)
  }, 60_000)
  afterAll(async () => {
    await chromium?.close()
    await address?.stop()
  })

  const setupLink = async (name: string) => {
    const member = await addMember(address, tenant.base, { name })
    const { token } = await administrator(address).ask<{ token: string }>(
      'POST',
      `${tenant.base}/users/${member}/setup-link`,
    )
    return `${origin}/console/setup#token=${token}`
  }

  it.each(LOOKS)(
    'takes a new user from a setup link to a passkey, a key and a first call, in $colorScheme',
    async (look) => {
      const link = await setupLink('Ada')
      const began = Date.now()
      const open = await openPage(chromium.browser, look)
      const { page } = open
      await addAuthenticator(page)
      await page.goto(link)
      await page.waitForSelector('dd:has-text("Ada")')
      expect(page.url()).toBe(`${origin}/console/setup`)
      await expectAccessible(open)
      await page.focus('input')
      await press(open, 'Enter')
      await page.waitForSelector('text=Make your first call')
      await expectAccessible(open)
      await press(open, 'g', 'a')
      await page.waitForSelector('text=You have no API key')
      await press(open, 'n')
      await page.keyboard.type('laptop')
      await press(open, 'Enter')
      await page.waitForSelector('text=Waiting for the first call')
      const key = (await page.textContent('pre')) ?? ''
      const body = JSON.stringify({ model: 'scripted-chat', messages: [{ role: 'user', content: 'Hello' }] })
      const url = `${address.baseUrl}/v1/chat/completions`
      expect((await send(url, { method: 'POST', headers: bearer(key), body })).status).toBe(200)
      await press(open, 'g', 'c')
      await page.waitForSelector('td:has-text("scripted-chat")')
      expect(Date.now() - began).toBeLessThan(TWO_MINUTES)

      // The passkey alone lets the same person in again.
      await page.context().clearCookies()
      await page.goto(`${origin}/console`)
      await page.waitForSelector('button:has-text("Sign in with a passkey")')
      await page.focus('button')
      await press(open, 'Enter')
      await page.waitForSelector('h1:has-text("Home")')
      await expectAccessible(open)
      await page.close()
    },
  )

  it('refuses a setup link that was used, and says who makes another', async () => {
    const link = await setupLink('Grace')
    const first = await openPage(chromium.browser)
    await addAuthenticator(first.page)
    await first.page.goto(link)
    await first.page.click('button:has-text("Create passkey")')
    await first.page.waitForSelector('h1:has-text("Home")')
    const second = await openPage(chromium.browser, LOOKS[0], ['401'])
    await second.page.goto(link)
    await second.page.waitForSelector('text=has expired, was used, or was replaced')
    expect(await second.page.textContent('main')).toContain('can make another one')
    await expectAccessible(second)
    await Promise.all([first.page.close(), second.page.close()])
  })

  it('returns to the page that somebody wanted, and to no other site', async () => {
    const link = await setupLink('Barbara')
    const open = await openPage(chromium.browser)
    const { page } = open
    await addAuthenticator(page)
    await page.goto(link)
    await page.click('button:has-text("Create passkey")')
    await page.waitForSelector('h1:has-text("Home")')
    const slug = new URL(page.url()).pathname.split('/')[2]
    for (const [wanted, got] of [
      [`/console/${slug}/models?model=x`, `/console/${slug}/models`],
      ['https://evil.example/console/', `/console/${slug}`],
      ['//evil.example/console/', `/console/${slug}`],
      ['/console/../v1/models', `/console/${slug}`],
      ['javascript:alert(1)', `/console/${slug}`],
    ] as const) {
      await page.context().clearCookies()
      await page.goto(`${origin}/console/sign-in?to=${encodeURIComponent(wanted)}`)
      await page.click('button:has-text("Sign in with a passkey")')
      await page.waitForSelector('nav a')
      expect(new URL(page.url()).origin, wanted).toBe(origin)
      await page.waitForURL(`${origin}${got}**`, { timeout: 5_000 }).catch(() => undefined)
      expect(new URL(page.url()).pathname.replace(/\/$/, ''), wanted).toBe(got)
    }
    await page.close()
  })

  it('lets the link of a local system in once, with a menu of the other demo callers', async () => {
    const open = await openPage(chromium.browser)
    const { page } = open
    await page.goto(`${origin}/console#start=${START}`)
    await page.waitForSelector('h1:has-text("Home")')
    expect(page.url()).not.toContain(START)
    await page.click('button[aria-label$="menu"]')
    await page.waitForSelector('#menu option:has-text(" · ")', { state: 'attached' })
    const options = await page.$$eval('#menu select option', (all) =>
      all.map(({ textContent }) => textContent),
    )
    expect(options.filter((text) => text?.includes(' · '))).toHaveLength(2)
    await expectAccessible(open)
    await page.selectOption('#menu select', { index: 1 })
    await page.waitForSelector('button[aria-label^="Other"]')
    const again = await openPage(chromium.browser, LOOKS[0], ['401'])
    await again.page.goto(`${origin}/console#start=${START}`)
    await again.page.waitForSelector('text=This start link was used already')
    await Promise.all([page.close(), again.page.close()])
  })
})
