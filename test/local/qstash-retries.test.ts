import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  type Answer,
  type Destination,
  type QstashSetup,
  setUpQstash,
  startDestination,
  TOKEN,
} from './qstash-harness.ts'

let destination: Destination
let setup: QstashSetup

beforeEach(async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {})
  destination = await startDestination()
  setup = await setUpQstash({ control: true })
})
afterEach(async () => {
  await setup.standIn.close()
  await destination.close()
  vi.restoreAllMocks()
})

const pathsBecome = (paths: string[]): Promise<void> =>
  expect.poll(() => destination.paths(), { timeout: 5_000 }).toEqual(paths)

/** Waits until no delivery is in progress. @returns the milliseconds until the next attempt is due. */
async function nextAttemptIn(): Promise<number> {
  const read = async () => {
    const response = await fetch(`${setup.standIn.url}/control/pending`)
    return (await response.json()) as {
      now: number
      active: string[]
      messages: { nextDeliveryTime: number }[]
    }
  }
  await expect.poll(async () => (await read()).active, { timeout: 5_000 }).toEqual([])
  const { now, messages } = await read()
  return Math.min(...messages.map(({ nextDeliveryTime }) => nextDeliveryTime - now))
}

describe('retries', () => {
  it('follow the documented backoff, then end in the DLQ', async () => {
    destination.answer = () => ({ status: 503, headers: { 'x-why': 'busy' }, body: 'come back' })
    const url = `${destination.url}/fail`
    const { messageId } = await setup.client.publishJSON({ url, body: { a: 1 } })
    const expected = [12_182, 148_413, 1_808_042]
    for (const [retried, delay] of expected.entries()) {
      await pathsBecome(Array.from({ length: retried + 1 }, (_, index) => `/fail ${index}`))
      expect(Math.abs((await nextAttemptIn()) - delay)).toBeLessThan(2_000)
      setup.clock.advance(delay + 10)
    }
    await expect.poll(async () => (await setup.client.dlq.listMessages()).messages.length).toBe(1)
    const { messages } = await setup.client.dlq.listMessages()
    expect(messages[0]).toMatchObject({
      messageId,
      url,
      body: '{"a":1}',
      responseStatus: 503,
      responseBody: 'come back',
      responseHeader: { 'x-why': ['busy'] },
      maxRetries: 3,
      dlqId: expect.stringMatching(/^\d+-\d+$/),
    })
  })

  it('follow the delays of the publisher, by how often the message was delivered again', async () => {
    destination.answer = () => 503
    const url = `${destination.url}/x`
    await setup.client.publishJSON({
      url,
      body: 1,
      retryDelay: 'max(3000, pow(6, retried) * 2000) - (1 + 1) / 2',
    })
    for (const [retried, delay] of [2_999, 11_999, 71_999].entries()) {
      await pathsBecome(Array.from({ length: retried + 1 }, (_, index) => `/x ${index}`))
      expect(Math.abs((await nextAttemptIn()) - delay)).toBeLessThan(2_000)
      setup.clock.advance(delay + 10)
    }
  })

  it.each(['retry', 'pow(2', '1000 1', 'constructor(1)', '2 ** 3', '1 - 2', '-', ''])(
    'are refused with the delay %j',
    async (retryDelay) => {
      const headers = { authorization: `Bearer ${TOKEN}`, 'upstash-retry-delay': retryDelay }
      const answer = await fetch(`${setup.standIn.url}/v2/publish/${destination.url}/x`, {
        method: 'POST',
        headers,
      })
      expect(answer.status).toBe(400)
    },
  )

  it('stop with the first success', async () => {
    destination.answer = ({ headers }) => (headers['upstash-retried'] === '2' ? 204 : 500)
    await setup.client.publishJSON({ url: `${destination.url}/x`, body: 1 })
    for (const paths of [['/x 0'], ['/x 0', '/x 1'], ['/x 0', '/x 1', '/x 2']]) {
      await pathsBecome(paths)
      await nextAttemptIn()
      setup.clock.advance(86_400_000)
    }
    expect(await nextAttemptIn()).toBe(Number.POSITIVE_INFINITY)
    expect((await setup.client.dlq.listMessages()).messages).toEqual([])
  })

  it.each<[Record<string, string>, number]>([
    [{ 'retry-after': '30' }, 30_000],
    [{ 'retry-after': '6m5s' }, 365_000],
    [{ 'x-ratelimit-reset': '45' }, 45_000],
    [{ 'retry-after': '10', 'x-ratelimit-reset-requests': '99' }, 10_000],
    // More than a day: the backoff applies.
    [{ 'retry-after': '90000' }, 12_182],
    [{ 'retry-after': 'soon' }, 12_182],
  ])('obey the headers %j', async (headers, delay) => {
    destination.answer = () => ({ status: 429, headers })
    await setup.client.publishJSON({ url: `${destination.url}/x`, body: 1 })
    await pathsBecome(['/x 0'])
    expect(Math.abs((await nextAttemptIn()) - delay)).toBeLessThan(2_000)
  })

  it('obey a date in Retry-After', async () => {
    const date = new Date(setup.clock.now() + 90_000).toUTCString()
    destination.answer = () => ({ status: 503, headers: { 'retry-after': date } })
    await setup.client.publishJSON({ url: `${destination.url}/x`, body: 1 })
    await pathsBecome(['/x 0'])
    expect(Math.abs((await nextAttemptIn()) - 90_000)).toBeLessThan(2_500)
  })

  it.each<[string, Answer, boolean]>([
    ['489 with the header', { status: 489, headers: { 'upstash-nonretryable-error': 'true' } }, true],
    ['489 alone', 489, false],
    [
      'another status with the header',
      { status: 500, headers: { 'upstash-nonretryable-error': 'true' } },
      false,
    ],
  ])('are left out for a final error: %s', async (_name, answer, isFinal) => {
    destination.answer = () => answer
    await setup.client.publishJSON({ url: `${destination.url}/x`, body: 1, delay: 0 })
    await pathsBecome(['/x 0'])
    await nextAttemptIn()
    expect((await setup.client.dlq.listMessages()).messages).toHaveLength(isFinal ? 1 : 0)
  })

  it('follow a time-out, a refused connection, a redirect and a broken answer', async () => {
    destination.answer = ({ url }) => {
      if (url.endsWith('/slow')) return { status: 200, hang: true }
      return { status: 302, headers: { location: `${destination.url}/followed` } }
    }
    const failing = [`${destination.url}/slow`, 'http://127.0.0.1:1/', `${destination.url}/moved`]
    for (const url of failing)
      await setup.client.publishJSON({ url, body: 1, retries: 0, timeout: '100ms' as never })
    await expect
      .poll(async () => (await setup.client.dlq.listMessages()).messages.length, { timeout: 5_000 })
      .toBe(3)
    const { messages } = await setup.client.dlq.listMessages()
    const seen = Object.fromEntries(messages.map(({ url, ...message }) => [url, message]))
    expect(seen[failing[0] ?? '']).toMatchObject({
      responseStatus: 0,
      responseBody: 'no answer within 100 ms',
    })
    expect(seen[failing[1] ?? '']).toMatchObject({
      responseStatus: 0,
      responseBody: expect.stringMatching(/ECONNREFUSED/),
    })
    expect(seen[failing[2] ?? '']).toMatchObject({ responseStatus: 302 })
    expect(destination.paths()).not.toContain('/followed 0')
  })
})
