import { type IncomingMessage, type Server, ServerResponse, request as sendRequest } from 'node:http'
import { connect, type Socket } from 'node:net'
import {
  abandon,
  type Forwarding,
  failWith,
  hostHeaders,
  passedHeaders,
  relay,
  withoutHeaders,
} from './forward-request.ts'

/**
 * Forwards the WebSockets of a server. Bytes are copied unread only after the target has switched protocols (101): before
 * that, a client could hide a second request behind the first, with headers that no server has checked. A request for any other
 * protocol is handled as an ordinary one (RFC 9110, section 7.8, lets a server ignore `Upgrade`).
 *
 * @param server whose `request` event gets the ordinary ones
 * @param begin says where the handshake goes; null after it has answered itself. The response is closed, as that of a request, once
 * the handshake has an answer
 * @returns the open WebSockets
 */
export function forwardWebSockets(
  server: Server,
  begin: (request: IncomingMessage, response: ServerResponse) => Forwarding | null,
): ReadonlySet<Socket> {
  const open = new Set<Socket>()
  const unanswered = countUnanswered(server)
  server.on('upgrade', (request: IncomingMessage, client: Socket, sent: Buffer) => {
    client.on('error', () => client.destroy())
    // Two answers would be written into each other: Node no longer orders those of a socket that it gave away.
    if (unanswered(client) > 0) return void client.destroy()
    if (!isWebSocket(request)) return handleAsOrdinary(server, request, client, sent)
    open.add(client.once('close', () => open.delete(client)))
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(client)
    response.once('finish', () => client.end())
    const forwarding = begin(request, response)
    if (forwarding !== null) shakeHands(request, response, sent, forwarding)
  })
  return open
}

/** @returns how many requests of a connection have no complete answer */
function countUnanswered(server: Server): (socket: Socket) => number {
  const counts = new WeakMap<Socket, number>()
  const count = (socket: Socket): number => counts.get(socket) ?? 0
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    counts.set(socket, count(socket) + 1)
    response.once('close', () => counts.set(socket, count(socket) - 1))
  })
  return count
}

/** A handshake of RFC 6455, section 4.2.1, which has no body. */
const isWebSocket = ({ method, headers }: IncomingMessage): boolean =>
  method === 'GET' &&
  headers.upgrade?.toLowerCase() === 'websocket' &&
  headers['content-length'] === undefined &&
  headers['transfer-encoding'] === undefined

/** Node has left the connection after the request's head; it reads it once more, without the header that made it leave. */
function handleAsOrdinary(server: Server, request: IncomingMessage, client: Socket, sent: Buffer): void {
  const headers = withoutHeaders(request.rawHeaders, new Set(['upgrade']))
  const lines = [`${request.method} ${request.url} HTTP/${request.httpVersion}`]
  for (let index = 0; index < headers.length; index += 2) {
    lines.push(`${headers[index]}: ${headers[index + 1]}`)
  }
  client.removeAllListeners('timeout').removeAllListeners('error')
  client.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), sent]))
  server.emit('connection', client)
}

function shakeHands(
  request: IncomingMessage,
  response: ServerResponse,
  sent: Buffer,
  options: Forwarding,
): void {
  const { target, added = [], dropped = [] } = options
  const place = 'socketPath' in target ? { path: target.socketPath } : target
  const outgoing = sendRequest({
    method: 'GET',
    path: request.url,
    headers: [
      ...hostHeaders(request, options),
      ...['Connection', 'Upgrade', 'Upgrade', 'websocket'],
      ...added,
      ...passedHeaders(request.rawHeaders, 'host', ...dropped),
    ],
    createConnection: () => connect({ ...place, allowHalfOpen: true, noDelay: true }),
  })
  const leave = (): void => abandon(outgoing, response.writableFinished)
  response.once('close', leave)
  outgoing.on('response', (incoming) => relay(incoming, response))
  outgoing.on('error', (error) => failWith(response, error))
  outgoing.on('upgrade', (incoming, gateway, first) => {
    response.off('close', leave)
    const client = request.socket
    response.detachSocket(client)
    join(incoming, { client, sent }, { gateway, first })
    response.emit('close')
  })
  outgoing.end()
}

/** Copies the bytes of both sides, what they sent early first. */
function join(
  { rawHeaders }: IncomingMessage,
  { client, sent }: { client: Socket; sent: Buffer },
  { gateway, first }: { gateway: Socket; first: Buffer },
): void {
  // A client that left is reported by a reset: see `abandon`.
  const leave = (): void => {
    if (!gateway.destroyed) gateway.resetAndDestroy()
    client.destroy()
  }
  const lines = ['HTTP/1.1 101 Switching Protocols']
  for (let index = 0; index < rawHeaders.length; index += 2) {
    lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`)
  }
  client.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  client.write(first)
  gateway.write(sent)
  client.on('end', leave).on('error', leave).on('close', leave).pipe(gateway, { end: false })
  gateway.on('error', () => client.destroy()).pipe(client)
}
