import { describe, expect, it, vi } from 'vitest'
import {
  chat,
  control,
  firstChunk,
  lastRecorded,
  openStream,
  post,
  recorded,
  useUpstream,
} from './model-upstream-harness.ts'

useUpstream()

describe('built-in scripts', () => {
  it('quote the whole presented credential in body and headers', async () => {
    const secret = 'sk-upstream-secret-1234567890'
    const bearer = await post(
      '/v1/chat/completions',
      'script:error-401-echo',
      {},
      { authorization: `Bearer ${secret}` },
    )
    expect(bearer.status).toBe(401)
    expect(bearer.headers.get('x-presented-credential')).toBe(secret)
    expect(await bearer.json()).toMatchObject({
      error: { message: expect.stringContaining(secret), code: 'invalid_api_key' },
    })
    const key = await post('/v1/messages', 'script:error-401-echo', {}, { 'x-api-key': secret })
    expect(key.headers.get('www-authenticate')).toContain(secret)
    expect(await key.json()).toMatchObject({
      type: 'error',
      error: { message: expect.stringContaining(secret) },
    })
  })

  it('tell the limits with a 429 in the words of each vendor', async () => {
    const openAi = await chat('script:error-429 after=7')
    expect([openAi.status, openAi.headers.get('retry-after')]).toEqual([429, '7'])
    expect(openAi.headers.get('x-ratelimit-remaining-requests')).toBe('0')
    const anthropic = await post('/v1/messages', 'script:error-429')
    expect(anthropic.headers.get('anthropic-ratelimit-requests-remaining')).toBe('0')
    const reset = Date.parse(anthropic.headers.get('anthropic-ratelimit-requests-reset') ?? '')
    expect(Math.abs(reset - Date.now())).toBeLessThan(5000)
    expect(await anthropic.json()).toMatchObject({
      error: { type: 'rate_limit_error' },
      request_id: anthropic.headers.get('request-id'),
    })
  })

  it.each([
    ['error-html-502', 502, 'text/html; charset=utf-8', /^<!doctype html>/],
    ['empty-body', 200, 'application/json', /^$/],
    ['not-json', 200, 'text/plain; charset=utf-8', /^This is not JSON\.$/],
    ['empty-stream', 200, 'text/event-stream; charset=utf-8', /^$/],
    ['redirect', 302, null, /^$/],
  ])('answer %s', async (script, status, type, body) => {
    const response = await chat(`script:${script}`, { stream: true })
    expect(response.status).toBe(status)
    expect(response.headers.get('content-type')).toBe(type)
    expect(await response.text()).toMatch(body)
    expect(response.headers.get('location')).toBe(script === 'redirect' ? '/redirected' : null)
  })

  it('stall in the middle until the signal, keeping one id', async () => {
    const incoming = await openStream('script:stall signal=resume')
    expect(await firstChunk(incoming)).toContain('"role":"assistant"')
    await vi.waitFor(async () => {
      expect(await control('GET', '/signals')).toMatchObject({ body: { waiting: { resume: 1 } } })
    })
    await control('POST', '/signals/resume')
    let rest = ''
    for await (const chunk of incoming) rest += String(chunk)
    expect(rest).toMatch(/data: \[DONE\]\n\n$/)
    expect(new Set(rest.match(/chatcmpl-\w+/g)).size).toBe(1)
  })

  it('send headers and then nothing, or pings and then nothing', async () => {
    const silent = await openStream('script:silent-stream')
    expect(silent.statusCode).toBe(200)
    const pings = await openStream('script:ping-only')
    expect(await firstChunk(pings)).toBe(': keep-alive\n\n')
    for (const record of (await recorded()).slice(-2))
      expect(record).toMatchObject({ finished: false, status: 200 })
    silent.destroy()
    pings.destroy()
  })

  it('hold the headers back until the signal', async () => {
    const pending = chat('script:slow-headers signal=headers')
    await vi.waitFor(async () => {
      expect(await control('GET', '/signals')).toMatchObject({ body: { waiting: { headers: 1 } } })
    })
    expect(await lastRecorded()).toMatchObject({ status: 0, bytesWritten: 0 })
    await control('POST', '/signals/headers')
    expect((await pending).status).toBe(200)
  })

  it('stream as many tokens as asked for', async () => {
    const text = await (
      await chat('script:long-stream tokens=250', { stream: true, stream_options: { include_usage: true } })
    ).text()
    expect(text.match(/"content":" word"/g)).toHaveLength(250)
    expect(text).toContain('"completion_tokens":250')
    const spaced = performance.now()
    await (await chat('script:long-stream tokens=3 delay=15', { stream: true })).text()
    expect(performance.now() - spaced).toBeGreaterThan(40)
  })

  it('write every byte apart', async () => {
    const incoming = await openStream('script:split-frames')
    const sizes: number[] = []
    for await (const chunk of incoming) sizes.push((chunk as Buffer).length)
    const ones = sizes.filter((size) => size === 1).length
    expect(ones).toBeGreaterThan(sizes.length * 0.9)
  })

  it.each([true, false])('make an answer as large as asked for (stream: %s)', async (stream) => {
    const text = await (await chat('script:large-answer bytes=300001', { stream })).text()
    const parts = text.match(/"content":"(large answer [^"]*)"/g) ?? []
    expect(parts.reduce((sum, part) => sum + part.length - '"content":""'.length, 0)).toBe(300_001)
  })

  it('flood only as fast as the client reads', async () => {
    const wanted = 64 * 1024 * 1024
    const incoming = await openStream(`script:flood bytes=${wanted}`)
    incoming.pause()
    let before = -1
    await vi.waitFor(
      async () => {
        const { bytesWritten } = await lastRecorded()
        const settled = bytesWritten > 0 && bytesWritten === before
        before = bytesWritten
        expect(settled).toBe(true)
      },
      { timeout: 5000, interval: 100 },
    )
    expect(before).toBeLessThan(wanted / 2)
    let received = 0
    for await (const chunk of incoming) received += (chunk as Buffer).length
    expect(received).toBeGreaterThanOrEqual(wanted)
    await vi.waitFor(async () =>
      expect(await lastRecorded()).toMatchObject({ bytesWritten: received, finished: true }),
    )
  })

  it('answer in the shape of the protocol that asked, whole too', async () => {
    expect(await (await post('/v1/messages', 'script:canned')).json()).toMatchObject({ type: 'message' })
    expect(await (await post('/v1/completions', '', { prompt: 'script:canned' })).json()).toMatchObject({
      object: 'text_completion',
    })
    expect(await (await chat('script:canned prompt=77')).json()).toMatchObject({
      usage: { prompt_tokens: 77 },
    })
    expect(await (await chat('script:fenced-json')).json()).toMatchObject({
      choices: [{ message: { content: expect.stringMatching(/^```json\n[^`]*\n```$/) } }],
    })
  })
})
