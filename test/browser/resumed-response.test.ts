import { randomInt } from 'node:crypto'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Edge, startEdge } from '../../scripts/local/edge.ts'
import { createChatFrames, roleDelta, streamEnd } from '../../scripts/local/model-upstream/chat-frames.ts'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import { CHAT_MODEL } from '../harness/sdk-clients.ts'
import { send } from '../harness/send.ts'
import { createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { marker, registerScript, type ScriptStep, seenRequest } from '../harness/upstream.ts'
import { ask, createResponse, expectJson, type ToldResponse } from '../http/support/response-calls.ts'
import { hasChromium, startChromium } from './support/chromium.ts'
import { type CuttingApplication, startCuttingApplication } from './support/cutting-application.ts'

/** A browser waits some seconds before it connects again. */
const SHOWN = { timeout: 30_000, interval: 20 }

/** Text that each connection can be cut in: several kilobytes of events, characters of several bytes among it. */
const partOf = (part: number): string[] =>
  Array.from({ length: 15 }, (_, index) => `${part}.${index} é and 🦉 “quoted”, `)

/** Approximate bytes before the text, most of them in the two events that hold the response. */
const BYTES_BEFORE_TEXT = 2_000
/** Fewer bytes than the events of a part have, so that each connection gets as far as its cut. */
const BYTES_OF_PART = 2_000
/** Connections that are cut: the first in the text, so that the second has a number to go on from. */
const CUTS = 4

describe.skipIf(!hasChromium())('a page that follows a response with an EventSource', () => {
  let chromium: { browser: Browser; close: () => Promise<void> }
  let edge: Edge
  let tenant: Tenant
  let application: CuttingApplication | undefined
  let page: Page | undefined

  beforeAll(async () => {
    chromium = await startChromium()
    edge = await startEdge(gateway().baseUrl)
    tenant = await createTenant(gateway())
  })
  afterEach(async () => {
    await page?.close()
    await application?.close()
    page = undefined
    application = undefined
  })
  afterAll(async () => {
    await chromium?.close()
    await edge?.close()
  })

  /** An answer in parts; each part but the first waits for its signal, and so does the end. */
  async function answerInParts(parts: string[][], signals: string[]): Promise<string> {
    const frames = createChatFrames(CHAT_MODEL, false)
    const steps = parts.flatMap((part, index): ScriptStep[] => [
      { sse: part.map((text) => frames.text(0, text)) },
      { waitForSignal: signals[index] ?? '' },
    ])
    return registerScript(gateway(), [
      { status: 200, headers: { 'content-type': 'text/event-stream' } },
      { sse: [frames.choice(0, roleDelta)] },
      ...steps,
      { sse: [frames.finish(0, 'stop'), streamEnd] },
    ])
  }

  const told = async <Value>(name: string): Promise<Value> =>
    JSON.parse((await page?.getAttribute('body', name)) ?? 'null') as Value

  it('shows the text once and whole, though the connection is cut again and again while it is generated', async () => {
    const cuts = Array.from({ length: CUTS }, () => randomInt(1, BYTES_OF_PART))
    cuts[0] = randomInt(BYTES_BEFORE_TEXT, BYTES_BEFORE_TEXT + BYTES_OF_PART)
    const parts = [...cuts, 0].map((_, index) => partOf(index))
    const signals = parts.map(() => uniqueName('part'))
    const text = marker()
    const prompt = `${text} ${await answerInParts(parts, signals)}`
    application = await startCuttingApplication(edge.url, tenant.key, cuts)
    const { connections, url } = application
    page = await chromium.browser.newPage()
    await page.goto(`${url}/?${new URLSearchParams({ model: CHAT_MODEL, prompt })}`)
    for (const [index, cut] of cuts.entries()) {
      await expect
        .poll(() => connections[index]?.cut, { ...SHOWN, message: `cut at ${cut} bytes` })
        .toBe(true)
      const { finished, clientClosedAt } = await seenRequest(gateway(), text)
      expect({ finished, clientClosedAt }).toEqual({ finished: false, clientClosedAt: null })
      const id = await page.getAttribute('body', 'data-response')
      const running = expectJson<ToldResponse>(await ask(tenant.key, 'GET', `/v1/responses/${id}`))
      expect(running.status).toBe('in_progress')
      await upstreamControl(gateway()).release(signals[index] ?? '')
    }
    await upstreamControl(gateway()).release(signals[cuts.length] ?? '')
    await expect.poll(() => page?.getAttribute('body', 'data-state'), SHOWN).toBe('complete')

    const whole = parts.flat().join('')
    expect(await page.textContent('output'), `cut at ${cuts} bytes`).toBe(whole)
    expect(await page.getAttribute('body', 'data-answer')).toBe(whole)
    const numbers = await told<Array<[number, number]>>('data-numbers')
    expect(numbers).toEqual(numbers.map((_, index) => [index + 1, index + 1]))
    const types = await told<string[]>('data-types')
    expect(types.at(-1)).toBe('response.completed')
    expect(types.filter((type) => type === 'response.created')).toHaveLength(1)

    expect(connections.map(({ cut }) => cut)).toEqual([...cuts.map(() => true), false])
    expect(connections.slice(0, -1).map(({ bytes }) => bytes)).toEqual(cuts)
    expect(await page.getAttribute('body', 'data-opened')).toBe(String(connections.length))
    expect(connections[0]?.lastEventId).toBeNull()
    const resumedAfter = connections.map(({ lastEventId }) => Number(lastEventId ?? 0))
    expect(resumedAfter).toEqual([...resumedAfter].sort((left, right) => left - right))
    expect(resumedAfter[1]).toBeGreaterThan(0)
  })

  it('cannot give its key in the address', async () => {
    const { id } = await createResponse(tenant.key, { input: 'script:canned' })
    const address = `/v1/responses/${id}?stream=true`
    expect((await ask(tenant.key, 'GET', address)).status).toBe(200)
    for (const name of ['key', 'api_key', 'api-key', 'x-api-key', 'access_token', 'token', 'authorization']) {
      for (const value of [tenant.key, `Bearer ${tenant.key}`]) {
        const answer = await send(`${gateway().baseUrl}${address}&${new URLSearchParams({ [name]: value })}`)
        expect(answer.status, name).toBe(401)
        expect(answer.text).toBe('{"error":"Unauthorized"}')
      }
    }
  })
})
