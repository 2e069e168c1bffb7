import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { IdentityProvider } from '../harness/identity-provider.ts'
import { type StartedWorker, startWorker } from '../harness/start-worker.ts'
import { addMember, administrator, createTenant } from '../harness/tenant.ts'
import { hasChromium, startChromium } from './support/chromium.ts'
import { expectAccessible, LOOKS, openPage, press } from './support/console-page.ts'

describe.skipIf(!hasChromium())('a company account in a browser', () => {
  const provider = new IdentityProvider({ sub: 'ada', email: 'ada@example.com', email_verified: true })
  let chromium: Awaited<ReturnType<typeof startChromium>>
  let worker: StartedWorker
  let slug: string
  beforeAll(async () => {
    await provider.start()
    const allowed = [gateway().variables.EGRESS_ALLOW, new URL(provider.issuer).host]
      .filter(Boolean)
      .join(',')
    ;[chromium, worker] = await Promise.all([startChromium(), startWorker({ EGRESS_ALLOW: allowed })])
    const tenant = await createTenant(worker)
    const { ask } = administrator(worker)
    slug = (await ask<{ slug: string }>('GET', tenant.base)).slug
    await ask('PUT', `${tenant.base}/identity-provider`, {
      issuer: provider.issuer,
      client_id: provider.client.id,
      client_secret: provider.client.secret,
    })
    provider.account.email = `${slug}@example.com`
    await addMember(worker, tenant.base, { email: provider.account.email, name: 'Ada' })
  }, 60_000)
  afterAll(async () => {
    await chromium?.close()
    await worker?.stop()
    await provider.stop()
  })

  it.each(LOOKS)(
    'signs in by way of the provider, to the page that was wanted, in $colorScheme',
    async (look) => {
      const open = await openPage(chromium.browser, look)
      const { page } = open
      await page.goto(`${worker.baseUrl}/console/${slug}/models`)
      await page.waitForSelector('button:has-text("Sign in with your company account")')
      await expectAccessible(open)
      await page.focus('input')
      await page.keyboard.type(slug)
      await press(open, 'Enter')
      await page.waitForSelector('h1:has-text("Models")')
      await page.waitForSelector('td:has-text("scripted-chat")')
      await expectAccessible(open)
      // The session outlives the navigation that began at another site.
      await page.reload()
      await page.waitForSelector('h1:has-text("Models")')
      await page.close()
    },
  )

  it('says why it failed, and keeps the way with a passkey', async () => {
    const open = await openPage(chromium.browser)
    provider.faults = { denies: true }
    await open.page.goto(`${worker.baseUrl}/console/sign-in`)
    await open.page.fill('input', slug)
    await open.page.click('button:has-text("company account")')
    await open.page.waitForSelector('text=did not let you in')
    expect(await open.page.$('button:has-text("Sign in with a passkey")')).not.toBeNull()
    expect(await open.page.$('img')).toBeNull()
    await expectAccessible(open)
    await open.page.close()
    provider.faults = {}
  })
})
