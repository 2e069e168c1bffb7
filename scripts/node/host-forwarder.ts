import {
  type ClientRequest,
  type IncomingMessage,
  type ServerResponse,
  request as sendRequest,
} from 'node:http'
import { connect, type Socket } from 'node:net'
import type { LocalAddress } from './get-text.ts'
import { listenOnLoopback, type RunningServer } from './loopback-server.ts'

/** Headers of a single connection, which must not be forwarded (RFC 9110, section 7.6.1). */
const CONNECTION_HEADERS = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

export interface HostForwarderOptions {
  /** Port to listen on at 127.0.0.1; 0 for any free one. */
  port: number
  /** Port on 127.0.0.1 that requests go to. */
  targetPort: number
  /** The Host header they carry there; null for the one that the client sent. */
  host: string | null
}

/** How a request is forwarded. */
export interface Forwarding {
  target: LocalAddress
  /** The Host header; null for the one that the client sent. */
  host: string | null
  /** Headers that are added, names and values in turn. */
  added?: readonly string[]
  /** Names in lower case of the client's headers that are dropped. */
  dropped?: readonly string[]
}

/** Bytes of a request's head that workerd takes, and so has to get. */
export const HEAD_BYTES = 128 * 1024

/**
 * Forwards every request to another loopback port, as the platform's edge does. A second forwarder sets another host
 * name, for the LLM host on a machine without DNS. Nothing is buffered: bodies stream both ways with backpressure.
 *
 * A client that leaves ends the forwarded request by a reset. workerd alone treats the FIN of a closed connection as the end
 * of the client's sending; it detects the closed connection only when a write is answered with a reset, and there is no write
 * while an upstream is silent.
 *
 * A kept-alive connection of a client is never closed between two requests. workerd closes one that was idle for 15 seconds,
 * and a request that arrives in that moment gets no answer.
 *
 * @throws the error of `listen`, such as `EADDRINUSE`
 */
export async function startHostForwarder(options: HostForwarderOptions): Promise<RunningServer> {
  const forwarding = { target: { port: options.targetPort, host: '127.0.0.1' }, host: options.host }
  const forwarder = await listenOnLoopback(
    options.port,
    async (request, response) => forward(request, response, forwarding),
    { maxHeaderSize: HEAD_BYTES },
  )
  const tunnels = new Set<Socket>()
  forwarder.server.on('upgrade', (request, socket: Socket, sent) => {
    tunnels.add(socket.on('close', () => tunnels.delete(socket)))
    tunnel(request, socket, sent, forwarding)
  })
  // Long streams and slow uploads are the gateway's to limit.
  forwarder.server.requestTimeout = 0
  forwarder.server.timeout = 0
  const close = (): Promise<void> => {
    for (const socket of tunnels) socket.destroy()
    return forwarder.close()
  }
  return { port: forwarder.port, url: forwarder.url, close }
}

/** Passes a request on, and its answer back. */
export function forward(request: IncomingMessage, response: ServerResponse, options: Forwarding): void {
  const outgoing = sendRequest({
    ...options.target,
    method: request.method,
    path: request.url,
    headers: [
      ...hostHeaders(request, options),
      ...framing(request),
      ...(options.added ?? []),
      ...passedHeaders(request.rawHeaders, 'host', ...(options.dropped ?? [])),
    ],
    // A connection of its own for each request: a reused one may be closed by the other side as we write to it.
    agent: false,
  })
  request.pipe(outgoing)
  outgoing.on('response', (incoming) => relay(incoming, response))
  outgoing.on('error', (error: NodeJS.ErrnoException) => failWith(response, error))
  request.on('error', () => outgoing.destroy())
  response.on('close', () => abandon(outgoing, response.writableFinished))
}

const hostHeaders = ({ headers }: IncomingMessage, { host }: Forwarding): string[] => {
  const name = host ?? headers.host
  return name === undefined ? [] : ['Host', name]
}

/** Node frames a body by its own rules: none at all for a DELETE, chunks for a POST without a body. */
function framing({ headers, method = '' }: IncomingMessage): string[] {
  if (headers['transfer-encoding'] !== undefined) return ['Transfer-Encoding', 'chunked']
  const isEmpty = headers['content-length'] === undefined && ['POST', 'PUT', 'PATCH'].includes(method)
  return isEmpty ? ['Content-Length', '0'] : []
}

/** Passes a connection on that becomes one of another protocol, such as a WebSocket. */
export function tunnel(request: IncomingMessage, client: Socket, sent: Buffer, options: Forwarding): void {
  const { target, added = [], dropped = [] } = options
  const place = 'socketPath' in target ? { path: target.socketPath } : target
  const gateway = connect({ ...place, allowHalfOpen: true, noDelay: true })
  const leave = (): void => {
    gateway.resetAndDestroy()
    client.destroy()
  }
  const passed = withoutHeaders(request.rawHeaders, new Set(['host', ...dropped]))
  const headers = [...hostHeaders(request, options), ...added, ...passed]
  const lines = [`${request.method} ${request.url} HTTP/1.1`]
  for (let index = 0; index < headers.length; index += 2) {
    lines.push(`${headers[index]}: ${headers[index + 1]}`)
  }
  gateway.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  gateway.write(sent)
  client.on('end', leave).on('error', leave).pipe(gateway, { end: false })
  gateway.on('error', () => client.destroy()).pipe(client)
}

function relay(incoming: IncomingMessage, response: ServerResponse): void {
  response.sendDate = false
  response.writeHead(incoming.statusCode ?? 502, incoming.statusMessage, passedHeaders(incoming.rawHeaders))
  // The head goes out at once: a stream may take long to its first event.
  response.flushHeaders()
  incoming.on('error', () => response.destroy())
  incoming.pipe(response)
}

/** Codes of a connection that was never made. */
const NOT_REACHED = ['ECONNREFUSED', 'ENOENT']

function failWith(response: ServerResponse, { code = '' }: NodeJS.ErrnoException): void {
  if (response.headersSent) {
    // An upload that is cut off by an early answer fails after the answer; one in progress must not look complete.
    if (!response.writableEnded) response.destroy()
    return
  }
  // What never reached the gateway, which may be starting again, can safely be repeated.
  const [status, retry] = NOT_REACHED.includes(code) ? [503, { 'retry-after': '1' }] : [502, {}]
  response.writeHead(status, { 'content-type': 'application/json', ...retry })
  response.end('{"message":"the gateway does not answer"}')
}

/**
 * A client that left is reported by a reset: workerd takes an ordinary close for a client that only ended its sending. An
 * exchange that is complete is closed; resetting a connection that is closing already would keep the process from
 * ending (Node 24 waits for ever for the handle).
 */
function abandon(outgoing: ClientRequest, complete: boolean): void {
  if (outgoing.destroyed) return
  if (!complete) outgoing.socket?.resetAndDestroy()
  outgoing.destroy()
}

const passedHeaders = (raw: string[], ...dropped: string[]): string[] =>
  withoutHeaders(raw, new Set([...CONNECTION_HEADERS, ...dropped]))

/** @param raw names and values in turn. @param dropped names in lowercase. */
function withoutHeaders(raw: string[], dropped: ReadonlySet<string>): string[] {
  const kept: string[] = []
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index] ?? ''
    if (!dropped.has(name.toLowerCase())) kept.push(name, raw[index + 1] ?? '')
  }
  return kept
}
