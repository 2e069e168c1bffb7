import { request } from 'node:http'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startCache } from '../../scripts/node/cache.ts'
import type { RunningServer } from '../../scripts/node/loopback-server.ts'

let cache: RunningServer
let now = 1_000_000

beforeEach(async () => {
  cache = await startCache(0, () => now)
})
afterEach(() => cache.close())

interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  body: string
}

/** What workerd sends: the key as Host and path, the stored answer as text. */
function send(method: string, key: string, body = '', headers: Record<string, string> = {}): Promise<Answer> {
  const url = new URL(key)
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        host: '127.0.0.1',
        port: cache.port,
        method,
        path: url.pathname,
        headers: { ...headers, host: url.host },
      },
      async (response) => {
        let text = ''
        for await (const chunk of response) text += chunk
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text })
      },
    )
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

const stored = (cacheControl: string, body = 'text', more = '') =>
  `HTTP/1.1 200 OK\r\nCache-Control: ${cacheControl}\r\nContent-Length: ${body.length}\r\nETag: "x"\r\n${more}\r\n${body}`

const match = (key: string, headers = {}) =>
  send('GET', key, '', { 'cache-control': 'only-if-cached', ...headers })

const KEY = 'http://key.example/a'

describe('the stand-in for the Cache API', () => {
  it('keeps an answer as long as max-age says', async () => {
    expect((await match(KEY)).headers['cf-cache-status']).toBe('MISS')
    await send('PUT', KEY, stored('max-age=10'))
    now += 9_000
    expect(await match(KEY)).toMatchObject({
      status: 200,
      body: 'text',
      headers: { 'cf-cache-status': 'HIT', age: '9', etag: '"x"' },
    })
    now += 1_000
    expect((await match(KEY)).headers['cf-cache-status']).toBe('MISS')
  })

  it('prefers s-maxage, and stores nothing that forbids it', async () => {
    await send('PUT', KEY, stored('max-age=0, s-maxage=60'))
    expect((await match(KEY)).body).toBe('text')
    for (const control of ['no-store', 'private, max-age=60', 'no-cache, max-age=60', 'public']) {
      await send('PUT', KEY, stored(control))
      expect((await match(KEY)).headers['cf-cache-status']).toBe('MISS')
    }
  })

  it('tells keys by host, path and cache name', async () => {
    await send('PUT', KEY, stored('max-age=60', 'one'))
    await send('PUT', KEY, stored('max-age=60', 'two'), { 'cf-cache-namespace': 'models' })
    expect((await match(KEY)).body).toBe('one')
    expect((await match(KEY, { 'cf-cache-namespace': 'models' })).body).toBe('two')
    expect((await match('http://other.example/a')).headers['cf-cache-status']).toBe('MISS')
    expect((await match('http://key.example/b')).headers['cf-cache-status']).toBe('MISS')
  })

  it('deletes once', async () => {
    await send('PUT', KEY, stored('max-age=60'))
    expect((await send('PURGE', KEY)).status).toBe(200)
    expect((await send('PURGE', KEY)).status).toBe(404)
    expect((await match(KEY)).headers['cf-cache-status']).toBe('MISS')
  })

  it('reads chunked answers', async () => {
    const chunked =
      'HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n'
    await send('PUT', KEY, chunked)
    expect((await match(KEY)).body).toBe('abcde')
  })

  it('drops entries that it cannot read', async () => {
    await send('PUT', KEY, stored('max-age=60'))
    expect((await send('PUT', KEY, 'not an answer')).status).toBe(204)
    expect((await match(KEY)).headers['cf-cache-status']).toBe('MISS')
  })
})
