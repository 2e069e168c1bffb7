import { Redis, ReplyError } from 'ioredis'
import { OptionError } from '../start-error.ts'
import type { RedisBackend } from './backend.ts'
import { RedisError, type Reply } from './reply.ts'

/** How long the first connection may take, in milliseconds. */
const CONNECT_TIMEOUT_MS = 5_000

/** Called when Redis cannot be reached any more, with the reason, and when it can again. */
type Report = (state: { away: string } | 'reached') => void

/**
 * Puts a real Redis behind the REST front. A connection that is lost is made again.
 *
 * @param url `redis://…` or `rediss://…`
 * @param report makes it start also while Redis is away: commands fail until it comes. Without it, there has to be a Redis
 * @throws OptionError if it is no such URL; the connection error if there is no Redis, or one that refuses the password
 */
export async function openRealBackend(url: string, report?: Report): Promise<RedisBackend> {
  if (!URL.canParse(url) || !/^rediss?:/.test(url))
    throw new OptionError('Redis needs a redis:// or rediss:// URL')
  const client = new Redis(url, {
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    maxRetriesPerRequest: 1,
    // Version 3 would send scores as numbers and hashes as maps, which Upstash's interface lacks.
    protocol: 2,
  })
  let lastError: Error | undefined
  let isReached = true
  client.on('error', (error: Error) => {
    lastError = error
    // Every further attempt fails in the same way.
    if (isReached) report?.({ away: error.message })
    isReached = false
  })
  client.on('ready', () => {
    if (!isReached) report?.('reached')
    isReached = true
  })
  try {
    await client.connect()
  } catch (error) {
    const reason = lastError ?? error
    // A server that refuses the password will not change its mind.
    if (report === undefined || reason instanceof ReplyError) {
      client.disconnect()
      throw reason
    }
  }
  return {
    async run(words) {
      const [name, ...rest] = encode(words)
      // Upper-case names keep ioredis from reshaping replies (HGETALL would become an object).
      return toReply(await client.callBuffer(name, ...rest).catch(rethrow))
    },
    async close() {
      client.disconnect()
    },
  }
}

function encode([name = '', ...rest]: string[]): [name: string, ...rest: Buffer[]] {
  return [name.toUpperCase(), ...rest.map((word) => Buffer.from(word, 'latin1'))]
}

/** Errors that Redis sent become RedisError; a lost connection stays what it is. */
function rethrow(error: Error): never {
  throw error instanceof ReplyError ? new RedisError(error.message) : error
}

function toReply(value: unknown): Reply {
  if (value === null || value === undefined) return null
  if (Buffer.isBuffer(value)) return (value as Buffer).toString('latin1')
  if (Array.isArray(value)) return value.map(toReply)
  return Number(value)
}
