import {
  type ClientRequest,
  type IncomingMessage,
  type ServerResponse,
  request as sendRequest,
} from 'node:http'
import type { LocalAddress } from './get-text.ts'

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

/** The Host header to send, if there is one. */
export const hostHeaders = ({ headers }: IncomingMessage, { host }: Forwarding): string[] => {
  const name = host ?? headers.host
  return name === undefined ? [] : ['Host', name]
}

/** Node frames a body by its own rules: none at all for a DELETE, chunks for a POST without a body. */
function framing({ headers, method = '' }: IncomingMessage): string[] {
  if (headers['transfer-encoding'] !== undefined) return ['Transfer-Encoding', 'chunked']
  const isEmpty = headers['content-length'] === undefined && ['POST', 'PUT', 'PATCH'].includes(method)
  return isEmpty ? ['Content-Length', '0'] : []
}

/** Passes an answer back. */
export function relay(incoming: IncomingMessage, response: ServerResponse): void {
  response.sendDate = false
  response.writeHead(incoming.statusCode ?? 502, incoming.statusMessage, passedHeaders(incoming.rawHeaders))
  // The head goes out at once: a stream may take long to its first event.
  response.flushHeaders()
  incoming.on('error', () => response.destroy())
  incoming.pipe(response)
}

/** Codes of a connection that was never made. */
const NOT_REACHED = ['ECONNREFUSED', 'ENOENT']

/** Answers that the target does not. */
export function failWith(response: ServerResponse, { code = '' }: NodeJS.ErrnoException): void {
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
export function abandon(outgoing: ClientRequest, complete: boolean): void {
  if (outgoing.destroyed) return
  if (!complete) outgoing.socket?.resetAndDestroy()
  outgoing.destroy()
}

/** Headers without those of the connection and those that are dropped. */
export const passedHeaders = (raw: string[], ...dropped: string[]): string[] =>
  withoutHeaders(raw, new Set([...CONNECTION_HEADERS, ...dropped]))

/** @param raw names and values in turn. @param dropped names in lowercase. */
export function withoutHeaders(raw: string[], dropped: ReadonlySet<string>): string[] {
  const kept: string[] = []
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index] ?? ''
    if (!dropped.has(name.toLowerCase())) kept.push(name, raw[index + 1] ?? '')
  }
  return kept
}
