import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Edge, startEdge } from '../../scripts/local/edge.ts'
import { gateway } from '../harness/gateway.ts'

/** A body that is not JSON, of each size that is read in another way, with its length and in chunks. */
const SIZES = [0, 2_000, 300_000]

interface RefusedRequest {
  method: string
  path: string
  headers: Record<string, string>
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

/** Requests that are answered before their body is needed, or as soon as it is read. */
function refusals(): RefusedRequest[] {
  const json = { 'content-type': 'application/json' }
  const keys = {
    none: json,
    wrong: { ...json, ...bearer('wrong') },
    caller: { ...json, ...bearer(gateway().keys.owner) },
    administrator: { ...json, ...bearer(gateway().adminToken) },
    encoded: { ...json, ...bearer(gateway().keys.owner), 'content-encoding': 'br' },
  }
  const paths = {
    POST: [
      '/v1/chat/completions',
      '/v1/messages',
      '/v1/responses',
      '/v1/mcp',
      '/v1/agents/runs',
      '/v1/models',
      '/api/organizations',
      '/internal/agents/runs',
      '/health',
      '/nowhere',
    ],
    GET: ['/v1/models', '/v1/responses/resp_none', '/api/organizations'],
    PUT: ['/v1/responses', '/api/providers/00000000-0000-4000-8000-000000000006'],
    DELETE: ['/v1/chat/completions', '/api/models/none', '/nowhere'],
  }
  return Object.entries(paths).flatMap(([method, known]) =>
    known.flatMap((path) => Object.values(keys).map((headers) => ({ method, path, headers }))),
  )
}

describe.concurrent.each(['the Worker', 'the edge before it'])('a kept-alive connection to %s', (place) => {
  let edge: Edge
  beforeAll(async () => {
    edge = await startEdge(gateway().baseUrl)
  })
  afterAll(() => edge.close())

  it('answers every refused request, and stays open', async () => {
    const { port } = new URL(place === 'the Worker' ? gateway().baseUrl : edge.url)
    await using connection = await RawConnection.open(Number(port))
    const unanswered: string[] = []
    for (const { method, path, headers } of refusals()) {
      for (const size of SIZES) {
        for (const isChunked of size === 0 ? [false] : [false, true]) {
          const status = await connection.send({ method, path, headers }, size, isChunked).catch(String)
          const isAnswered = typeof status === 'number' && status < 500
          const request = [method, path, headers.authorization?.length, size, isChunked, status]
          if (!isAnswered) unanswered.push(request.join(' '))
          if (connection.isClosed) break
        }
      }
    }
    expect(unanswered).toEqual([])
    expect(connection.isClosed).toBe(false)
  }, 60_000)
})

/** A client that never opens a second connection. */
class RawConnection {
  readonly #socket: Socket
  #received = Buffer.alloc(0)
  isClosed = false

  constructor(socket: Socket) {
    this.#socket = socket
    socket.on('close', () => {
      this.isClosed = true
    })
    socket.on('data', (data) => {
      this.#received = Buffer.concat([this.#received, data])
    })
  }

  static async open(port: number): Promise<RawConnection> {
    const socket = connect({ port, host: '127.0.0.1' })
    await once(socket, 'connect')
    return new RawConnection(socket)
  }

  /** @returns the status. @throws Error for a connection that ends before the answer. */
  async send({ method, path, headers }: RefusedRequest, size: number, isChunked: boolean): Promise<number> {
    const body = Buffer.alloc(size, 'x')
    const frame = isChunked ? 'transfer-encoding: chunked' : `content-length: ${size}`
    const lines = Object.entries({ host: 'gateway', ...headers }).map(([name, value]) => `${name}: ${value}`)
    this.#socket.write(`${[`${method} ${path} HTTP/1.1`, ...lines, frame].join('\r\n')}\r\n\r\n`)
    if (isChunked) this.#socket.write(`${size.toString(16)}\r\n`)
    this.#socket.write(body)
    if (isChunked) this.#socket.write('\r\n0\r\n\r\n')
    const head = (await this.#until('\r\n\r\n')).toLowerCase()
    const length = /content-length: (\d+)/.exec(head)?.[1]
    if (length !== undefined) await this.#take(Number(length))
    else if (head.includes('transfer-encoding: chunked')) await this.#until('0\r\n\r\n')
    return Number(head.split(' ')[1])
  }

  async #until(end: string): Promise<string> {
    while (!this.#received.includes(end)) await this.#more()
    return (await this.#take(this.#received.indexOf(end) + end.length)).toString()
  }

  async #take(length: number): Promise<Buffer> {
    while (this.#received.length < length) await this.#more()
    const taken = this.#received.subarray(0, length)
    this.#received = this.#received.subarray(length)
    return taken
  }

  async #more(): Promise<void> {
    const before = this.#received.length
    const ended = new AbortController()
    const { signal } = ended
    if (!this.isClosed)
      await Promise.race([once(this.#socket, 'data', { signal }), once(this.#socket, 'close', { signal })])
    ended.abort()
    if (this.#received.length === before) throw new Error('the connection ended without an answer')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.destroy()
  }
}
