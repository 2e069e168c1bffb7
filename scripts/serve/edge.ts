import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Forwarding, forward } from '../node/forward-request.ts'
import { HEAD_BYTES } from '../node/host-forwarder.ts'
import { sendJson } from '../node/loopback-server.ts'
import { forwardWebSockets } from '../node/websocket-forwarder.ts'
import { type AddressRange, clientAddress } from './client-address.ts'

export interface EdgeOptions {
  host: string
  /** 0 for any free one. */
  port: number
  /**
   * Port of the gateway on 127.0.0.1. Not a Unix socket: only a reset says to the gateway that a client has left, and Unix
   * sockets have none.
   */
  gatewayPort: number
  trustedProxies: readonly AddressRange[]
}

/** Why requests are refused; null while they are let through. */
export type Closed = 'starting' | 'maintenance' | 'stopping' | null

export interface Edge {
  port: number
  /** Lets requests through, or refuses new ones. Those under way continue. */
  setClosed(reason: Closed): void
  /**
   * Waits until no request is under way, then closes all connections but leaves the port open.
   * @param limitMs after which the remaining requests are cut
   * @returns how many were cut
   */
  drain(limitMs: number): Promise<number>
  close(): Promise<void>
}

/** The header that the Worker reads, which only this service sets. A client's own is dropped. */
const ADDRESS_HEADER = 'cf-connecting-ip'

/** Longer than proxies keep an idle connection, so that none is closed just as a proxy uses it again. */
const IDLE_MS = 150_000

const RETRY_SECONDS = { starting: 2, maintenance: 15, stopping: 5 } as const

/**
 * The front door of a node: it says to the gateway where a request came from, stops letting requests in, and waits for those under way.
 * TLS is for the reverse proxy before it.
 * @throws the error of `listen`, such as `EADDRINUSE`
 */
export async function startEdge(options: EdgeOptions): Promise<Edge> {
  let closed: Closed = 'starting'
  const requests = new Set<ServerResponse>()
  let onIdle = (): void => {}
  /** @returns where a request goes; null after it was refused */
  const admit = (request: IncomingMessage, response: ServerResponse): Forwarding | null => {
    if (closed !== null) {
      refuse(closed, request, response)
      return null
    }
    requests.add(response)
    response.once('close', () => {
      requests.delete(response)
      if (requests.size === 0) onIdle()
    })
    return forwarding(request, options)
  }
  const server = createServer({ maxHeaderSize: HEAD_BYTES }, (request, response) => {
    const admitted = admit(request, response)
    if (admitted !== null) forward(request, response, admitted)
  })
  const webSockets = forwardWebSockets(server, admit)
  server.keepAliveTimeout = IDLE_MS
  // Long streams and slow uploads are the gateway's to limit.
  server.requestTimeout = 0
  await listen(server, options)
  const cutAll = (): void => {
    for (const socket of webSockets) socket.destroy()
    server.closeAllConnections()
  }
  return {
    port: (server.address() as AddressInfo).port,
    setClosed: (reason) => {
      closed = reason
    },
    drain: async (limitMs) => {
      const idle = new Promise<void>((resolve) => {
        onIdle = resolve
        if (requests.size === 0) resolve()
      })
      let timer: NodeJS.Timeout | undefined
      const limit = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, limitMs)
      })
      await Promise.race([idle, limit])
      clearTimeout(timer)
      const left = requests.size
      cutAll()
      return left
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        cutAll()
      }),
  }
}

const listen = (server: Server, { host, port }: EdgeOptions): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.off('error', reject)
      resolve()
    })
  })

function forwarding({ socket, headers }: IncomingMessage, options: EdgeOptions): Forwarding {
  const forwardedFor = [headers['x-forwarded-for'] ?? []].flat().join(',')
  const address = clientAddress(socket.remoteAddress, forwardedFor, options.trustedProxies)
  return {
    target: { port: options.gatewayPort, host: '127.0.0.1' },
    host: null,
    added: address === null ? [] : [ADDRESS_HEADER, address],
    dropped: [ADDRESS_HEADER],
  }
}

/** An error in a form that clients of both protocols read. Nothing was done, so they may try again. */
function refuse(reason: NonNullable<Closed>, request: IncomingMessage, response: ServerResponse): void {
  const path = request.url?.split('?', 1)[0]
  const message = `The gateway takes no calls now (${reason}). Try again soon.`
  const error = { type: 'error', error: { type: 'overloaded_error', code: reason, message } }
  response.setHeader('connection', 'close')
  if (path !== '/health') response.setHeader('retry-after', String(RETRY_SECONDS[reason]))
  if (path === '/health') sendJson(response, 200, { status: 'ok' })
  else if (path === '/health/ready') sendJson(response, 503, { status: 'unavailable', failed: [reason] })
  else sendJson(response, 503, error)
}
