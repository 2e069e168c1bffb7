import { atLeast, between, type CommandTable, exactly, globPattern, scanPage } from './command.ts'
import type { Keyspace } from './keyspace.ts'
import { parseInteger } from './numbers.ts'
import { NO_SUCH_KEY, OK, RedisError, type Reply, StatusReply, SYNTAX_ERROR } from './reply.ts'

/** Commands on keys of any type, and the few about the server. */
export const keyCommands: CommandTable = {
  PING: between(0, 1, (_keyspace, [text]) => text ?? new StatusReply('PONG')),
  ECHO: exactly(1, (_keyspace, [text = '']) => text),
  TIME: exactly(0, (keyspace) => {
    const now = keyspace.now()
    return [String(Math.floor(now / 1000)), String(Math.floor((now % 1000) * 1000))]
  }),
  DBSIZE: exactly(0, (keyspace) => keyspace.keys().length),
  FLUSHALL: between(0, 1, flush),
  FLUSHDB: between(0, 1, flush),
  DEL: atLeast(1, (keyspace, keys) => keys.filter((key) => keyspace.delete(key)).length),
  UNLINK: atLeast(1, (keyspace, keys) => keys.filter((key) => keyspace.delete(key)).length),
  EXISTS: atLeast(1, (keyspace, keys) => keys.filter((key) => keyspace.has(key)).length),
  TOUCH: atLeast(1, (keyspace, keys) => keys.filter((key) => keyspace.has(key)).length),
  TYPE: exactly(1, (keyspace, [key = '']) => new StatusReply(keyspace.kindOf(key) ?? 'none')),
  RENAME: exactly(2, (keyspace, [from = '', to = '']) => {
    if (!keyspace.has(from)) throw new RedisError(NO_SUCH_KEY)
    keyspace.rename(from, to)
    return OK
  }),
  RENAMENX: exactly(2, (keyspace, [from = '', to = '']) => {
    if (!keyspace.has(from)) throw new RedisError(NO_SUCH_KEY)
    if (keyspace.has(to)) return 0
    keyspace.rename(from, to)
    return 1
  }),
  EXPIRE: atLeast(2, (keyspace, words) => expire(keyspace, words, (time) => keyspace.now() + time * 1000)),
  PEXPIRE: atLeast(2, (keyspace, words) => expire(keyspace, words, (time) => keyspace.now() + time)),
  EXPIREAT: atLeast(2, (keyspace, words) => expire(keyspace, words, (time) => time * 1000)),
  PEXPIREAT: atLeast(2, (keyspace, words) => expire(keyspace, words, (time) => time)),
  PERSIST: exactly(1, (keyspace, [key = '']) => {
    const expires = typeof keyspace.expiryOf(key) === 'number'
    if (expires) keyspace.setExpiry(key, null)
    return Number(expires)
  }),
  PTTL: exactly(1, (keyspace, [key = '']) => remaining(keyspace, key)),
  TTL: exactly(1, (keyspace, [key = '']) => {
    const milliseconds = remaining(keyspace, key)
    return milliseconds < 0 ? milliseconds : Math.floor((milliseconds + 500) / 1000)
  }),
  PEXPIRETIME: exactly(1, (keyspace, [key = '']) => expiryTimeReply(keyspace.expiryOf(key), 1)),
  EXPIRETIME: exactly(1, (keyspace, [key = '']) => expiryTimeReply(keyspace.expiryOf(key), 1000)),
  KEYS: exactly(1, (keyspace, [glob = '']) => {
    const pattern = globPattern(glob)
    return keyspace.keys().filter((key) => pattern.test(key))
  }),
  SCAN: atLeast(1, scan),
}

function flush(keyspace: Keyspace, [mode]: string[]): Reply {
  if (mode !== undefined && !/^(a?sync)$/i.test(mode)) throw new RedisError(SYNTAX_ERROR)
  keyspace.clear()
  return OK
}

function expire(
  keyspace: Keyspace,
  [key = '', time = '', ...options]: string[],
  toExpiry: (time: number) => number,
): Reply {
  const conditions = readExpireConditions(options)
  const expiresAt = toExpiry(parseInteger(time))
  const current = keyspace.expiryOf(key)
  if (current === undefined) return 0
  // A key without expiry counts as one that lives for ever.
  const compared = current ?? Number.POSITIVE_INFINITY
  const isRefused =
    (conditions.has('NX') && current !== null) ||
    (conditions.has('XX') && current === null) ||
    (conditions.has('GT') && expiresAt <= compared) ||
    (conditions.has('LT') && expiresAt >= compared)
  if (isRefused) return 0
  keyspace.setExpiry(key, expiresAt)
  return 1
}

function readExpireConditions(options: string[]): Set<string> {
  const conditions = new Set<string>()
  for (const option of options) {
    if (!/^(NX|XX|GT|LT)$/i.test(option)) throw new RedisError(`ERR Unsupported option ${option}`)
    conditions.add(option.toUpperCase())
  }
  if (conditions.has('NX') && conditions.size > 1) {
    throw new RedisError('ERR NX and XX, GT or LT options at the same time are not compatible')
  }
  if (conditions.has('GT') && conditions.has('LT')) {
    throw new RedisError('ERR GT and LT options at the same time are not compatible')
  }
  return conditions
}

function remaining(keyspace: Keyspace, key: string): number {
  const expiresAt = keyspace.expiryOf(key)
  if (expiresAt === undefined) return -2
  return expiresAt === null ? -1 : Math.round(expiresAt - keyspace.now())
}

function expiryTimeReply(expiresAt: number | null | undefined, unit: number): number {
  if (expiresAt === undefined) return -2
  return expiresAt === null ? -1 : Math.floor(expiresAt / unit)
}

function scan(keyspace: Keyspace, [cursor = '', ...options]: string[]): Reply {
  if (!/^\d+$/.test(cursor)) throw new RedisError('ERR invalid cursor')
  const typeAt = options.findIndex((option, index) => index % 2 === 0 && option.toUpperCase() === 'TYPE')
  const kind = typeAt < 0 ? undefined : options[typeAt + 1]?.toLowerCase()
  const keys = keyspace.keys().filter((key) => kind === undefined || keyspace.kindOf(key) === kind)
  return scanPage(keys, options, (key) => [key])
}
