import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  accessTokens,
  type ExchangeRequest,
  TokenRefused,
  tokenOf,
} from '../../../../src/gateway/providers/access-tokens.ts'
import { isTokenRefusal, sendToProvider } from '../../../../src/gateway/providers/send-to-provider.ts'
import type { RequestToAuthorize, Transport } from '../../../../src/gateway/providers/transport.ts'
import { SseReader } from '../../../../src/lib/sse.ts'
import { recordFetch, requestOf } from './upstream-recorder.ts'

const HOUR_MS = 3_600_000
const TOKENS = 'https://token.example/exchange'

/** Each test has a credential of its own: tokens are shared by the isolate. */
let credentials = 0
const credential = () => [`credential-${++credentials}`]

const at = (now: number): RequestToAuthorize => ({
  method: 'POST',
  url: 'https://model.example/chat/completions',
  headers: {},
  bodyHash: () => Promise.reject(new Error('not needed')),
  send: () => Promise.reject(new Error('not needed')),
  now,
})

/** An exchange whose results the test gives, in order. */
function scriptedExchange() {
  const open: Array<PromiseWithResolvers<string>> = []
  return {
    open,
    exchange: async ({ now }: ExchangeRequest) => {
      const result = Promise.withResolvers<string>()
      open.push(result)
      return { value: await result.promise, expiresAt: now + HOUR_MS }
    },
  }
}

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

describe('an access token', () => {
  it('is exchanged once for all calls, of all transports, with the same credential', async () => {
    const { open, exchange } = scriptedExchange()
    const [one, other] = [credential(), credential()]
    const calls = [1, 2, 3].map(() => accessTokens([...one], exchange).authorize?.(at(0)))
    const foreign = accessTokens(other, exchange).authorize?.(at(0))
    expect(open).toHaveLength(2)
    open[0]?.resolve('first')
    open[1]?.resolve('of-another')
    expect(await Promise.all(calls)).toEqual(calls.map(() => ({ authorization: 'Bearer first' })))
    expect(await foreign).toEqual({ authorization: 'Bearer of-another' })
    await accessTokens(one, exchange).authorize?.(at(HOUR_MS / 2))
    expect(open).toHaveLength(2)
  })

  it('is renewed by one call five minutes before its end, while the others use the old one', async () => {
    const { open, exchange } = scriptedExchange()
    const tokens = accessTokens(credential(), exchange)
    const first = tokens.authorize?.(at(0))
    open[0]?.resolve('old')
    await first
    expect(await tokens.authorize?.(at(HOUR_MS - 300_001))).toEqual({ authorization: 'Bearer old' })
    expect(open).toHaveLength(1)
    const renewing = tokens.authorize?.(at(HOUR_MS - 300_000))
    expect(await tokens.authorize?.(at(HOUR_MS - 299_999))).toEqual({ authorization: 'Bearer old' })
    expect(open).toHaveLength(2)
    open[1]?.resolve('new')
    expect(await renewing).toEqual({ authorization: 'Bearer new' })
  })

  it('serves until its end when renewal fails, which is not tried again at once', async () => {
    const { open, exchange } = scriptedExchange()
    const tokens = accessTokens(credential(), exchange)
    const first = tokens.authorize?.(at(0))
    open[0]?.resolve('old')
    await first
    const renewing = tokens.authorize?.(at(HOUR_MS - 1_000))
    open[1]?.reject(new Error('down'))
    expect(await renewing).toEqual({ authorization: 'Bearer old' })
    expect(await tokens.authorize?.(at(HOUR_MS - 999))).toEqual({ authorization: 'Bearer old' })
    expect(open).toHaveLength(2)
    const late = tokens.authorize?.(at(HOUR_MS))
    open[2]?.resolve('new')
    expect(await late).toEqual({ authorization: 'Bearer new' })
  })

  it('is exchanged by a call that waited, when the request of the exchange was ended', async () => {
    vi.useFakeTimers()
    const { open, exchange } = scriptedExchange()
    const tokens = accessTokens(credential(), exchange)
    tokens.authorize?.(at(0))
    const waiting = [tokens.authorize?.(at(1)), tokens.authorize?.(at(2))]
    await vi.advanceTimersByTimeAsync(999)
    expect(open).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(open).toHaveLength(2)
    open[1]?.resolve('second')
    expect(await Promise.all(waiting)).toEqual(waiting.map(() => ({ authorization: 'Bearer second' })))
  })

  it('wakes a bounded number of waiting calls; the others continue by their own time', async () => {
    vi.useFakeTimers()
    const { open, exchange } = scriptedExchange()
    const tokens = accessTokens(credential(), exchange)
    tokens.authorize?.(at(0))
    const ended: number[] = []
    for (let call = 0; call < 1_200; call++) {
      Promise.resolve(tokens.authorize?.(at(1))).then(() => ended.push(call))
    }
    open[0]?.resolve('first')
    await vi.advanceTimersByTimeAsync(0)
    expect([ended.length, ended[0]]).toEqual([1_000, 200])
    await vi.advanceTimersByTimeAsync(1_000)
    expect([ended.length, open.length]).toEqual([1_200, 1])
  })

  it('is exchanged by the next call when the first one failed by itself, and by none when it was refused', async () => {
    const { open, exchange } = scriptedExchange()
    const tokens = accessTokens(credential(), exchange)
    const calls = [0, 1, 2].map((now) => Promise.resolve(tokens.authorize?.(at(now))).catch(String))
    open[0]?.reject(new Error('the caller left'))
    expect(await calls[0]).toBe('Error: the caller left')
    await vi.waitFor(() => expect(open).toHaveLength(2))
    open[1]?.reject(new TokenRefused('no'))
    expect(await Promise.all(calls.slice(1))).toEqual(['TokenRefused: no', 'TokenRefused: no'])
    await expect(tokens.authorize?.(at(5_000))).rejects.toThrow('no')
    expect(open).toHaveLength(2)
    const later = tokens.authorize?.(at(5_001))
    open[2]?.resolve('token')
    expect(await later).toEqual({ authorization: 'Bearer token' })
  })
})

describe('the answer of a token service', () => {
  it('has the token and its lifetime', async () => {
    const answer = (body: object) => tokenOf(Response.json(body), 1_000)
    expect(await answer({ access_token: 't', expires_in: 3599 })).toEqual({
      value: 't',
      expiresAt: 3_600_000,
    })
    expect(await answer({ access_token: 't', expires_in: '60' })).toEqual({ value: 't', expiresAt: 61_000 })
    expect(await answer({ access_token: 't' })).toEqual({ value: 't', expiresAt: 301_000 })
  })

  it.each([
    [
      400,
      { error: 'invalid_grant', error_description: 'key 123' },
      TokenRefused,
      'status 400, invalid_grant',
    ],
    [401, { error: { secret: 'x' } }, TokenRefused, 'the token service refused the credential (status 401)'],
    [429, { error: 'slow_down' }, Error, 'sent no token (status 429)'],
    [302, {}, Error, 'sent no token (status 302)'],
    [200, { access_token: 'a\nb' }, Error, 'sent no token (status 200)'],
    [503, {}, Error, 'sent no token (status 503)'],
  ])('with status %i and %j is an error without its texts', async (status, body, kind, message) => {
    const error = await tokenOf(Response.json(body, { status }), 0).catch((error: unknown) => error)
    expect(error).toBeInstanceOf(kind)
    expect(error instanceof TokenRefused).toBe(kind === TokenRefused)
    expect(String(error)).toContain(message)
    expect(String(error)).not.toMatch(/123|secret/)
  })
})

describe('a request that is sent with an access token', () => {
  function transport(): Transport {
    const exchange = async ({ send, now }: ExchangeRequest) =>
      tokenOf(await send(TOKENS, { method: 'POST' }), now)
    return {
      speaks: () => true,
      prepare: (_target, body) => ({ url: 'https://model.example/chat', headers: {}, body }),
      streamType: 'text/event-stream',
      frames: () => new SseReader(),
      ...accessTokens(credential(), exchange),
    }
  }
  /** @param accepted the only token that the provider accepts. */
  function network(accepted: string) {
    let issued = 0
    return recordFetch(({ address, headers }) => {
      if (address === TOKENS) return Response.json({ access_token: `token-${++issued}`, expires_in: 3_600 })
      return new Response('{}', { status: headers.authorization === `Bearer ${accepted}` ? 200 : 401 })
    })
  }

  it('is sent once more when the provider refuses a token that it had accepted', async () => {
    const sent = network('token-2')
    const model = transport()
    await sendToProvider(model, requestOf({ now: 0 }))
    const body = { pieces: [new TextEncoder().encode('{"a":'), new TextEncoder().encode('1}')], length: 7 }
    const { status } = await sendToProvider(model, requestOf({ now: 60_000, body }))
    expect(status).toBe(200)
    expect(sent.slice(2).map(({ address, headers }) => [address, headers.authorization])).toEqual([
      ['https://model.example/chat', 'Bearer token-1'],
      [TOKENS, undefined],
      ['https://model.example/chat', 'Bearer token-2'],
    ])
    expect(new TextDecoder().decode(sent[4]?.body as Uint8Array)).toBe('{"a":1}')
  })

  it('is sent once when the provider refuses a new token, and twice at most', async () => {
    const sent = network('none')
    const model = transport()
    const refused = await sendToProvider(model, requestOf({ now: 0 }))
    expect([refused.status, isTokenRefusal(refused)]).toEqual([401, false])
    expect(sent).toHaveLength(2)
    expect((await sendToProvider(model, requestOf({ now: 60_000 }))).status).toBe(401)
    expect(sent).toHaveLength(5)
  })

  it('is answered with 401 when the token service refuses the credential', async () => {
    const sent = recordFetch(() => Response.json({ error: 'invalid_client' }, { status: 400 }))
    const answer = await sendToProvider(transport(), requestOf())
    expect(answer.status).toBe(401)
    expect(await answer.json()).toEqual({
      error: {
        message: 'the token service refused the credential (status 400, invalid_client)',
        type: 'authentication_error',
        code: 'token_refused',
      },
    })
    expect(isTokenRefusal(answer)).toBe(true)
    expect(sent.map(({ address }) => address)).toEqual([TOKENS])
  })
})
