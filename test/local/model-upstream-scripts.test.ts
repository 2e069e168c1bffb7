import { describe, expect, it, vi } from 'vitest'
import {
  chat,
  control,
  firstChunk,
  lastRecorded,
  openStream,
  post,
  recorded,
  register,
  upstream,
  useUpstream,
} from './model-upstream-harness.ts'

useUpstream()

describe('registered scripts', () => {
  it('answer with a whole raw response', async () => {
    const headers = { 'content-type': 'text/plain', 'x-custom': ['a', 'b'] }
    await register('raw', { steps: [{ status: 418, headers, body: 'short and stout' }] })
    const response = await chat('please run script:raw now')
    expect(response.status).toBe(418)
    expect(response.headers.get('x-custom')).toBe('a, b')
    expect(await response.text()).toBe('short and stout')
  })

  it('write frames and chunks exactly as given, each apart', async () => {
    const bytes = [...'é'].flatMap((letter) => [...Buffer.from(letter)])
    const split = bytes.map((byte) => ({ chunkBase64: Buffer.of(byte).toString('base64') }))
    await register('exact', {
      steps: [
        { sse: ['data: 1\r\n\r\n', 'data: 2\n\n'] },
        { chunk: 'data: 3\n\ndata: 4\n\nda' },
        { chunk: 'ta: ' },
        ...split,
      ],
    })
    const incoming = await openStream('script:exact')
    const chunks: string[] = []
    for await (const chunk of incoming) chunks.push((chunk as Buffer).toString('latin1'))
    const text = 'data: 1\r\n\r\ndata: 2\n\ndata: 3\n\ndata: 4\n\ndata: é'
    expect(chunks.join('')).toBe(Buffer.from(text).toString('latin1'))
    expect(chunks.length).toBeGreaterThan(3)
    expect(incoming.headers['content-type']).toBe('text/event-stream; charset=utf-8')
    expect(await lastRecorded()).toMatchObject({
      eventsWritten: 4,
      bytesWritten: Buffer.byteLength(text),
      finished: true,
    })
  })

  it('use several responses in turn and repeat the last, from the start when registered again', async () => {
    const script = { responses: [500, 429, 201].map((status) => ({ steps: [{ status, body: '{}' }] })) }
    await register('turns', script)
    const statuses = []
    for (let turn = 0; turn < 4; turn += 1) statuses.push((await chat('script:turns')).status)
    expect(statuses).toEqual([500, 429, 201, 201])
    await register('turns', script)
    expect((await chat('script:turns')).status).toBe(500)
  })

  it('go on at a signal, whether it comes before or after the wait', async () => {
    await register('gate', { steps: [{ chunk: 'before ' }, { waitForSignal: 'open' }, { chunk: 'after' }] })
    const incoming = await openStream('script:gate')
    expect(await firstChunk(incoming)).toBe('before ')
    await vi.waitFor(async () => {
      expect(await control('GET', '/signals')).toMatchObject({ body: { waiting: { open: 1 } } })
    })
    expect(await control('POST', '/signals/open')).toMatchObject({ body: { released: 1 } })
    expect(await firstChunk(incoming)).toBe('after')
    expect(await control('POST', '/signals/open')).toMatchObject({ body: { released: 0 } })
    expect(await (await chat('script:gate')).text()).toBe('before after')
  })

  it('reset the connection, before and after the headers', async () => {
    await register('reset-now', { steps: [{ destroy: true }] })
    await expect(chat('script:reset-now')).rejects.toThrow('fetch failed')
    await register('reset-later', {
      steps: [{ chunk: 'data: 1\n\n' }, { destroy: true }, { chunk: 'never' }],
    })
    const response = await chat('script:reset-later')
    await expect(response.text()).rejects.toThrow()
    expect(await lastRecorded()).toMatchObject({ bytesWritten: 9, finished: false, clientClosedAt: null })
  })

  it('stay silent until the client leaves, which is recorded', async () => {
    await register('mute', { steps: [{ silent: true }] })
    const abort = new AbortController()
    const { body } = await control('GET', '/requests')
    const after = (body as { last: number }).last
    const pending = fetch(`${upstream.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'script:mute' }] }),
      signal: abort.signal,
    })
    await vi.waitFor(async () => expect(await recorded(after)).toHaveLength(1))
    expect((await recorded(after))[0]).toMatchObject({
      script: 'mute',
      clientClosedAt: null,
      finished: false,
    })
    abort.abort()
    await expect(pending).rejects.toThrow()
    await vi.waitFor(async () => {
      expect((await recorded(after))[0]?.clientClosedAt).toBeGreaterThanOrEqual(
        (await recorded(after))[0]?.receivedAt ?? 0,
      )
    })
  })

  it('wait for the time given, and end without the steps after an end', async () => {
    await register('timed', {
      steps: [{ waitMilliseconds: 30 }, { chunk: 'x' }, { end: true }, { chunk: 'y' }],
    })
    const started = performance.now()
    expect(await (await chat('script:timed')).text()).toBe('x')
    expect(performance.now() - started).toBeGreaterThan(28)
  })

  it('are chosen by the last user message, through a tool loop, in every protocol', async () => {
    await register('chosen', { steps: [{ body: 'from the script' }] })
    const messages = (contents: [string, unknown, object?][]) => ({
      messages: contents.map(([role, content, more]) => ({ role, content, ...more })),
    })
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }
    const text = async (path: string, more: object) => (await post(path, '', more)).text()
    const chatPath = '/v1/chat/completions'
    expect(
      await text(
        chatPath,
        messages([
          ['user', 'script:chosen'],
          ['assistant', null, { tool_calls: [call] }],
          ['tool', 'result', { tool_call_id: 'c' }],
        ]),
      ),
    ).toBe('from the script')
    expect(
      await text(
        chatPath,
        messages([
          ['user', 'script:chosen'],
          ['assistant', 'ok'],
          ['user', 'now plain'],
        ]),
      ),
    ).toContain('now plain')
    const result = [{ type: 'tool_result', tool_use_id: 't', content: 'result' }]
    expect(
      await text(
        '/v1/messages',
        messages([
          ['user', [{ type: 'text', text: 'script:chosen' }]],
          ['assistant', [{ type: 'tool_use', id: 't', name: 'f', input: {} }]],
          ['user', result],
        ]),
      ),
    ).toBe('from the script')
    expect(await text('/v1/completions', { prompt: 'script:chosen' })).toBe('from the script')
    expect(await text(chatPath, messages([['user', 'JavaScript: script:unheard-of']]))).toContain(
      'unheard-of',
    )
  })

  it('replace built-in ones of the same name until removed', async () => {
    await register('error-500', { steps: [{ status: 202, body: '{}' }] })
    expect((await chat('script:error-500')).status).toBe(202)
    expect(await control('GET', '/scripts')).toMatchObject({
      body: { registered: expect.arrayContaining(['error-500']) },
    })
    expect((await control('DELETE', '/scripts/error-500')).status).toBe(200)
    expect((await chat('script:error-500')).status).toBe(500)
    expect((await control('DELETE', '/scripts/error-500')).status).toBe(404)
  })

  it.each([
    ['no steps', {}],
    ['an unknown step', { steps: [{ explode: true }] }],
    ['an empty step', { steps: [{}] }],
    ['a bad status', { steps: [{ status: 99 }] }],
    ['bad base64', { steps: [{ chunkBase64: '***' }] }],
    ['an illegal header', { steps: [{ headers: { 'bad header': 'x' } }] }],
    ['an illegal header value', { steps: [{ headers: { good: 'a\nb' } }] }],
    ['no responses', { responses: [] }],
  ])('are refused with %s', async (_, script) => {
    expect(await control('PUT', '/scripts/bad', script)).toMatchObject({ status: 400 })
    expect(await (await chat('script:bad')).text()).toContain('script:bad')
  })
})
