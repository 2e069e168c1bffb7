import type { IncomingMessage, ServerResponse } from 'node:http'
import { AdjustableClock, readAdvance } from '../adjustable-clock.ts'
import { listenOnLoopback, readBody, sendJson } from '../loopback-server.ts'
import type { RunningStandIn } from '../stand-in-process.ts'
import type { RedisBackend } from './backend.ts'
import { openMemoryBackend } from './memory-store.ts'
import { openRealBackend } from './real-backend.ts'
import { RestFront } from './rest-front.ts'

/** Options of the Redis stand-in. */
export interface RedisOptions {
  /** TCP port on 127.0.0.1; any free one when left out. */
  readonly port?: number
  /** The token that clients have to send; `local` by default. */
  readonly token?: string
  /** File that keeps the data over a restart; without it they end with the process. */
  readonly file?: string
  /** URL of a real Redis that runs the commands, in place of the store in memory. */
  readonly redisUrl?: string
  /** The time of the store in memory; the system's by default. */
  readonly clock?: AdjustableClock
  /** Serves `POST /control/advance` with `{"milliseconds": n}`, which moves the clock of the store in memory. */
  readonly control?: boolean
}

/** Upstash's limit for a request, in bytes. https://upstash.com/docs/redis/troubleshooting/max_request_size_exceeded */
const REQUEST_LIMIT = 10 * 1024 * 1024

/**
 * Starts the stand-in for Upstash Redis: its REST interface over a store in memory or over a real Redis.
 * `GET /health` answers 200 without a token.
 *
 * @throws `EADDRINUSE` for a port in use, OptionError for a file in use or a malformed URL
 */
export async function startRedis(options: RedisOptions = {}): Promise<RunningStandIn> {
  const clock = options.clock ?? new AdjustableClock()
  const authorization = `Bearer ${options.token ?? 'local'}`
  let front: RestFront | undefined
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = request.url ?? '/'
    if (front === undefined) return sendJson(response, 503, { error: 'ERR the store is starting' })
    if (url === '/health') return sendJson(response, 200, { ready: true })
    if (options.control === true && url === '/control/advance') {
      return advance(clock, await readBody(request, REQUEST_LIMIT), response)
    }
    if (request.headers.authorization !== authorization) {
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
    backend =
      options.redisUrl === undefined
        ? openMemoryBackend(clock.now, options.file)
        : await openRealBackend(options.redisUrl)
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

function advance(clock: AdjustableClock, body: Buffer, response: ServerResponse): void {
  const milliseconds = readAdvance(body)
  if (milliseconds === undefined) {
    sendJson(response, 400, { error: 'expected {"milliseconds": n}' })
    return
  }
  clock.advance(milliseconds)
  sendJson(response, 200, { now: clock.now() })
}
