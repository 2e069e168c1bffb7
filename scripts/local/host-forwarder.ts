import {
  type ClientRequest,
  type IncomingMessage,
  type ServerResponse,
  request as sendRequest,
} from 'node:http'
import { listenOnLoopback } from './loopback-server.ts'
import type { RunningStandIn } from './stand-in-process.ts'

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
  /** The Host header they carry there. */
  host: string
}

/**
 * Forwards every request to another loopback port under another host name, which is how the LLM host exists on a
 * machine without DNS for it. Nothing is buffered: bodies stream both ways with backpressure, and a client that
 * leaves ends the forwarded request.
 *
 * @throws the error of `listen`, such as `EADDRINUSE`
 */
export async function startHostForwarder(options: HostForwarderOptions): Promise<RunningStandIn> {
  const forwarder = await listenOnLoopback(options.port, async (request, response) =>
    forward(request, response, options),
  )
  // Long streams and slow uploads are the gateway's to limit.
  forwarder.server.requestTimeout = 0
  forwarder.server.timeout = 0
  return { port: forwarder.port, url: forwarder.url, close: forwarder.close }
}

function forward(request: IncomingMessage, response: ServerResponse, options: HostForwarderOptions): void {
  const outgoing = sendRequest({
    host: '127.0.0.1',
    port: options.targetPort,
    method: request.method,
    path: request.url,
    headers: ['Host', options.host, ...passedHeaders(request.rawHeaders, 'host')],
    // A connection of its own for each request: a reused one may be closed by the other side as we write to it.
    agent: false,
  })
  request.pipe(outgoing)
  outgoing.on('response', (incoming) => relay(incoming, response))
  outgoing.on('error', () => failWith(response))
  request.on('error', () => outgoing.destroy())
  response.on('close', () => abandon(outgoing, response.writableFinished))
}

function relay(incoming: IncomingMessage, response: ServerResponse): void {
  response.writeHead(incoming.statusCode ?? 502, incoming.statusMessage, passedHeaders(incoming.rawHeaders))
  // The head goes out at once: a stream may take long to its first event.
  response.flushHeaders()
  incoming.on('error', () => response.destroy())
  incoming.pipe(response)
}

function failWith(response: ServerResponse): void {
  if (response.headersSent) {
    // An upload that is cut off by an early answer fails after the answer; one in progress must not look complete.
    if (!response.writableEnded) response.destroy()
    return
  }
  response.writeHead(502, { 'content-type': 'application/json' })
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

function passedHeaders(raw: string[], ...dropped: string[]): string[] {
  const kept: string[] = []
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index] ?? ''
    const lower = name.toLowerCase()
    if (!CONNECTION_HEADERS.has(lower) && !dropped.includes(lower)) kept.push(name, raw[index + 1] ?? '')
  }
  return kept
}
