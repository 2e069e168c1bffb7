// The process of what the gateway needs: Postgres and Redis behind the protocols that it speaks, the message queue, and content.
import type { PoolConfig } from 'pg'
import { S3Objects } from '../node/content-store/s3-objects.ts'
import { serveContent, startContentStore } from '../node/content-store/server.ts'
import type { RunningServer } from '../node/loopback-server.ts'
import { openRealPostgres } from '../node/postgres/real-backend.ts'
import { startSqlServer } from '../node/postgres/server.ts'
import { startQueue } from '../node/qstash/server.ts'
import { openRealBackend } from '../node/redis/real-backend.ts'
import { startRedisServer } from '../node/redis/server.ts'
import { claimContent } from './content-claim.ts'
import { deadLetterFields } from './dead-letter.ts'
import { log } from './log.ts'
import { linkToParent } from './parent-link.ts'
import type { ContentPlace } from './settings.ts'

export interface ServicesSettings {
  /** Ports on 127.0.0.1, 0 for any free one. */
  ports: ServicePorts
  database: PoolConfig
  /** Password of the gateway for SQL over HTTP. */
  sqlPassword: string
  redisUrl: string
  redisToken: string
  queue: { token: string; currentSigningKey: string; nextSigningKey: string; file: string }
  /** The public origin, whose deliveries go to the gateway's own port. */
  origin: string
  gatewayPort: number
  content: ContentPlace
  contentSocket: string
}

export interface ServicePorts {
  postgres: number
  redis: number
  queue: number
}

linkToParent(async (settings: ServicesSettings) => {
  const { ports, database, queue: queueSettings } = settings
  const [postgres, redis, queue] = await Promise.all([
    startSqlServer({
      port: ports.postgres,
      password: settings.sqlPassword,
      open: () => openRealPostgres(database),
    }),
    startRedisServer({
      port: ports.redis,
      token: settings.redisToken,
      open: () => openRealBackend(settings.redisUrl, reportRedis),
    }),
    startQueue({
      ...queueSettings,
      port: ports.queue,
      route: { origin: settings.origin, port: settings.gatewayPort },
      isPaused: true,
      onDeadLetter: (letter) => log('error', 'dead_letter', deadLetterFields(letter)),
    }),
    startContent(settings),
  ])
  const ready: ServicePorts = { postgres: postgres.port, redis: redis.port, queue: queue.port }
  return {
    ready: { ...ready },
    answer: async ({ pauseMs, resume }) => {
      if (resume === true) queue.resume()
      if (typeof pauseMs === 'number') await queue.pause(pauseMs)
    },
  }
})

/** Limits count without Redis, and its loss must not end the way to the database. */
function reportRedis(state: { away: string } | 'reached'): void {
  if (state === 'reached') log('info', 'redis_reached')
  else log('error', 'redis_away', { reason: state.away })
}

function startContent({ content, contentSocket }: ServicesSettings): Promise<RunningServer> {
  if ('folder' in content)
    return startContentStore({ folder: content.folder, socketPath: contentSocket, claim: claimContent })
  const report = (reason: string): void => log('error', 'content_store_failed', { reason })
  return serveContent(new S3Objects(content, report), contentSocket)
}
