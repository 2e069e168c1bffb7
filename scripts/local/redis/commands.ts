import { OK, RedisError, type Reply, StatusReply } from '../../node/redis/reply.ts'
import type { Keyspace } from './keyspace.ts'

/** A command: its number of arguments without the name, and its function. */
export interface Command {
  readonly min: number
  readonly max: number
  readonly run: (keyspace: Keyspace, words: string[]) => Reply
}

const SYNTAX_ERROR = 'ERR syntax error'

function command(min: number, max: number, run: Command['run']): Command {
  return { min, max, run }
}

const ANY = Number.POSITIVE_INFINITY

/**
 * The commands that the gateway, its tests and the scripts of `@upstash/ratelimit` use. All others are unknown to
 * the store in memory.
 */
export const COMMANDS: Record<string, Command> = {
  PING: command(0, 0, () => new StatusReply('PONG')),
  FLUSHALL: command(0, 0, (keyspace) => {
    keyspace.clear()
    return OK
  }),
  KEYS: command(1, 1, (keyspace, [pattern = '']) => matching(keyspace, pattern)),
  // All matches come in one page, which the protocol allows for any cursor and COUNT.
  SCAN: command(3, 3, (keyspace, [, option = '', pattern = '']) => {
    if (option.toUpperCase() !== 'MATCH') throw new RedisError(SYNTAX_ERROR)
    return ['0', matching(keyspace, pattern)]
  }),
  TYPE: command(1, 1, (keyspace, [key = '']) => new StatusReply(keyspace.kindOf(key) ?? 'none')),
  DEL: command(1, ANY, (keyspace, keys) => keys.filter((key) => keyspace.delete(key)).length),
  EXISTS: command(
    1,
    ANY,
    (keyspace, keys) => keys.filter((key) => keyspace.kindOf(key) !== undefined).length,
  ),
  EXPIRE: command(2, 2, (keyspace, [key = '', time = '']) =>
    expire(keyspace, key, readInteger(time) * 1_000),
  ),
  PEXPIRE: command(2, 2, (keyspace, [key = '', time = '']) => expire(keyspace, key, readInteger(time))),
  TTL: command(1, 1, (keyspace, [key = '']) => remaining(keyspace, key, 1_000)),
  PTTL: command(1, 1, (keyspace, [key = '']) => remaining(keyspace, key, 1)),
  GET: command(1, 1, (keyspace, [key = '']) => keyspace.get(key, 'string') ?? null),
  SET: command(2, ANY, set),
  INCR: command(1, 1, (keyspace, [key = '']) => increment(keyspace, key, 1)),
  INCRBY: command(2, 2, (keyspace, [key = '', by = '']) => increment(keyspace, key, readInteger(by))),
  HSET: command(3, ANY, setFields),
  HGET: command(2, 2, (keyspace, [key = '', field = '']) => keyspace.get(key, 'hash')?.get(field) ?? null),
  HMGET: command(2, ANY, (keyspace, [key = '', ...names]) => {
    const fields = keyspace.get(key, 'hash')
    return names.map((name) => fields?.get(name) ?? null)
  }),
  HGETALL: command(1, 1, (keyspace, [key = '']) => [...(keyspace.get(key, 'hash') ?? [])].flat()),
}

/** The error for a wrong number of arguments. */
export function wrongArgumentCount(name: string): RedisError {
  return new RedisError(`ERR wrong number of arguments for '${name.toLowerCase()}' command`)
}

/** @throws RedisError for anything but an integer that a number holds exactly */
export function readInteger(text: string): number {
  const value = Number(text)
  if (!/^(0|-?[1-9]\d*)$/.test(text) || !Number.isSafeInteger(value))
    throw new RedisError('ERR value is not an integer or out of range')
  return value
}

/** Keys that match a glob pattern. @throws RedisError for sets and escapes, which nothing here needs */
function matching(keyspace: Keyspace, glob: string): string[] {
  if (/[[\]\\]/.test(glob)) throw new RedisError('ERR the local store has only * and ? in patterns')
  const source = glob
    .replace(/[.+^${}()|/-]/g, '\\$&')
    .replace(/\*/g, '[^]*')
    .replace(/\?/g, '[^]')
  const pattern = new RegExp(`^${source}$`)
  return keyspace.keys().filter((key) => pattern.test(key))
}

function expire(keyspace: Keyspace, key: string, milliseconds: number): Reply {
  return Number(keyspace.setExpiry(key, keyspace.now() + milliseconds))
}

function remaining(keyspace: Keyspace, key: string, unit: number): Reply {
  const expiresAt = keyspace.expiryOf(key)
  if (expiresAt === undefined) return -2
  return expiresAt === null ? -1 : Math.round((expiresAt - keyspace.now()) / unit)
}

function set(keyspace: Keyspace, [key = '', value = '', ...words]: string[]): Reply {
  let condition: string | undefined
  let lifetime: { unit: number; text: string } | undefined
  for (let index = 0; index < words.length; index++) {
    const option = words[index]?.toUpperCase() ?? ''
    const text = words[index + 1]
    if ((option === 'NX' || option === 'XX') && condition === undefined) condition = option
    else if ((option === 'EX' || option === 'PX') && lifetime === undefined && text !== undefined) {
      lifetime = { unit: option === 'EX' ? 1_000 : 1, text }
      index++
    } else throw new RedisError(SYNTAX_ERROR)
  }
  const milliseconds = lifetime && readInteger(lifetime.text) * lifetime.unit
  if (milliseconds !== undefined && milliseconds <= 0)
    throw new RedisError("ERR invalid expire time in 'set' command")
  const exists = keyspace.kindOf(key) !== undefined
  if (condition !== undefined && exists !== (condition === 'XX')) return null
  keyspace.put(key, 'string', value)
  if (milliseconds !== undefined) keyspace.setExpiry(key, keyspace.now() + milliseconds)
  return OK
}

function increment(keyspace: Keyspace, key: string, by: number): Reply {
  const sum = readInteger(keyspace.get(key, 'string') ?? '0') + by
  if (!Number.isSafeInteger(sum)) throw new RedisError('ERR increment or decrement would overflow')
  keyspace.put(key, 'string', String(sum), true)
  return sum
}

function setFields(keyspace: Keyspace, [key = '', ...words]: string[]): Reply {
  if (words.length % 2 !== 0) throw wrongArgumentCount('hset')
  const fields = keyspace.get(key, 'hash') ?? new Map<string, string>()
  const before = fields.size
  for (let index = 0; index < words.length; index += 2) fields.set(words[index] ?? '', words[index + 1] ?? '')
  keyspace.put(key, 'hash', fields, true)
  return fields.size - before
}
