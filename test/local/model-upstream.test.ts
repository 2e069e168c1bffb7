import { createHash } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import { startModelUpstream } from '../../scripts/local/model-upstream/server.ts'
import {
  chat,
  control,
  lastRecorded,
  openStream,
  post,
  recorded,
  upstream,
  useUpstream,
} from './model-upstream-harness.ts'

useUpstream()

describe('requests that are not scripted', () => {
  it('are answered from prebuilt bytes when the body is large', async () => {
    const response = await chat('x'.repeat(2 * 1024 * 1024))
    const { usage } = (await response.json()) as { usage: { prompt_tokens: number } }
    expect(usage.prompt_tokens).toBeGreaterThan(500_000)
    const count = await post('/v1/messages/count_tokens', 'x'.repeat(2 * 1024 * 1024), {
      max_tokens: undefined,
    })
    expect(await count.json()).toEqual({ input_tokens: expect.any(Number) })
  })

  it.each([
    [
      'POST',
      '/v1/chat/completions',
      'not json',
      400,
      { error: { type: 'invalid_request_error', param: null } },
    ],
    ['POST', '/v1/messages', '[]', 400, { type: 'error', error: { type: 'invalid_request_error' } }],
    ['GET', '/v1/chat/completions', undefined, 405, { error: { message: expect.any(String) } }],
    ['GET', '/v1/messages', undefined, 405, { type: 'error' }],
    ['POST', '/v1/nothing', '{}', 404, { error: { message: expect.stringContaining('/v1/nothing') } }],
    ['GET', '/control/nothing', undefined, 404, { error: expect.any(String) }],
    ['POST', '/control/signals/%zz', undefined, 400, { error: expect.any(String) }],
  ])('%s %s with body %s gets its error', async (method, path, body, status, expected) => {
    const headers = { 'anthropic-version': '2023-06-01' }
    const response = await fetch(upstream.url + path, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
    })
    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject(expected)
  })

  const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }
  const calling = { role: 'assistant', content: null, tool_calls: [call] }
  const asking = { role: 'user', content: 'hi' }
  it.each([
    [
      'a result without a call',
      'must be a response',
      [asking, { role: 'tool', tool_call_id: 'x', content: '1' }],
    ],
    ['a call without a result', 'call_1', [asking, calling, asking]],
    ['a last call without a result', 'call_1', [asking, calling]],
    [
      'a result of another call',
      "'tool_call_id' of 'x' not found",
      [asking, calling, { role: 'tool', tool_call_id: 'x', content: '1' }],
    ],
  ])('are refused on chat for %s', async (_, reason, messages) => {
    const response = await chat('', { messages })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { message: expect.stringContaining(reason) } })
  })

  const use = { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }] }
  const result = (id: string) => ({
    role: 'user',
    content: [{ type: 'tool_result', tool_use_id: id, content: '1' }],
  })
  it.each([
    ['empty text', 'non-empty', [{ role: 'user', content: [{ type: 'text', text: '' }] }]],
    ['a result without a use', 'unexpected `tool_use_id`', [asking, result('toolu_1')]],
    ['a use without a result', 'without `tool_result`', [asking, use, asking]],
    ['a result of another use', 'toolu_2', [asking, use, result('toolu_2')]],
  ])('are refused on messages for %s', async (_, reason, messages) => {
    const response = await post('/v1/messages', '', { messages })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { message: expect.stringContaining(reason) } })
  })

  it('may spread results over consecutive messages of one role', async () => {
    const messages = [asking, use, result('toolu_1'), asking]
    expect((await post('/v1/messages', '', { messages })).status).toBe(200)
  })

  it('may not send stream options without a stream', async () => {
    expect((await chat('hi', { stream_options: { include_usage: true } })).status).toBe(400)
  })

  it('need the version header on messages', async () => {
    const response = await fetch(`${upstream.url}/v1/messages`, { method: 'POST', body: '{}' })
    expect(await response.json()).toMatchObject({
      error: { message: 'anthropic-version: header is required' },
    })
  })
})

describe('observation', () => {
  afterEach(() => control('DELETE', '/requests'))

  it('records a request with its credentials as digests', async () => {
    const { body } = await control('DELETE', '/requests')
    const after = (body as { last: number }).last
    const keys = {
      authorization: 'Bearer sk-secret-one',
      'x-api-key': 'sk-secret-two',
      'anthropic-beta': 'a,b',
    }
    const started = Date.now()
    await (await post('/v1/messages?beta=true', 'hello', {}, keys)).text()
    const [record, ...others] = await recorded(after)
    const digest = (text: string) => createHash('sha256').update(text).digest('hex')
    expect(others).toEqual([])
    expect(record).toMatchObject({
      sequence: after + 1,
      method: 'POST',
      path: '/v1/messages?beta=true',
      script: null,
      status: 200,
      finished: true,
      clientClosedAt: null,
    })
    expect(record?.headers).toMatchObject({
      authorization: `Bearer ${digest('sk-secret-one')}`,
      'x-api-key': digest('sk-secret-two'),
      'anthropic-beta': 'a,b',
    })
    expect(record?.bodySha256).toBe(digest(record?.body ?? ''))
    expect(record?.bodyBytes).toBe(record?.body.length)
    expect(record?.receivedAt).toBeGreaterThanOrEqual(started)
    expect(JSON.stringify(record)).not.toContain('sk-secret')
  })

  it('keeps 64 KB of a body and the last 1000 requests', async () => {
    await (await chat('y'.repeat(100_000))).text()
    expect((await lastRecorded()).body).toHaveLength(65_536)
    expect((await lastRecorded()).bodyBytes).toBeGreaterThan(100_000)
    for (let round = 0; round < 101; round += 1) {
      await Promise.all(
        Array.from({ length: 10 }, async () => (await fetch(`${upstream.url}/v1/nothing`)).arrayBuffer()),
      )
    }
    const records = await recorded()
    expect(records).toHaveLength(1000)
    expect(records.every((record) => record.path === '/v1/nothing')).toBe(true)
  })

  it('counts requests, without the control calls', async () => {
    const total = async () =>
      ((await control('GET', '/stats')).body as { totalRequests: number }).totalRequests
    const before = await total()
    const incoming = await openStream('script:silent-stream')
    expect(await total()).toBe(before + 1)
    incoming.destroy()
  })

  it('records nothing when told so', async () => {
    const silent = await startModelUpstream({ port: 0, record: false })
    await (await fetch(`${silent.url}/v1/nothing`)).text()
    const { requests } = (await (await fetch(`${silent.url}/control/requests`)).json()) as {
      requests: unknown[]
    }
    await silent.close()
    expect(requests).toEqual([])
  })

  it('closes while a client still waits', async () => {
    const doomed = await startModelUpstream({ port: 0 })
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'script:stall' }] })
    const response = await fetch(`${doomed.url}/v1/chat/completions`, { method: 'POST', body })
    await doomed.close()
    await expect(response.text()).rejects.toThrow()
  })
})
