import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type LoopbackServer, listenOnLoopback } from '../../../scripts/node/loopback-server.ts'
import { type BrokerError, brokerFetch } from '../../../src/integrations/brokers/broker-fetch.ts'

let server: LoopbackServer
let allow: string[]

beforeAll(async () => {
  server = await listenOnLoopback(0, async (request, response) => {
    if (request.url === '/silent') return
    if (request.url === '/stalls') return void response.writeHead(200).write('{')
    if (request.url === '/redirects') return void response.writeHead(307, { location: '/' }).end()
    if (request.url === '/endless') return void response.end('x'.repeat(300_000))
    if (request.url === '/empty') return void response.writeHead(204).end()
    response.end('{"ok":true}')
  })
  allow = [`127.0.0.1:${server.port}`]
})
afterAll(() => server.close())

const failure = (path: string) =>
  brokerFetch(allow, 50)(`${server.url}${path}`).catch((error: unknown) => error as BrokerError)

describe('requests to authorization servers and brokers', () => {
  it('reads the whole answer', async () => {
    const answer = await brokerFetch(allow)(`${server.url}/`)
    expect([answer.status, await answer.json()]).toEqual([200, { ok: true }])
    expect((await brokerFetch(allow)(`${server.url}/empty`)).status).toBe(204)
  })

  it.each([
    ['/silent', 'unavailable'],
    ['/stalls', 'unavailable'],
    ['/endless', 'unavailable'],
    ['/redirects', 'unusable'],
  ])('fails for %s', async (path, reason) => {
    expect(await failure(path)).toMatchObject({ name: 'BrokerError', reason })
  })

  it('calls no address that is not allowed', async () => {
    const send = brokerFetch([])
    for (const url of [
      `${server.url}/`,
      'http://example.com/',
      'https://10.0.0.1/',
      'https://a:b@example.com/',
    ]) {
      await expect(send(url)).rejects.toMatchObject({ name: 'BrokerError', reason: 'unusable' })
    }
  })
})
