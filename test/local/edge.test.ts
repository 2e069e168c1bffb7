import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Edge, startEdge } from '../../scripts/serve/edge.ts'

/** What reached the gateway. */
let seen: Array<{ url: string; address: unknown; upgrade: unknown; body: string }>
let answer: (request: IncomingMessage, response: ServerResponse) => void
let gateway: Server
let edge: Edge
const clients: Socket[] = []

beforeEach(async () => {
  seen = []
  answer = (incoming, response) => void response.end(`answer to ${incoming.url}`)
  // As workerd does, it ignores `Upgrade` in all requests but those for WebSockets that its script accepts.
  gateway = createServer(async (incoming, response) => {
    let body = ''
    for await (const piece of incoming) body += piece
    const { upgrade, 'cf-connecting-ip': address } = incoming.headers
    seen.push({ url: incoming.url ?? '', address, upgrade, body })
    answer(incoming, response)
  })
  await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve))
  const { port } = gateway.address() as AddressInfo
  edge = await startEdge({ host: '127.0.0.1', port: 0, gatewayPort: port, trustedProxies: [] })
  edge.setClosed(null)
})
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy()
  await edge.close()
  gateway.closeAllConnections()
  await new Promise((resolve) => gateway.close(resolve))
})

/** A raw connection, and all that it received. */
function open(text: string): { socket: Socket; received: () => string } {
  let received = ''
  const socket = connect(edge.port, '127.0.0.1', () => socket.write(text))
  socket.on('data', (data) => {
    received += data
  })
  socket.on('error', () => {})
  clients.push(socket)
  return { socket, received: () => received }
}

const get = (path: string, ...headers: string[]): string =>
  [`GET ${path} HTTP/1.1`, 'Host: gate.example', ...headers, '', ''].join('\r\n')

const WEBSOCKET = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']
const FORGED = 'CF-Connecting-IP: 192.0.2.66'

/** Lets WebSockets through, which echo. */
function acceptWebSockets(): void {
  gateway.on('upgrade', ({ url = '', headers }: IncomingMessage, socket: Socket) => {
    seen.push({ url, address: headers['cf-connecting-ip'], upgrade: headers.upgrade, body: '' })
    socket.on('error', () => {})
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    socket.pipe(socket)
  })
}

describe('the front door of a node', () => {
  it.each([
    ['another protocol', ['Connection: Upgrade', 'Upgrade: foo'], '127.0.0.1'],
    ['several protocols', ['Connection: Upgrade', 'Upgrade: websocket, foo'], '127.0.0.1'],
    ['a WebSocket that is refused', WEBSOCKET, undefined],
  ])('lets no second request hide behind one for %s', async (_name, headers, second) => {
    const { socket, received } = open(get('/one', ...headers, FORGED) + get('/two', FORGED))
    await vi.waitFor(() => expect(received()).toContain('answer to /one'))
    if (second === undefined) await vi.waitFor(() => expect(socket.destroyed).toBe(true))
    else await vi.waitFor(() => expect(received()).toContain('answer to /two'))
    socket.write(get('/three', FORGED))
    if (second !== undefined) await vi.waitFor(() => expect(received()).toContain('answer to /three'))
    const urls = second === undefined ? ['/one'] : ['/one', '/two', '/three']
    expect(seen.map(({ url, address }) => [url, address])).toEqual(urls.map((url) => [url, '127.0.0.1']))
  })

  it('refuses what comes later on a connection in maintenance', async () => {
    const { socket, received } = open(get('/one', 'Connection: Upgrade', 'Upgrade: foo'))
    await vi.waitFor(() => expect(received()).toContain('answer to /one'))
    edge.setClosed('maintenance')
    socket.write(get('/two', 'Connection: Upgrade', 'Upgrade: foo'))
    await vi.waitFor(() => expect(received()).toMatch(/HTTP\/1\.1 503 .*"code":"maintenance"/s))
    const other = open(get('/three', ...WEBSOCKET))
    await vi.waitFor(() => expect(other.received()).toMatch(/HTTP\/1\.1 503 .*"code":"maintenance"/s))
    await vi.waitFor(() => expect(other.socket.destroyed).toBe(true))
    expect(seen.map(({ url }) => url)).toEqual(['/one'])
  })

  it('reads the body of a request that offers another protocol', async () => {
    const text = await new Promise<string>((resolve, reject) => {
      const headers = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABk' }
      request({ port: edge.port, method: 'POST', headers }, async (response) => {
        let body = ''
        for await (const piece of response) body += piece
        resolve(body)
      })
        .on('error', reject)
        .end('x'.repeat(100_000))
    })
    expect(text).toBe('answer to /')
    expect(seen).toMatchObject([{ upgrade: undefined, body: 'x'.repeat(100_000) }])
  })

  it('counts a handshake and an ordinary request with `Upgrade` among those under way', async () => {
    const open503: ServerResponse[] = []
    answer = (_incoming, response) => void open503.push(response)
    const waiting = [
      open(get('/one', 'Connection: Upgrade', 'Upgrade: foo')),
      open(get('/two', ...WEBSOCKET)),
    ]
    await vi.waitFor(() => expect(open503).toHaveLength(2))
    edge.setClosed('maintenance')
    expect(await edge.drain(50)).toBe(2)
    await vi.waitFor(() => expect(waiting.every(({ socket }) => socket.destroyed)).toBe(true))
    const later = open(get('/health'))
    await vi.waitFor(() => expect(later.received()).toContain('HTTP/1.1 200'))
  })

  it('joins a WebSocket after its handshake, states its address, and cuts it when it drains', async () => {
    acceptWebSockets()
    const { socket, received } = open(get('/socket', ...WEBSOCKET, FORGED))
    await vi.waitFor(() => expect(received()).toContain('HTTP/1.1 101'))
    socket.write('to and fro')
    await vi.waitFor(() => expect(received()).toContain('to and fro'))
    expect(seen).toEqual([{ url: '/socket', address: '127.0.0.1', upgrade: 'websocket', body: '' }])
    edge.setClosed('maintenance')
    expect(await edge.drain(1_000)).toBe(0)
    await vi.waitFor(() => expect(socket.destroyed).toBe(true))
  })

  it('ends a connection that asks for a protocol before it has the answer to a request', async () => {
    answer = () => {}
    const { socket } = open(get('/one') + get('/two', ...WEBSOCKET))
    await vi.waitFor(() => expect(socket.destroyed).toBe(true))
    expect(seen.map(({ url }) => url)).not.toContain('/two')
  })
})
