import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { StringDecoder } from 'node:string_decoder'

/** A request of a client with its answer. */
export interface Exchange {
  method: string
  /** Path with query. */
  path: string
  headers: IncomingHttpHeaders
  body: string
  /** 0 until the answer began. */
  status: number
  answer: string
  requestId: string | null
}

export interface RecordingProxy {
  /** In place of the gateway's base URL. */
  url: string
  /** Requests to the gateway, oldest first. */
  exchanges: Exchange[]
  /** Hosts that the client wanted to reach through this proxy; none of them was. */
  strays: string[]
  close(): Promise<void>
}

/**
 * A proxy between a client and the gateway that records requests and answers, bytes unchanged. It is the client's proxy
 * for all other hosts too: it refuses those requests and records the hosts, so that a client under test reaches only
 * the gateway.
 *
 * @param gatewayUrl on loopback
 */
export async function startRecordingProxy(gatewayUrl: string): Promise<RecordingProxy> {
  const exchanges: Exchange[] = []
  const strays: string[] = []
  const server = createServer((incoming, outgoing) => {
    if (incoming.url?.startsWith('/')) {
      pass(gatewayUrl, incoming, outgoing, exchanges)
      return
    }
    strays.push(incoming.url ?? '')
    outgoing.writeHead(502).end()
  })
  server.on('connect', (incoming, socket) => {
    strays.push(incoming.url ?? '')
    socket.on('error', () => {})
    socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    exchanges,
    strays,
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

function pass(
  gatewayUrl: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  exchanges: Exchange[],
): void {
  const { method = '', url: path = '', headers } = incoming
  const exchange: Exchange = { method, path, headers, body: '', status: 0, answer: '', requestId: null }
  exchanges.push(exchange)
  const { host } = new URL(gatewayUrl)
  const onward = request(`${gatewayUrl}${path}`, { method, headers: { ...headers, host }, agent: false })
  const [sent, answered] = [new StringDecoder(), new StringDecoder()]
  incoming.on('data', (chunk: Buffer) => {
    exchange.body += sent.write(chunk)
  })
  incoming.pipe(onward)
  onward.on('response', (answer) => {
    exchange.status = answer.statusCode ?? 0
    exchange.requestId = String(answer.headers['x-request-id'] ?? '') || null
    outgoing.writeHead(exchange.status, answer.headers)
    answer.on('data', (chunk: Buffer) => {
      exchange.answer += answered.write(chunk)
    })
    answer.on('error', () => outgoing.destroy()).pipe(outgoing)
  })
  onward.on('error', () => outgoing.destroy())
  outgoing.on('close', () => onward.destroy())
}
