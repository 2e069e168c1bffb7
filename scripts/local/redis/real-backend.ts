import { Redis, ReplyError } from 'ioredis'
import { OptionError } from '../stand-in-process.ts'
import type { RedisBackend } from './backend.ts'
import { RedisError, type Reply } from './reply.ts'

/** How long the first connection may take, in milliseconds. */
const CONNECT_TIMEOUT_MS = 5_000

/**
 * Puts a real Redis behind the REST front.
 *
 * @param url `redis://…` or `rediss://…`
 * @throws OptionError if it is no such URL; the connection error if there is no Redis
 */
export async function openRealBackend(url: string): Promise<RedisBackend> {
  if (!URL.canParse(url) || !/^rediss?:/.test(url))
    throw new OptionError('--redis-url must be a redis:// URL')
  const client = new Redis(url, {
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    maxRetriesPerRequest: 1,
    // Version 3 would send scores as numbers and hashes as maps, which Upstash's interface does not know.
    protocol: 2,
    // Integers then arrive as strings and bulk strings as buffers, which tells them apart and keeps 64 bits.
    stringNumbers: true,
  })
  let lastError: Error | undefined
  client.on('error', (error: Error) => {
    lastError = error
  })
  try {
    await client.connect()
  } catch (error) {
    client.disconnect()
    throw lastError ?? error
  }
  return {
    async run(words) {
      const [name, ...rest] = encode(words)
      // Upper-case names keep ioredis from reshaping replies (HGETALL would become an object).
      return toReply(await client.callBuffer(name, ...rest).catch(rethrow))
    },
    async transaction(commands) {
      const transaction = client.multi({ pipeline: true })
      for (const words of commands) {
        const [name, ...rest] = encode(words)
        transaction.callBuffer(name, ...rest)
      }
      const results = (await transaction.exec().catch(rethrow)) as [Error | null, unknown][] | null
      return (results ?? []).map(([error, value]) => (error === null ? toReply(value) : resultError(error)))
    },
    async close() {
      client.disconnect()
    },
  }
}

function encode([name = '', ...rest]: string[]): [name: string, ...rest: Buffer[]] {
  return [name.toUpperCase(), ...rest.map((word) => Buffer.from(word, 'latin1'))]
}

function rethrow(error: Error): never {
  throw asRedisError(error)
}

/** The error of one command of a transaction; anything but Redis' own answer ends the request. */
function resultError(error: Error): RedisError {
  const known = asRedisError(error)
  if (known instanceof RedisError) return known
  throw known
}

/** Errors that Redis sent become RedisError; a lost connection stays what it is. */
function asRedisError(error: Error): Error {
  return error instanceof ReplyError ? new RedisError(error.message) : error
}

function toReply(value: unknown): Reply {
  if (value === null || value === undefined) return null
  if (Buffer.isBuffer(value)) return (value as Buffer).toString('latin1')
  if (Array.isArray(value)) return value.map(toReply)
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : BigInt(String(value))
}
