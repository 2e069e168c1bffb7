import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signedInBrowser } from '../harness/console-browser.ts'
import { gateway } from '../harness/gateway.ts'
import { flush } from '../harness/records.ts'
import { send } from '../harness/send.ts'
import { addMember, bearer, createTenant } from '../harness/tenant.ts'
import { hasChromium, startChromium } from './support/chromium.ts'
import { expectAccessible, LOOKS, openPage, press, takeSession } from './support/console-page.ts'

describe.skipIf(!hasChromium())('the console in a browser', () => {
  let chromium: Awaited<ReturnType<typeof startChromium>>
  beforeAll(async () => {
    chromium = await startChromium()
  })
  afterAll(() => chromium?.close())

  it.each(LOOKS)('leads to the sign-in in $colorScheme at $width pixels', async (look) => {
    const open = await openPage(chromium.browser, look)
    await open.page.goto(`${gateway().baseUrl}/console/acme/settings/api`)
    await open.page.waitForSelector('button:has-text("Sign in with a passkey")')
    await expectAccessible(open)
    await open.page.close()
  })

  it.each(LOOKS)(
    'gives a user a key and its first call in $colorScheme at $width pixels, by the keyboard',
    async (look) => {
      const tenant = await createTenant(gateway())
      const userId = await addMember(gateway(), tenant.base, { name: 'Ada' })
      const open = await openPage(chromium.browser, look)
      const { page } = open
      await takeSession(open, await signedInBrowser(gateway(), tenant.base, userId), gateway().baseUrl)
      await page.goto(`${gateway().baseUrl}/console`)
      await page.waitForSelector('text=Make your first call')
      await expectAccessible(open)
      await press(open, 'g', 'a')
      await page.waitForSelector('text=You have no API key')
      await expectAccessible(open)
      await press(open, 'n')
      await page.keyboard.type('laptop')
      await press(open, 'Enter')
      await page.waitForSelector('text=This key is shown once')
      await expectAccessible(open)
      const key = (await page.textContent('pre')) ?? ''
      await press(open, 'g', 'c')
      await page.waitForSelector('text=No call matches')
      await expectAccessible(open)
      const body = JSON.stringify({ model: 'scripted-chat', messages: [{ role: 'user', content: 'Hello' }] })
      const url = `${gateway().baseUrl}/v1/chat/completions`
      expect((await send(url, { method: 'POST', headers: bearer(key), body })).status).toBe(200)
      await page.waitForSelector('td:has-text("scripted-chat")')
      await expectAccessible(open)
      await flush(gateway(), tenant)
      await press(open, 'j', 'Enter')
      await page.waitForSelector('h2:has-text("Proof")')
      await expectAccessible(open)
      expect(await page.textContent('main')).toContain('POST /v1/chat/completions')
      await page.close()
    },
  )
})
