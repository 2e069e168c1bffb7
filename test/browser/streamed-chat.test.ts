import type { Browser, Page, Request } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Edge, startEdge } from '../../scripts/local/edge.ts'
import { createChatFrames, roleDelta, streamEnd } from '../../scripts/local/model-upstream/chat-frames.ts'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import { auditEntries, settledCredits } from '../harness/records.ts'
import { CHAT_MODEL } from '../harness/sdk-clients.ts'
import { createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { marker, registerScript, type ScriptStep, seenRequest } from '../harness/upstream.ts'
import { type Application, startApplication } from './support/application.ts'
import { hasChromium, startChromium } from './support/chromium.ts'

/** How long the page may take to show what has arrived. */
const SHOWN = { timeout: 20_000, interval: 20 }

/** How long after a page is gone the upstream may still write for it, in milliseconds; a second, and a slow machine. */
const ABORT_LIMIT_MS = 3_000

describe.skipIf(!hasChromium())('a page that reads a streamed chat completion', () => {
  let chromium: { browser: Browser; close: () => Promise<void> }
  let edge: Edge
  let application: Application
  let tenant: Tenant
  let page: Page
  let sent: Request[]

  beforeAll(async () => {
    chromium = await startChromium()
    edge = await startEdge(gateway().baseUrl)
    tenant = await createTenant(gateway())
    application = await startApplication(edge.url, tenant.key)
  })
  afterAll(async () => {
    await chromium?.close()
    await application?.close()
    await edge?.close()
  })

  beforeEach(async () => {
    page = await chromium.browser.newPage()
    sent = []
    page.on('request', (request) => sent.push(request))
    await page.goto(application.url)
  })
  afterEach(() => page.close())

  async function ask(prompt: string): Promise<void> {
    await page.fill('input', prompt)
    await page.click('button')
  }

  /** Waits until the page shows exactly this text. */
  const shows = (text: string) => expect.poll(() => page.textContent('output'), SHOWN).toBe(text)

  const isComplete = () => expect.poll(() => page.getAttribute('body', 'data-state'), SHOWN).toBe('complete')

  it('shows each piece before the upstream writes the next, and the whole once', async () => {
    const pieces = ['It ', 'grows, ', 'é and 🦉, ', 'piece by ', 'piece.']
    const signals = pieces.map(() => uniqueName('piece'))
    const frames = createChatFrames(CHAT_MODEL, false)
    const steps: ScriptStep[] = pieces.flatMap((piece, index) => [
      { sse: [frames.text(0, piece)] },
      { waitForSignal: signals[index] ?? '' },
    ])
    const prompt = await registerScript(gateway(), [
      { status: 200, headers: { 'content-type': 'text/event-stream' } },
      { sse: [frames.choice(0, roleDelta)] },
      ...steps,
      { sse: [frames.finish(0, 'stop'), streamEnd] },
    ])
    await ask(prompt)
    let whole = ''
    for (const [index, piece] of pieces.entries()) {
      whole += piece
      await shows(whole)
      await upstreamControl(gateway()).release(signals[index] ?? '')
    }
    await isComplete()
    expect(await page.textContent('output')).toBe(whole)
  })

  it('grows with the pauses of the model, and is whole at its end', async () => {
    await ask('script:long-stream tokens=12 delay=80')
    await isComplete()
    expect(await page.textContent('output')).toBe(' word'.repeat(12))
    const painted = (await page.getAttribute('output', 'data-painted')) ?? ''
    const lengths = painted.trim().split(' ').map(Number)
    expect(lengths.length).toBeGreaterThanOrEqual(3)
    expect(lengths).toEqual([...new Set(lengths)].sort((left, right) => left - right))
  })

  it('holds no key, neither in its text nor in what it sends', async () => {
    await ask('script:canned')
    await isComplete()
    expect(sent.map((request) => new URL(request.url()).pathname)).toContain('/v1/chat/completions')
    const all = [await page.content(), ...sent.map((request) => [request.url(), request.postData()])]
    for (const request of sent) all.push(JSON.stringify(await request.allHeaders()))
    expect(JSON.stringify(all).includes(tenant.key)).toBe(false)
  })

  it('stops the upstream when it is left', async () => {
    const text = marker()
    await ask(`${text} script:long-stream tokens=100000 delay=20`)
    await expect.poll(async () => (await page.textContent('output'))?.length, SHOWN).toBeGreaterThan(20)
    expect((await seenRequest(gateway(), text)).clientClosedAt).toBeNull()
    const leftAt = Date.now()
    await page.goto(`${application.url}/elsewhere`)
    const { clientClosedAt, finished } = await seenRequest(
      gateway(),
      text,
      (request) => request.clientClosedAt !== null,
    )
    expect(finished).toBe(false)
    expect(Number(clientClosedAt) - leftAt).toBeLessThan(ABORT_LIMIT_MS)
    await settledCredits(gateway(), tenant)
    const [newest] = await auditEntries(gateway(), tenant)
    expect(newest).toMatchObject({ kind: 'call', key_id: tenant.keyId, status: 499 })
    expect(newest?.record.flags).toContain('client_left')
    expect(newest?.credits_settled).toBeGreaterThan(0)
  })
})
