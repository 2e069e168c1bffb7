import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  type Answer,
  type Destination,
  type QstashSetup,
  setUpQstash,
  startDestination,
  verify,
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

/** Waits until nothing is being delivered, and tells in how many milliseconds the next attempt is due. */
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
    const { messageId } = await setup.client.publishJSON({ url, body: { a: 1 }, label: 'L' })
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
      labels: ['L'],
      dlqId: expect.stringMatching(/^\d+-\d+$/),
    })
    const states = (await setup.client.logs({ messageIds: [messageId] })).logs.map(({ state }) => state)
    const attempt = ['RETRY', 'ERROR', 'ACTIVE']
    expect(states).toEqual(['FAILED', 'ERROR', 'ACTIVE', ...attempt, ...attempt, ...attempt, 'CREATED'])
  })

  it('stop with the first success', async () => {
    destination.answer = ({ headers }) => (headers['upstash-retried'] === '2' ? 204 : 500)
    await setup.client.publishJSON({ url: `${destination.url}/x`, body: 1, retryDelay: '0' })
    await pathsBecome(['/x 0', '/x 1', '/x 2'])
    expect(await nextAttemptIn()).toBe(Number.POSITIVE_INFINITY)
    expect((await setup.client.dlq.listMessages()).messages).toEqual([])
  })

  it('wait as long as the expression of the message says', async () => {
    destination.answer = () => 500
    await setup.client.publishJSON({
      url: `${destination.url}/x`,
      body: 1,
      retries: 2,
      retryDelay: 'max(1000, pow(2, retried) * 30000) + 500',
    })
    await pathsBecome(['/x 0'])
    expect(Math.abs((await nextAttemptIn()) - 30_500)).toBeLessThan(1_000)
    setup.clock.advance(30_500)
    await pathsBecome(['/x 0', '/x 1'])
    expect(Math.abs((await nextAttemptIn()) - 60_500)).toBeLessThan(1_000)
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

  it('follow headers that cannot be sent, without harm to other messages', async () => {
    await setup.client.batch([
      {
        url: `${destination.url}/odd`,
        retries: 0,
        headers: { 'Upstash-Forward-Transfer-Encoding': 'chunked' },
        body: 'x',
      },
    ])
    await pathsBecome(['/odd 0'])
    const headers = { authorization: 'Bearer token-for-tests' }
    const item = {
      destination: `${destination.url}/bad`,
      headers: { 'Upstash-Forward-X': 'a\nb', 'Upstash-Retries': '0' },
    }
    await fetch(`${setup.standIn.url}/v2/batch`, { method: 'POST', headers, body: JSON.stringify([item]) })
    await expect.poll(async () => (await setup.client.dlq.listMessages()).messages.length).toBe(1)
  })
})

describe('callbacks', () => {
  it('tell every attempt and, apart, the final failure', async () => {
    destination.answer = ({ url }) => (url.endsWith('/work') ? { status: 500, body: 'no' } : 200)
    const { messageId } = await setup.client.publishJSON({
      url: `${destination.url}/work`,
      body: { a: 1 },
      retries: 1,
      retryDelay: '0',
      callback: `${destination.url}/callback`,
      failureCallback: `${destination.url}/failure`,
      headers: { 'Upstash-Callback-Forward-X-Secret': 's', 'Upstash-Failure-Callback-Method': 'PUT' },
    })
    await expect.poll(() => destination.deliveries.length, { timeout: 5_000 }).toBe(5)
    const at = (path: string) => destination.deliveries.filter(({ url }) => url.endsWith(path))
    const bodies = at('/callback').map(({ body }) => JSON.parse(body))
    expect(bodies.map(({ retried }) => retried).sort()).toEqual([0, 1])
    expect(bodies[0]).toMatchObject({
      status: 500,
      body: Buffer.from('no').toString('base64'),
      sourceMessageId: messageId,
      sourceBody: Buffer.from('{"a":1}').toString('base64'),
      url: `${destination.url}/work`,
      maxRetries: 1,
    })
    expect(bodies[0]).not.toHaveProperty('dlqId')
    expect(at('/callback')[0]?.headers).toMatchObject({ 'x-secret': 's', 'content-type': 'application/json' })
    const [failure] = at('/failure')
    if (failure === undefined) throw new Error('no failure callback')
    const { dlqId } = JSON.parse(failure.body) as { dlqId: string }
    expect(failure.method).toBe('PUT')
    expect((await setup.client.dlq.listMessages()).messages.map((message) => message.dlqId)).toEqual([dlqId])
    expect(await verify(setup.receiver, failure)).toBe(true)
  })

  it('tell the answer of a success', async () => {
    destination.answer = ({ url }) => ({ status: url.endsWith('/work') ? 201 : 200, body: 'done' })
    await setup.client.publishJSON({
      url: `${destination.url}/work`,
      body: 1,
      callback: `${destination.url}/callback`,
      failureCallback: `${destination.url}/failure`,
    })
    await pathsBecome(['/work 0', '/callback 0'])
    expect(JSON.parse(destination.deliveries[1]?.body ?? '')).toMatchObject({ status: 201, retried: 0 })
  })
})

describe('the dead letter queue', () => {
  const fill = async (count: number): Promise<string[]> => {
    destination.answer = () => 500
    for (let index = 0; index < count; index++) {
      await setup.client.publishJSON({
        url: `${destination.url}/${index}`,
        body: index,
        retries: 0,
        headers: { 'x-keep': 'me' },
        label: index % 2 === 0 ? 'even' : 'odd',
      })
      await expect.poll(async () => (await setup.client.dlq.listMessages()).messages.length).toBe(index + 1)
    }
    return (await setup.client.dlq.listMessages()).messages.map(({ dlqId }) => dlqId)
  }

  it('is listed in pages and by filter', async () => {
    const ids = await fill(3)
    const first = await setup.client.dlq.listMessages({ count: 2 })
    expect(first.messages.map(({ dlqId }) => dlqId)).toEqual(ids.slice(0, 2))
    const cursor = first.cursor ?? ''
    const second = await setup.client.dlq.listMessages({ count: 2, cursor })
    expect(second.messages.map(({ dlqId }) => dlqId)).toEqual(ids.slice(2))
    expect(second.cursor).toBeUndefined()
    const odd = await setup.client.dlq.listMessages({ filter: { label: 'odd', responseStatus: 500 } })
    expect(odd.messages.map(({ dlqId }) => dlqId)).toEqual([ids[1]])
    expect((await setup.client.dlq.listMessages({ dlqIds: [ids[2] ?? ''] })).messages).toHaveLength(1)
  })

  it('gives messages back for delivery', async () => {
    const [first = '', second = ''] = await fill(2)
    destination.answer = () => 200
    const { responses } = await setup.client.dlq.retry(first)
    expect(responses).toEqual([{ messageId: expect.stringMatching(/^msg_/) }])
    await expect.poll(() => destination.deliveries.length).toBe(3)
    expect(destination.deliveries[2]).toMatchObject({
      url: `${destination.url}/0`,
      body: '0',
      headers: { 'x-keep': 'me', 'content-type': 'application/json', 'upstash-retried': '0' },
    })
    expect((await setup.client.dlq.listMessages()).messages.map(({ dlqId }) => dlqId)).toEqual([second])
    await expect(setup.client.dlq.retry(first)).rejects.toThrow(/not found/)
    expect((await setup.client.dlq.retry({ all: true })).responses).toHaveLength(1)
  })

  it('lets messages be deleted one by one, by id and all', async () => {
    const [first = '', second = ''] = await fill(4)
    expect(await setup.client.dlq.delete(first)).toEqual({ deleted: 1 })
    await expect(setup.client.dlq.delete(first)).rejects.toThrow(/not found/)
    expect(await setup.client.dlq.delete([second, 'unknown'])).toEqual({ deleted: 1 })
    const { deleted, cursor } = await setup.client.dlq.delete({ all: true, count: 1 })
    expect(deleted).toBe(1)
    expect(await setup.client.dlq.delete({ all: true, ...(cursor !== undefined && { cursor }) })).toEqual({
      deleted: 1,
    })
    expect((await setup.client.dlq.listMessages()).messages).toEqual([])
  })
})

describe('queues', () => {
  it('deliver in order, one held up by the retries of the one before', async () => {
    destination.answer = ({ url, headers }) =>
      url.endsWith('/0') && headers['upstash-retried'] === '0' ? 500 : 200
    const queue = setup.client.queue({ queueName: 'ordered' })
    for (const index of [0, 1, 2]) {
      await queue.enqueueJSON({ url: `${destination.url}/${index}`, body: index, retryDelay: '60000' })
    }
    await pathsBecome(['/0 0'])
    await queue.upsert({ parallelism: 1 })
    expect(await queue.get()).toMatchObject({ name: 'ordered', lag: 3, parallelism: 1 })
    setup.clock.advance(60_001)
    await pathsBecome(['/0 0', '/0 1', '/1 0', '/2 0'])
  })

  it('deliver side by side as configured, and nothing while paused', async () => {
    const queue = setup.client.queue({ queueName: 'wide' })
    await queue.upsert({ parallelism: 2, paused: true })
    destination.answer = () => ({ status: 200, hang: true })
    for (const index of [0, 1, 2])
      await queue.enqueueJSON({ url: `${destination.url}/${index}`, body: index })
    expect(await queue.get()).toMatchObject({ paused: true, lag: 3 })
    expect(destination.deliveries).toEqual([])
    await queue.resume()
    await expect.poll(() => destination.paths().toSorted()).toEqual(['/0 0', '/1 0'])
    expect(await setup.client.queue({ queueName: 'wide' }).list()).toMatchObject([
      { name: 'wide', paused: false },
    ])
    await queue.delete()
    await expect(queue.get()).rejects.toThrow(/not found/)
  })
})
