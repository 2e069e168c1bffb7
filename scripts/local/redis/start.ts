import type { IncomingMessage, ServerResponse } from 'node:http'
import { type RunningServer, readBody, sendJson } from '../../node/loopback-server.ts'
import { openRealBackend } from '../../node/redis/real-backend.ts'
import { startRedisServer } from '../../node/redis/server.ts'
import { AdjustableClock, readAdvance } from '../adjustable-clock.ts'
import { openMemoryBackend } from './memory-store.ts'

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

const ADVANCE_LIMIT = 1_024

/**
 * Starts the stand-in for Upstash Redis: its REST interface over a store in memory or over a real Redis.
 *
 * @throws `EADDRINUSE` for a port in use, OptionError for a file in use or a malformed URL
 */
export function startRedis(options: RedisOptions = {}): Promise<RunningServer> {
  const { port, token = 'local', file, redisUrl, clock = new AdjustableClock() } = options
  return startRedisServer({
    ...(port !== undefined && { port }),
    token,
    open: async () =>
      redisUrl === undefined ? openMemoryBackend(clock.now, file) : openRealBackend(redisUrl),
    control: async (request, response) => {
      if (options.control !== true || request.url !== '/control/advance') return false
      await advance(clock, request, response)
      return true
    },
  })
}

async function advance(clock: AdjustableClock, request: IncomingMessage, response: ServerResponse) {
  const milliseconds = readAdvance(await readBody(request, ADVANCE_LIMIT))
  if (milliseconds === undefined) {
    sendJson(response, 400, { error: 'expected {"milliseconds": n}' })
    return
  }
  clock.advance(milliseconds)
  sendJson(response, 200, { now: clock.now() })
}
