import {
  Agent,
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { startEdge } from '../../scripts/local/edge.ts'
import { startHostForwarder } from '../../scripts/node/host-forwarder.ts'
import type { RunningServer } from '../../scripts/node/loopback-server.ts'

let answer: (request: IncomingMessage, response: ServerResponse) => void
let target: Server
let forwarder: RunningServer

beforeEach(async () => {
  target = createServer((incoming, response) => answer(incoming, response))
  await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve))
  const { port } = target.address() as AddressInfo
  forwarder = await startHostForwarder({ port: 0, targetPort: port, host: 'llm.example' })
})
afterEach(async () => {
  await forwarder.close()
  target.closeAllConnections()
  await new Promise((resolve) => target.close(resolve))
})

const readText = async (stream: AsyncIterable<Buffer>): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

describe('the host forwarder', () => {
  it('passes everything on under the other host', async () => {
    answer = async (incoming, response) => {
      const { method, url, headers } = incoming
      const body = await readText(incoming)
      response.writeHead(418, 'Short and stout', { 'x-answer': 'yes', 'set-cookie': ['a=1', 'b=2'] })
      response.end(JSON.stringify({ method, url, host: headers.host, custom: headers['x-custom'], body }))
    }
    const response = await fetch(`${forwarder.url}/v1/x?y=%20z`, {
      method: 'POST',
      headers: { 'x-custom': 'kept' },
      body: 'hello',
    })
    expect(response.status).toBe(418)
    expect(response.headers.get('x-answer')).toBe('yes')
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    expect(await response.json()).toEqual({
      method: 'POST',
      url: '/v1/x?y=%20z',
      host: 'llm.example',
      custom: 'kept',
      body: 'hello',
    })
  })

  it('passes compressed bodies on as they are', async () => {
    answer = (_incoming, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(Buffer.from([31, 139, 8, 0]))
    }
    const raw = await new Promise<Buffer>((resolve, reject) => {
      request(`${forwarder.url}/`, async (response) => {
        const chunks: Buffer[] = []
        for await (const chunk of response) chunks.push(chunk)
        resolve(Buffer.concat(chunks))
      })
        .on('error', reject)
        .end()
    })
    expect([...raw]).toEqual([31, 139, 8, 0])
  })

  it('gives the head and each part of a stream on at once', async () => {
    let open: ServerResponse | undefined
    answer = (_incoming, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      open = response
    }
    const response = await fetch(`${forwarder.url}/`)
    const reader = response.body?.getReader()
    for (const part of ['data: 1\n\n', 'data: 2\n\n']) {
      open?.write(part)
      expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe(part)
    }
    open?.end()
    expect((await reader?.read())?.done).toBe(true)
  })

  it('gives a request body on while it is sent', async () => {
    const seen: string[] = []
    answer = async (incoming, response) => {
      for await (const chunk of incoming) seen.push(String(chunk))
      response.end()
    }
    const outgoing = request(`${forwarder.url}/`, { method: 'POST' })
    const done = new Promise((resolve) => outgoing.on('response', (response) => resolve(response.resume())))
    outgoing.write('first')
    await vi.waitFor(() => expect(seen).toEqual(['first']))
    outgoing.end('second')
    await done
    expect(seen).toEqual(['first', 'second'])
  })

  it('ends the forwarded request when the client leaves', async () => {
    let left = false
    answer = (_incoming, response) => {
      response.writeHead(200).write('x')
      response.on('close', () => {
        left = true
      })
    }
    const controller = new AbortController()
    await fetch(`${forwarder.url}/`, { signal: controller.signal })
    controller.abort()
    await vi.waitFor(() => expect(left).toBe(true))
  })

  it('lets a slow reader slow the sender down', async () => {
    let written = 0
    answer = (_incoming, response) => {
      const chunk = Buffer.alloc(64 * 1024)
      const write = (): void => {
        let room = true
        while (room && written < 64 * 1024 * 1024) {
          written += chunk.length
          room = response.write(chunk)
        }
        if (!room) response.once('drain', write)
      }
      write()
    }
    const outgoing = request(`${forwarder.url}/`)
    const response = await new Promise<IncomingMessage>((resolve) => outgoing.on('response', resolve).end())
    // Nobody reads: what is written must come to a rest well before all of it.
    let before = -1
    await vi.waitFor(
      () => {
        const settled = written === before
        before = written
        expect(settled).toBe(true)
      },
      { timeout: 10_000, interval: 200 },
    )
    expect(written).toBeLessThan(48 * 1024 * 1024)
    response.destroy()
  })

  it('answers 503 when nobody listens, and cuts what breaks off half-way', async () => {
    answer = (_incoming, response) => {
      response.writeHead(200, { 'content-length': '10' }).write('12345')
      setImmediate(() => response.destroy())
    }
    const broken = await fetch(`${forwarder.url}/`)
    await expect(broken.text()).rejects.toThrow()
    target.closeAllConnections()
    await new Promise((resolve) => target.close(resolve))
    const refused = await fetch(`${forwarder.url}/`)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await refused.json()).toEqual({ message: 'the gateway does not answer' })
    target.listen(0, '127.0.0.1')
  })

  it('reports that its port is in use', async () => {
    const options = { port: forwarder.port, targetPort: 1, host: 'x' }
    await expect(startHostForwarder(options)).rejects.toMatchObject({ code: 'EADDRINUSE' })
  })
})

describe('the edge', () => {
  const edgeBefore = async () => {
    const edge = await startEdge(`http://127.0.0.1:${(target.address() as AddressInfo).port}`)
    return { ...edge, [Symbol.asyncDispose]: edge.close }
  }

  it('keeps a connection when the gateway closes its own between two requests', async () => {
    const behind: Socket[] = []
    target.on('connection', (socket) => behind.push(socket))
    answer = (incoming, response) => {
      response.end(incoming.url)
    }
    await using edge = await edgeBefore()
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const used = new Set<Socket>()
    const get = (path: string) =>
      new Promise<string>((resolve, reject) => {
        request(`${edge.url}${path}`, { agent }, async (response) => resolve(await readText(response)))
          .on('socket', (socket) => used.add(socket))
          .on('error', reject)
          .end()
      })
    for (const path of ['/1', '/2', '/3']) {
      expect(await get(path)).toBe(path)
      for (const socket of behind.splice(0)) socket.destroy()
    }
    agent.destroy()
    expect(used.size).toBe(1)
  })

  it('passes on the host, and each body in its own frame', async () => {
    answer = async (incoming, response) => {
      const { host, 'content-length': length = null, 'transfer-encoding': encoding = null } = incoming.headers
      const body = await readText(incoming)
      response.end(JSON.stringify({ host, length, encoding, body }))
    }
    await using edge = await edgeBefore()
    const sent = (method: string, headers: Record<string, string>, body: string) =>
      new Promise<unknown>((resolve, reject) => {
        const options = { method, headers: { host: 'a.example', ...headers }, agent: false }
        request(edge.url, options, async (response) => resolve(JSON.parse(await readText(response))))
          .on('error', reject)
          .end(body)
      })
    const chunked = { length: null, encoding: 'chunked' }
    const frames: Array<[string, Record<string, string>, string, object]> = [
      ['DELETE', { 'transfer-encoding': 'chunked' }, 'gone', chunked],
      ['POST', { 'transfer-encoding': 'chunked' }, 'text', chunked],
      ['PUT', { 'content-length': '4' }, 'text', { length: '4', encoding: null }],
      ['POST', { 'content-length': '0' }, '', { length: '0', encoding: null }],
      ['GET', {}, '', { length: null, encoding: null }],
    ]
    for (const [method, headers, body, frame] of frames) {
      expect(await sent(method, headers, body)).toEqual({ host: 'a.example', body, ...frame })
    }
  })

  it('passes on a WebSocket, and resets it when the client leaves', async () => {
    let left: unknown
    target.on('upgrade', (incoming, socket: Socket) => {
      socket.on('error', (error) => {
        left = error
      })
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: ${incoming.headers.upgrade}\r\nConnection: Upgrade\r\n\r\n`,
      )
      socket.pipe(socket)
    })
    await using edge = await edgeBefore()
    const socket = await new Promise<Socket>((resolve, reject) => {
      request(edge.url, { headers: { connection: 'Upgrade', upgrade: 'websocket' } })
        .on('upgrade', (_response, upgraded) => resolve(upgraded))
        .on('error', reject)
        .end()
    })
    socket.write('to and fro')
    expect(await new Promise((resolve) => socket.once('data', (data) => resolve(String(data))))).toBe(
      'to and fro',
    )
    socket.end()
    await vi.waitFor(() => expect(left).toMatchObject({ code: 'ECONNRESET' }))
  })
})
