import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ConsoleBrowser, signedInBrowser } from '../harness/console-browser.ts'
import { gateway } from '../harness/gateway.ts'
import { callEntries } from '../harness/records.ts'
import { createRoutedModel } from '../harness/routed-model.ts'
import { send } from '../harness/send.ts'
import { addMember, administrator, bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { registerScript } from '../harness/upstream.ts'
import { hasChromium, startChromium } from './support/chromium.ts'
import {
  type ConsolePage,
  expectAccessible,
  LOOKS,
  openPage,
  press,
  takeSession,
} from './support/console-page.ts'

// What people come to the console for, by the keyboard where it has keys.

describe.skipIf(!hasChromium())('jobs in the console', () => {
  let chromium: Awaited<ReturnType<typeof startChromium>>
  let tenant: Tenant
  let slug: string
  let owner: ConsoleBrowser
  let failedRequest: string
  const api = () => administrator(gateway())
  beforeAll(async () => {
    chromium = await startChromium()
    tenant = await createTenant(gateway())
    slug = (await api().ask<{ slug: string }>('GET', tenant.base)).slug
    owner = await signedInBrowser(
      gateway(),
      tenant.base,
      await addMember(gateway(), tenant.base, { role: 'owner' }),
    )
    const broken = await registerScript(gateway(), [{ destroy: true }])
    failedRequest = await callOf(`${broken} Hello`)
    await callOf('Hello')
    await callEntries(gateway(), tenant, 2)
  }, 60_000)
  afterAll(() => chromium?.close())

  /** @returns its request id */
  async function callOf(content: string): Promise<string> {
    const body = JSON.stringify({ model: 'scripted-chat', messages: [{ role: 'user', content }] })
    const url = `${gateway().baseUrl}/v1/chat/completions`
    const answer = await send(url, { method: 'POST', headers: bearer(tenant.key), body })
    return String(answer.headers['x-request-id'])
  }

  async function open(path: string, look = LOOKS[0] as (typeof LOOKS)[number]): Promise<ConsolePage> {
    const opened = await openPage(chromium.browser, look)
    await opened.page
      .context()
      .grantPermissions(['clipboard-read', 'clipboard-write'], { origin: gateway().baseUrl })
    await takeSession(opened, owner, gateway().baseUrl)
    await opened.page.goto(`${gateway().baseUrl}/console/${slug}${path}`)
    await opened.page.waitForSelector('main h2, main p, main button')
    return opened
  }

  it('finds why a call failed, from its request id', async () => {
    const opened = await open('')
    const { page } = opened
    await press(opened, 'Control+k')
    await page.keyboard.insertText(failedRequest)
    await page.waitForSelector('[role="option"]:has-text("call")')
    await expectAccessible(opened)
    await press(opened, 'Enter')
    await page.waitForSelector('h2:has-text("Proof")')
    const text = (await page.textContent('main')) ?? ''
    expect(text).toContain('Attempt 1')
    expect(text).toContain('empty body')
    await expectAccessible(opened)
    await press(opened, 'y')
    expect(await page.evaluate('navigator.clipboard.readText()')).toMatch(/^call_/)
    await page.close()
  })

  it('goes to the calls before and after one, within the filter', async () => {
    const opened = await open('/calls?q=surface:chat_completions')
    const { page } = opened
    await page.waitForSelector('tr[data-index="1"]')
    await press(opened, 'j', 'j', 'Enter')
    await page.waitForSelector('h2:has-text("Proof")')
    const older = new URL(page.url()).pathname
    await press(opened, '[')
    await page.waitForURL((url) => url.pathname !== older)
    expect(page.url()).toContain('q=surface')
    await page.waitForSelector('button:has-text("Older"):not([disabled])')
    await press(opened, ']')
    await page.waitForURL((url) => url.pathname === older)
    await page.close()
  })

  it('zooms by keys, filters by an outcome and exports what is shown', async () => {
    const opened = await open('/calls')
    const { page } = opened
    await page.waitForSelector('tr[data-index="1"]')
    await page.click('button:has-text("failed")')
    await page.waitForURL(/q=outcome%3Afailed|q=outcome:failed/)
    await expect.poll(() => page.$$eval('tr[data-index]', (rows) => rows.length)).toBe(1)
    const [download] = await Promise.all([page.waitForEvent('download'), press(opened, 'e')])
    const csv = readFileSync(await download.path(), 'utf8').split('\r\n')
    expect(csv).toHaveLength(2)
    expect(csv[1]).toContain(failedRequest)
    await press(opened, 'Shift+ArrowRight')
    await page.waitForURL(/from=.*to=/)
    await expectAccessible(opened)
    await page.goBack()
    await expect.poll(() => page.url()).not.toContain('from=')
    await page.close()
  })

  it.each(LOOKS)(
    'compares a model on several surfaces, each with its record, in $colorScheme',
    async (look) => {
      const opened = await open('/playground', look)
      const { page } = opened
      await page.click('button:has-text("Add column")')
      await page.click('button:has-text("Add column")')
      const surfaces = page.locator('select[aria-label="Surface"]')
      await surfaces.nth(1).selectOption('messages')
      await surfaces.nth(2).selectOption('responses')
      await press(opened, 'Control+Enter')
      await expect.poll(() => page.locator('text=Open the call').count(), { timeout: 30_000 }).toBe(3)
      const answers = await page.$$eval('[role="group"][aria-label="Answer"]', (all) =>
        all.map((each) => each.textContent),
      )
      expect(answers.every((answer) => (answer ?? '').length > 5)).toBe(true)
      await expectAccessible(opened)
      await page.locator('text=Open the call').first().click()
      await page.waitForSelector('h2:has-text("Proof")')
      await page.close()
    },
  )

  it('shows the body of a refusal of a surface, and what is wrong with JSON', async () => {
    const opened = await openPage(chromium.browser, LOOKS[0], ['status of 400'])
    const { page } = opened
    await takeSession(opened, owner, gateway().baseUrl)
    await page.goto(`${gateway().baseUrl}/console/${slug}/playground`)
    await page.fill('textarea', '{"model": ')
    await page.waitForSelector('text=This is no JSON')
    await page.fill('textarea', '{"model": "nothing", "messages": [{"role": "user", "content": "Hello"}]}')
    await page.click('button:has-text("Run"):not(:has-text("all"))')
    await page.waitForSelector('pre:has-text("model_not_found")')
    await expectAccessible(opened)
    await page.close()
  })

  it.each(LOOKS)(
    'makes a filter: rules beside a sample, dry run, difference, enable, in $colorScheme',
    async (look) => {
      const opened = await open('/policies', look)
      const { page } = opened
      const name = `cards ${look.colorScheme}`
      await press(opened, 'n')
      await page.waitForSelector('h2:has-text("Live test")')
      await page.fill('input[maxlength="200"]', name)
      await page.waitForSelector('text=Passes, changed in 2 places')
      expect(await page.textContent('pre')).toContain('**** **** **** 1111')
      await page.click('button:has-text("Create and enable")')
      await page.waitForSelector('text=version 1 is in force')
      await expectAccessible(opened)

      await page.selectOption('select[aria-label="Action: card"]', 'block')
      await page.waitForSelector('text=Blocked.')
      await press(opened, 'Control+s')
      await page.waitForSelector('text=kept in this browser')
      await page.reload()
      await page.waitForSelector('text=draft of version 2, 1 change')
      await page.click('button:has-text("Difference")')
      await page.waitForSelector('li:has-text("card block instead of mask")')
      await press(opened, 'Control+Enter')
      await page.fill('textarea >> nth=0', 'card 4111 1111 1111 1111\nnothing here')
      await page.click('button:has-text("Count")')
      await page.waitForSelector('text=1 of 2 samples have findings, 1 would be blocked')
      await expectAccessible(opened)

      // Somebody else changes it meanwhile: neither change is lost.
      const { data } = await api().ask<{ data: Array<{ id: string; name: string }> }>(
        'GET',
        `${tenant.base}/dlp/policies`,
      )
      const id = data.find((policy) => policy.name === name)?.id
      await api().ask('PUT', `${tenant.base}/dlp/policies/${id}`, { version: 1, directions: ['request'] })
      opened.complaints.length = 0
      await page.click('button:has-text("Enable version 2")')
      await page.waitForSelector('text=Somebody has made version 2')
      opened.complaints.length = 0
      await page.click('button:has-text("Put my draft on top of theirs")')
      await page.click('button:has-text("Enable version 3")')
      await page.waitForSelector('text=version 3 is in force')
      await expectAccessible(opened)
      expect(
        (await api().ask<{ rules: Array<{ action: string }> }>('GET', `${tenant.base}/dlp/policies/${id}`))
          .rules[0],
      ).toMatchObject({ action: 'block' })
      await api().ask('DELETE', `${tenant.base}/dlp/policies/${id}`)
      await page.close()
    },
  )

  it('grants a model and takes it back', async () => {
    const opened = await open('/models')
    const { page } = opened
    await page.click('button:has-text("scripted-chat-large")')
    await page.selectOption('main form select', { label: 'role admin' })
    await page.click('button:has-text("Grant")')
    await page.waitForSelector('li:has-text("role admin")')
    await expectAccessible(opened)
    await page.click('li:has-text("role admin") button')
    await expect.poll(() => page.$('li:has-text("role admin")')).toBeNull()
    await page.close()
  })

  it('shows operators the routes of a model, which they order', async () => {
    const { id, providers } = await createRoutedModel(gateway(), ['openai-compatible', 'openai-compatible'])
    const userId = await addMember(gateway(), tenant.base, { role: 'admin' })
    await api().ask('PUT', `${tenant.base}/users/${userId}/entitlements/operator`)
    const opened = await openPage(chromium.browser)
    const { page } = opened
    await takeSession(opened, await signedInBrowser(gateway(), tenant.base, userId), gateway().baseUrl)
    await page.goto(`${gateway().baseUrl}/console/${slug}/models?model=${id}`)
    await page.waitForSelector('h2:has-text("Routes")')
    const order = () =>
      page.$$eval('section[aria-label="Routes"] td[data-place="a2"]', (all) =>
        all.map((each) => each.textContent),
      )
    await expect.poll(order).toEqual(providers)
    await expectAccessible(opened)
    await page.click('button:has-text("Earlier")')
    await expect.poll(order).toEqual(providers.toReversed())
    await expectAccessible(opened)
    await page.close()
    const ofOwner = await open(`/models?model=${id}`)
    await ofOwner.page.waitForSelector(`h2:has-text("${id}")`)
    expect(await ofOwner.page.$('h2:has-text("Routes")')).toBeNull()
    await ofOwner.page.close()
  })

  it('says what needs somebody, with what to do about it', async () => {
    const expires = new Date(Date.now() + 3 * 24 * 60 * 60_000).toISOString()
    const { id } = await api().ask<{ id: string }>('POST', `${tenant.base}/keys`, {
      user_id: tenant.userId,
      label: 'ends soon',
      expires_at: expires,
    })
    const opened = await open('')
    await opened.page.waitForSelector('li:has-text("ends soon")')
    await expectAccessible(opened)
    await opened.page.click('li:has-text("ends soon") a')
    await opened.page.waitForSelector('tr[aria-selected="true"]:has-text("ends soon")')
    await api().ask('DELETE', `${tenant.base}/keys/${id}`)
    await opened.page.close()
  })
})
