import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { signDelivery } from '../../scripts/node/qstash/signature.ts'
import {
  CURRENT_KEY,
  connectClient,
  type Destination,
  type QstashSetup,
  setUpQstash,
  startDestination,
  TOKEN,
  verify,
} from './qstash-harness.ts'

let destination: Destination
let setup: QstashSetup

beforeEach(async () => {
  // The SDK reports refused requests on the console as well as by throwing.
  vi.spyOn(console, 'error').mockImplementation(() => {})
  destination = await startDestination()
  setup = await setUpQstash({ control: true })
})
afterEach(async () => {
  await setup.standIn.close()
  await destination.close()
  vi.restoreAllMocks()
})

const deliveriesBecome = (count: number): Promise<void> =>
  expect.poll(() => destination.deliveries.length, { timeout: 5_000 }).toBe(count)

describe('publishing', () => {
  it('delivers body, method and headers as they were published', async () => {
    const { messageId } = await setup.client.publishJSON({
      url: `${destination.url}/hook?a=1&b=%20x`,
      body: { text: 'grün 🌱' },
      method: 'PUT',
      headers: { 'x-custom': 'value', authorization: 'Bearer of-the-receiver' },
    })
    await deliveriesBecome(1)
    expect(destination.deliveries[0]).toMatchObject({
      url: `${destination.url}/hook?a=1&b=%20x`,
      method: 'PUT',
      body: '{"text":"grün 🌱"}',
      headers: {
        'content-type': 'application/json',
        'x-custom': 'value',
        authorization: 'Bearer of-the-receiver',
        'user-agent': 'Upstash-QStash',
        'upstash-message-id': messageId,
        'upstash-retried': '0',
      },
    })
    expect(JSON.stringify(destination.deliveries)).not.toContain(TOKEN)
  })

  it('accepts an encoded destination as other clients send it', async () => {
    const encoded = encodeURIComponent(`${destination.url}/encoded?x=1`)
    const headers = { authorization: `Bearer ${TOKEN}` }
    const response = await fetch(`${setup.standIn.url}/v2/publish/${encoded}`, {
      method: 'POST',
      headers,
      body: 'raw',
    })
    expect(response.status).toBe(201)
    await deliveriesBecome(1)
    expect(destination.deliveries[0]).toMatchObject({ url: `${destination.url}/encoded?x=1`, body: 'raw' })
  })

  it.each([
    [{ url: 'not-a-url' }, /invalid scheme/],
    [{ url: 'http://' }, /invalid destination url/],
    [{ delay: '5 apples' as never }, /invalid delay/],
    [{ timeout: 'x' as never }, /invalid timeout/],
    [{ contentBasedDeduplication: true }, /the local QStash has no/],
    [{ label: 'red' }, /the local QStash has no/],
    [{ callback: 'https://example.com/' }, /the local QStash has no upstash-callback/],
    [{ failureCallback: 'https://example.com/' }, /the local QStash has no upstash-failure-callback/],
    [{ notBefore: 1e9 }, /the local QStash has no upstash-not-before/],
    [{ method: 'BREW' as never }, /invalid method/],
  ])('refuses %j', async (wrong, message) => {
    await expect(setup.client.publishJSON({ url: destination.url, body: 1, ...wrong })).rejects.toThrow(
      message,
    )
    setup.clock.advance(86_400_000)
    expect(destination.deliveries).toEqual([])
  })

  it('refuses a wrong token and unknown paths', async () => {
    const stranger = connectClient(setup.standIn.url, 'wrong')
    await expect(stranger.publishJSON({ url: destination.url, body: 1 })).rejects.toThrow(/invalid token/)
    const headers = { authorization: `Bearer ${TOKEN}` }
    expect((await fetch(`${setup.standIn.url}/v2/nothing`, { headers })).status).toBe(404)
  })

  it('waits for a delay', async () => {
    await setup.client.publishJSON({ url: `${destination.url}/delayed`, body: 1, delay: 60 })
    setup.clock.advance(59_000)
    expect(destination.paths()).toEqual([])
    setup.clock.advance(1_001)
    await deliveriesBecome(1)
    expect(destination.paths()).toEqual(['/delayed 0'])
  })

  it('shows a waiting message and cancels it', async () => {
    const url = `${destination.url}/never`
    const { messageId } = await setup.client.publishJSON({ url, body: { a: 1 }, delay: '1h', retries: 7 })
    expect(await setup.client.messages.get(messageId)).toMatchObject({
      messageId,
      url,
      body: '{"a":1}',
      maxRetries: 7,
    })
    expect(await setup.client.messages.cancel(messageId)).toEqual({ cancelled: 1 })
    await expect(setup.client.messages.get(messageId)).rejects.toThrow(/not found/)
    await expect(setup.client.messages.cancel(messageId)).rejects.toThrow(/not found/)
    setup.clock.advance(3_600_000)
    expect(destination.deliveries).toEqual([])
  })
})

describe('deduplication', () => {
  it('delivers one of two messages with the same id within ten minutes', async () => {
    const publish = () =>
      setup.client.publishJSON({ url: destination.url, body: Math.random(), deduplicationId: 'once' })
    const first = await publish()
    expect(await publish()).toEqual({ messageId: first.messageId, deduplicated: true })
    await deliveriesBecome(1)
    setup.clock.advance(10 * 60_000 - 1_000)
    expect(await publish()).toMatchObject({ deduplicated: true })
    setup.clock.advance(1_001)
    expect((await publish()).deduplicated).toBeUndefined()
    await deliveriesBecome(2)
  })

  it('answers a duplicate with 202', async () => {
    const publish = () =>
      fetch(`${setup.standIn.url}/v2/publish/${destination.url}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${TOKEN}`, 'upstash-deduplication-id': 'x' },
      })
    expect([(await publish()).status, (await publish()).status]).toEqual([201, 202])
  })
})

describe('signatures', () => {
  it('are those of the current key, bound to the URL and the body', async () => {
    await setup.client.publishJSON({ url: `${destination.url}/signed?x=1`, body: { a: 1 } })
    await deliveriesBecome(1)
    const [delivery] = destination.deliveries
    if (delivery === undefined) throw new Error('no delivery')
    expect(await verify(setup.receiver, delivery)).toBe(true)
    await expect(verify(setup.receiver, delivery, { body: '{"a":2}' })).rejects.toThrow(/body hash/)
    await expect(verify(setup.receiver, delivery, { url: `${destination.url}/other` })).rejects.toThrow(
      /subject/,
    )
  })

  it('hold for empty bodies and for GET', async () => {
    await setup.client.publish({ url: `${destination.url}/empty` })
    await setup.client.publish({ url: `${destination.url}/get`, method: 'GET', body: 'ignored' })
    await deliveriesBecome(2)
    for (const delivery of destination.deliveries) {
      expect(delivery.body).toBe('')
      expect(await verify(setup.receiver, delivery)).toBe(true)
    }
  })

  it('are refused when forged', async () => {
    const body = Buffer.from('{}')
    const forged = signDelivery('a-key-of-my-own', destination.url, body)
    const delivery = {
      url: destination.url,
      method: 'POST',
      body: '{}',
      headers: { 'upstash-signature': forged },
    }
    await expect(verify(setup.receiver, delivery)).rejects.toThrow(/signature/)
    const [head = '', , tail = ''] = signDelivery(CURRENT_KEY, destination.url, body).split('.')
    const claims = Buffer.from(JSON.stringify({ iss: 'Upstash', sub: destination.url })).toString('base64url')
    const headers = { 'upstash-signature': `${head}.${claims}.${tail}` }
    await expect(verify(setup.receiver, { ...delivery, headers })).rejects.toThrow(/signature/)
  })

  it('hold although the clock of the stand-in was moved', async () => {
    setup.clock.advance(86_400_000)
    await setup.client.publishJSON({ url: `${destination.url}/signed`, body: 1 })
    await deliveriesBecome(1)
    const [delivery] = destination.deliveries
    if (delivery === undefined) throw new Error('no delivery')
    expect(await verify(setup.receiver, delivery)).toBe(true)
  })
})
