import type { IncomingMessage, ServerResponse } from 'node:http'
import { secretsEqual } from '../../../src/lib/crypto.ts'
import { listenOnLoopback, type RunningServer, readBody, sendJson } from '../loopback-server.ts'
import type { RedisBackend } from './backend.ts'
import { RestFront } from './rest-front.ts'

/** Options of the REST interface before a Redis. */
export interface RedisServerOptions {
  /** TCP port on 127.0.0.1; any free one when left out. */
  readonly port?: number
  /** The token that clients have to send. */
  readonly token: string
  /** Opens what runs the commands. */
  open(): Promise<RedisBackend>
  /** Answers requests that need no token. @returns whether it has answered this one */
  control?(request: IncomingMessage, response: ServerResponse): Promise<boolean>
}

/** Upstash's limit for a request, in bytes. https://upstash.com/docs/redis/troubleshooting/max_request_size_exceeded */
const REQUEST_LIMIT = 10 * 1024 * 1024

/**
 * Starts the REST interface of Upstash Redis before a Redis. `GET /health` answers 200 without a token.
 *
 * @throws `EADDRINUSE` for a port in use, and what `open` throws
 */
export async function startRedisServer(options: RedisServerOptions): Promise<RunningServer> {
  const authorization = `Bearer ${options.token}`
  let front: RestFront | undefined
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = request.url ?? '/'
    if (front === undefined) return sendJson(response, 503, { error: 'ERR the store is starting' })
    if (url === '/health') return sendJson(response, 200, { ready: true })
    if (await options.control?.(request, response)) return
    if (!secretsEqual(request.headers.authorization ?? '', authorization)) {
      return sendJson(response, 401, { error: 'WRONGPASS invalid or missing auth token' })
    }
    const body = await readBody(request, REQUEST_LIMIT)
    const base64 = request.headers['upstash-encoding'] === 'base64'
    const { status, text } = await front.answer({ path: url, body, base64 })
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
    response.writeHead(status, headers).end(text)
  }
  const http = await listenOnLoopback(options.port ?? 0, handle)
  let backend: RedisBackend
  try {
    backend = await options.open()
  } catch (error) {
    await http.close()
    throw error
  }
  front = new RestFront(backend)
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => {
    closing ??= http.close().then(() => backend.close())
    return closing
  }
  return { port: http.port, url: http.url, close }
}
