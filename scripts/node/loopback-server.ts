import { rmSync } from 'node:fs'
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'

/** Thrown by `readBody` for a body above the limit; answered with 413. */
export class BodyTooLargeError extends Error {}

/** A service that listens on loopback until it is closed. */
export interface RunningServer {
  /** The TCP port it listens on; 0 at a Unix socket. */
  readonly port: number
  /** `http://127.0.0.1:<port>`, without a trailing slash; `unix:<path>` at a Unix socket. */
  readonly url: string
  /** Stops listening, ends open connections and stores what has to survive. Calling it twice is harmless. */
  close(): Promise<void>
}

/** Handles a request. An exception is answered with 500 and its message. */
export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/** An HTTP server that other machines do not reach. */
export interface LoopbackServer extends RunningServer {
  readonly server: Server
}

/**
 * Listens on 127.0.0.1, or at a Unix socket, which other users of the machine do not reach if its folder is closed to them.
 *
 * @param place the TCP port, 0 for any free one; or the path of the socket, whose left-over file is removed
 * @param handle answers each request
 * @param options of Node's server
 * @throws the error of `listen`, `EADDRINUSE` included
 */
export async function listenOnLoopback(
  place: number | string,
  handle: RequestHandler,
  options: ServerOptions = {},
): Promise<LoopbackServer> {
  const server = createServer(options, (request, response) => {
    handle(request, response).catch((error: unknown) => {
      if (response.headersSent) return response.destroy()
      const status = error instanceof BodyTooLargeError ? 413 : 500
      const message = error instanceof Error ? error.message : String(error)
      sendJson(response, status, { error: message, message })
    })
  })
  // Node closes an idle connection after five seconds, just as a client may be about to use it again. Clients that
  // do not retry, the Neon driver among them, would fail now and then.
  server.keepAliveTimeout = 0
  if (typeof place === 'string') rmSync(place, { force: true })
  const at = typeof place === 'string' ? { path: place } : { port: place, host: '127.0.0.1' }
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(at, () => {
      server.off('error', reject)
      resolve()
    })
  })
  const address = server.address() as AddressInfo | string
  const [port, url] =
    typeof address === 'string' ? [0, `unix:${address}`] : [address.port, `http://127.0.0.1:${address.port}`]
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => {
    closing ??= new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
    return closing
  }
  return { server, port, url, close }
}

/**
 * Reads a request body as bytes.
 *
 * @param limit the largest body that is taken, in bytes
 * @throws BodyTooLargeError as soon as the body is larger
 */
export async function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += (chunk as Buffer).length
    if (size > limit) throw new BodyTooLargeError(`request body is larger than ${limit} bytes`)
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks)
}

/** Sends a JSON answer with its length, so that keep-alive connections are reused. */
export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const text = body === undefined ? '' : JSON.stringify(body)
  response
    .writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    .end(text)
}
