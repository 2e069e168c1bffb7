import { afterEach, describe, expect, it, vi } from 'vitest'
import { credentialOf, SECRET_ONLY } from '../../../../src/gateway/providers/credential.ts'
import {
  type Provider,
  type ProviderKind,
  speaks,
  transportOf,
} from '../../../../src/gateway/providers/provider.ts'
import {
  ProviderUnreachable,
  sendToProvider as sendThrough,
  type UpstreamRequest,
} from '../../../../src/gateway/providers/send-to-provider.ts'
import { recordFetch, requestOf } from './upstream-recorder.ts'

const providerOf = (kind: ProviderKind, baseUrl = 'https://upstream.example/v1'): Provider => ({
  id: kind,
  name: kind,
  kind,
  baseUrl,
  credential: credentialOf(SECRET_ONLY, 'sk-one'),
})
const sendToProvider = (provider: Provider, request: UpstreamRequest) =>
  sendThrough(transportOf(provider), request)
const chat = () => providerOf('openai-compatible')
const messages = () => providerOf('anthropic')

afterEach(() => {
  vi.unstubAllGlobals()
})

describe('sendToProvider', () => {
  it('writes address, credential and headers of the kind', async () => {
    const sent = recordFetch()
    await sendToProvider(chat(), requestOf())
    await sendToProvider(messages(), requestOf({ operation: 'count_tokens', stream: true }))
    expect(sent).toMatchObject([
      {
        address: 'https://upstream.example/v1/chat/completions',
        method: 'POST',
        redirect: 'manual',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json',
          'user-agent': 'headgate',
          authorization: 'Bearer sk-one',
        },
      },
      {
        address: 'https://upstream.example/v1/v1/messages/count_tokens',
        headers: { accept: 'text/event-stream', 'x-api-key': 'sk-one', 'anthropic-version': '2023-06-01' },
      },
    ])
    expect(Object.keys(sent[1]?.headers ?? {}).sort()).toEqual([
      'accept',
      'anthropic-version',
      'content-type',
      'user-agent',
      'x-api-key',
    ])
  })

  it('forwards the caller’s headers that the transport knows, and never those of another call', async () => {
    const sent = recordFetch()
    const provider = messages()
    const callerHeaders = new Headers({
      'provider-version': '2099-01-01',
      'anthropic-beta': 'b',
      'x-api-key': 'hg_caller',
      authorization: 'Bearer hg_caller',
      cookie: 'c',
    })
    await sendToProvider(provider, requestOf({ operation: 'messages', callerHeaders }))
    await sendToProvider(provider, requestOf({ operation: 'messages', callerHeaders: new Headers() }))
    expect(sent[0]?.headers).toMatchObject({ 'anthropic-version': '2099-01-01', 'anthropic-beta': 'b' })
    expect(JSON.stringify(sent[0]?.headers)).not.toContain('hg_caller')
    expect(sent[0]?.headers).not.toHaveProperty('cookie')
    expect(sent[1]?.headers).toMatchObject({ 'anthropic-version': '2023-06-01', 'x-api-key': 'sk-one' })
    expect(sent[1]?.headers).not.toHaveProperty('anthropic-beta')
  })

  it('passes small bytes to fetch as they are', async () => {
    const sent = recordFetch()
    const bytes = new TextEncoder().encode('{"a":1}')
    await sendToProvider(chat(), requestOf({ body: bytes }))
    await sendToProvider(chat(), requestOf({ body: { pieces: [bytes], length: bytes.length } }))
    expect(sent.map(({ body }) => body === bytes)).toEqual([true, true])
    await sendToProvider(chat(), requestOf({ body: { pieces: [bytes, bytes], length: 2 * bytes.length } }))
    expect(new TextDecoder().decode(sent[2]?.body as Uint8Array)).toBe('{"a":1}{"a":1}')
  })

  it('throws for an operation that its kind does not speak', async () => {
    const sent = recordFetch()
    expect(speaks(chat(), 'messages', 'm')).toBe(false)
    expect([speaks(chat(), 'responses', 'm'), speaks(messages(), 'responses', 'm')]).toEqual([false, false])
    await expect(sendToProvider(chat(), requestOf({ operation: 'messages' }))).rejects.toThrow(
      'does not speak',
    )
    expect(sent).toEqual([])
  })

  it('refuses addresses that may not be called, again and again, and redirects', async () => {
    const sent = recordFetch(
      () => new Response(null, { status: 307, headers: { location: 'https://x.example' } }),
    )
    const inside = providerOf('openai-compatible', 'https://10.0.0.1')
    for (let call = 0; call < 3; call++) {
      await expect(sendToProvider(inside, requestOf())).rejects.toMatchObject({ reason: 'egress_denied' })
    }
    expect(sent).toEqual([])
    await expect(sendToProvider(chat(), requestOf())).rejects.toMatchObject({ reason: 'redirected' })
    expect(sent).toHaveLength(1)
  })

  it('throws for an unreachable upstream, and the reason of an aborted call', async () => {
    recordFetch(() => Promise.reject(new Error('connection refused')))
    const failed = sendToProvider(chat(), requestOf())
    await expect(failed).rejects.toBeInstanceOf(ProviderUnreachable)
    await expect(failed).rejects.toMatchObject({ reason: 'unreachable' })
    const reason = new Error('left')
    await expect(sendToProvider(chat(), requestOf({ signal: AbortSignal.abort(reason) }))).rejects.toBe(
      reason,
    )
  })
})

describe('the frames of a transport', () => {
  it('are Server-Sent Events for both kinds, with a reader for each stream', () => {
    const response = new Response('', { headers: { 'content-type': 'text/event-stream; charset=utf-8' } })
    for (const provider of [chat(), messages()]) {
      const { frames: framesOf, streamType } = transportOf(provider)
      expect(streamType).toBe('text/event-stream')
      const frames = framesOf(response)
      expect(frames.push(new TextEncoder().encode('event: a\ndata: {"x"'))).toEqual([])
      const told = frames.push(new TextEncoder().encode(':1}\n\ndata: 2\n\n'))
      expect(told.map(({ event, data }) => [event, new TextDecoder().decode(data ?? undefined)])).toEqual([
        ['a', '{"x":1}'],
        [null, '2'],
      ])
      expect(framesOf(response).push(new TextEncoder().encode('\n\n'))).toHaveLength(1)
    }
  })
})
