import { forward } from './forward-request.ts'
import { listenOnLoopback, type RunningServer } from './loopback-server.ts'
import { forwardWebSockets } from './websocket-forwarder.ts'

export interface HostForwarderOptions {
  /** Port to listen on at 127.0.0.1; 0 for any free one. */
  port: number
  /** Port on 127.0.0.1 that requests go to. */
  targetPort: number
  /** The Host header they carry there; null for the one that the client sent. */
  host: string | null
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
  const webSockets = forwardWebSockets(forwarder.server, () => forwarding)
  // Long streams and slow uploads are the gateway's to limit.
  forwarder.server.requestTimeout = 0
  forwarder.server.timeout = 0
  const close = (): Promise<void> => {
    for (const socket of webSockets) socket.destroy()
    return forwarder.close()
  }
  return { port: forwarder.port, url: forwarder.url, close }
}
