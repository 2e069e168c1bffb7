import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ConsoleBrowser, signedInBrowser } from '../harness/console-browser.ts'
import { gateway } from '../harness/gateway.ts'
import { callEntries } from '../harness/records.ts'
import { send } from '../harness/send.ts'
import { addMember, administrator, bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { hasChromium, startChromium } from './support/chromium.ts'
import { expectAccessible, LOOKS, openPage, takeSession } from './support/console-page.ts'

/** Each page, with what it shows and the roles that may open it. */
const PAGES = [
  { path: '', shows: 'Attention', roles: ['member', 'admin', 'owner', 'auditor', 'security'] },
  { path: '/calls', shows: 'calls', roles: ['member', 'admin', 'owner', 'auditor', 'security'] },
  { path: '/playground', shows: 'Run all', roles: ['member', 'admin', 'owner', 'auditor', 'security'] },
  { path: '/policies', shows: 'Live test', roles: ['admin', 'owner', 'security'] },
  { path: '/models', shows: 'scripted-chat', roles: ['member', 'admin', 'owner', 'auditor', 'security'] },
  { path: '/settings/api', shows: 'New key', roles: ['member', 'admin', 'owner', 'auditor', 'security'] },
] as const
const ROLES = {
  member: { role: 'member' },
  admin: { role: 'admin' },
  owner: { role: 'owner' },
  auditor: { role: 'member', entitlement: 'auditor' },
  security: { role: 'member', entitlement: 'security' },
} as const
type RoleName = keyof typeof ROLES

/** Markup in every name that somebody else chooses. */
const MARKUP = '<img src=x onerror="document.title=1">'

describe.skipIf(!hasChromium())('pages of the console', () => {
  let chromium: Awaited<ReturnType<typeof startChromium>>
  let tenant: Tenant
  let slug: string
  const browsers = new Map<RoleName, ConsoleBrowser>()
  beforeAll(async () => {
    chromium = await startChromium()
    const { ask } = administrator(gateway())
    tenant = await createTenant(gateway(), { user: { name: MARKUP }, key: { label: MARKUP } })
    slug = (await ask<{ slug: string }>('GET', tenant.base)).slug
    await ask('POST', `${tenant.base}/dlp/policies`, {
      name: MARKUP,
      directions: ['request', 'response'],
      rules: [{ detector: 'card', action: 'mask' }],
    })
    for (const [name, member] of Object.entries(ROLES) as Array<
      [RoleName, { role: string; entitlement?: string }]
    >) {
      const userId = await addMember(gateway(), tenant.base, { role: member.role, name: `Test ${name}` })
      if (member.entitlement)
        await ask('PUT', `${tenant.base}/users/${userId}/entitlements/${member.entitlement}`)
      browsers.set(name, await signedInBrowser(gateway(), tenant.base, userId))
    }
    for (const model of ['scripted-chat', MARKUP]) {
      const body = JSON.stringify({
        model,
        messages: [{ role: 'user', content: 'Hello, 4111 1111 1111 1111' }],
      })
      const url = `${gateway().baseUrl}/v1/chat/completions`
      await send(url, { method: 'POST', headers: bearer(tenant.key), body })
    }
    await callEntries(gateway(), tenant, 2)
  }, 60_000)
  afterAll(() => chromium?.close())

  const cases = (Object.keys(ROLES) as RoleName[]).flatMap((role) =>
    LOOKS.map((look) => ({ role, look, ...look })),
  )

  it.each(cases)('are those of a $role, in $colorScheme at $width pixels', async ({ role, look }) => {
    // The console asks for what a page shows; the gateway refuses it, which the browser reports.
    const open = await openPage(chromium.browser, look, ['403'])
    const { page } = open
    await takeSession(open, browsers.get(role) as ConsoleBrowser, gateway().baseUrl)
    for (const { path, shows, roles } of PAGES) {
      await page.goto(`${gateway().baseUrl}/console/${slug}${path}`)
      const isOpen = (roles as readonly string[]).includes(role)
      await page.waitForSelector(isOpen ? `main >> text=${shows}` : 'text=Your role does not include this')
      if (!isOpen) expect(await page.textContent('main')).toContain('policies.read')
      await page.waitForLoadState('networkidle').catch(() => undefined)
      const links = await page.$$eval('nav a', (all) =>
        all.map((link) => link.getAttribute('href')?.replace(/\?.*/, '')),
      )
      expect(links.includes(`/console/${slug}${path}`), path).toBe(isOpen)
      await expectAccessible(open)
      expect(await page.title(), path).not.toBe('1')
    }
    await page.close()
  })

  it('show the calls of all to those who may read them, and of a member only its own', async () => {
    for (const [role, text] of [
      ['auditor', 'scripted-chat'],
      ['member', 'No call matches'],
    ] as const) {
      const open = await openPage(chromium.browser)
      await takeSession(open, browsers.get(role) as ConsoleBrowser, gateway().baseUrl)
      await open.page.goto(`${gateway().baseUrl}/console/${slug}/calls`)
      await open.page.waitForSelector(`main >> text=${text}`)
      expect(await open.page.textContent('h1')).toBe(role === 'member' ? 'Your calls' : 'Calls')
      await open.page.close()
    }
  })

  it('show names that are markup as text', async () => {
    const open = await openPage(chromium.browser)
    const { page } = open
    await takeSession(open, browsers.get('owner') as ConsoleBrowser, gateway().baseUrl)
    for (const path of ['/calls', '/policies', '/settings/api']) {
      await page.goto(`${gateway().baseUrl}/console/${slug}${path}`)
      await expect.poll(() => page.textContent('main'), { timeout: 10_000 }).toContain('<img')
      expect(await page.$('main img'), path).toBeNull()
    }
    await expectAccessible(open)
    await page.close()
  })

  it('are readable at twice the size, and on a screen of 320 pixels', async () => {
    const open = await openPage(chromium.browser, { colorScheme: 'light', width: 320 })
    await takeSession(open, browsers.get('owner') as ConsoleBrowser, gateway().baseUrl)
    for (const { path, shows } of PAGES) {
      await open.page.goto(`${gateway().baseUrl}/console/${slug}${path}`)
      await open.page.waitForSelector(`main >> text=${shows}`)
      await expectAccessible(open)
    }
    await open.page.close()
  })
})
