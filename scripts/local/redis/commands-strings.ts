import { atLeast, type CommandTable, exactly, pairs, word, wrongArgumentCount } from './command.ts'
import type { Keyspace } from './keyspace.ts'
import { addLongDoubles } from './long-double.ts'
import { integerReply, isInt64, parseFloat64, parseInt64, parseInteger } from './numbers.ts'
import { NOT_A_FLOAT, NOT_AN_INTEGER, OK, RedisError, type Reply, SYNTAX_ERROR } from './reply.ts'

/** Redis' own limit for a string, in bytes. */
const MAX_STRING_LENGTH = 512 * 1024 * 1024

interface SetOptions {
  condition: 'NX' | 'XX' | undefined
  get: boolean
  keepExpiry: boolean
  expiresAt: number | undefined
}

/** Commands on strings. */
export const stringCommands: CommandTable = {
  GET: exactly(1, (keyspace, [key = '']) => keyspace.get(key, 'string') ?? null),
  SET: atLeast(2, setCommand),
  SETNX: exactly(2, (keyspace, [key = '', value = '']) => {
    if (keyspace.has(key)) return 0
    keyspace.put(key, 'string', value)
    return 1
  }),
  SETEX: exactly(3, (keyspace, [key = '', seconds = '', value = '']) =>
    putWithExpiry(keyspace, key, value, expiryTime(keyspace, 'EX', seconds, 'setex')),
  ),
  PSETEX: exactly(3, (keyspace, [key = '', milliseconds = '', value = '']) =>
    putWithExpiry(keyspace, key, value, expiryTime(keyspace, 'PX', milliseconds, 'psetex')),
  ),
  GETSET: exactly(2, (keyspace, [key = '', value = '']) => {
    const previous = keyspace.get(key, 'string') ?? null
    keyspace.put(key, 'string', value)
    return previous
  }),
  GETDEL: exactly(1, (keyspace, [key = '']) => {
    const value = keyspace.get(key, 'string') ?? null
    keyspace.delete(key)
    return value
  }),
  GETEX: atLeast(1, getAndExpire),
  APPEND: exactly(2, (keyspace, [key = '', tail = '']) => {
    const value = (keyspace.get(key, 'string') ?? '') + tail
    keyspace.put(key, 'string', value, true)
    return value.length
  }),
  STRLEN: exactly(1, (keyspace, [key = '']) => keyspace.get(key, 'string')?.length ?? 0),
  GETRANGE: exactly(3, getRange),
  SETRANGE: exactly(3, setRange),
  MGET: atLeast(1, (keyspace, keys) =>
    keys.map((key) => (keyspace.kindOf(key) === 'string' ? (keyspace.get(key, 'string') ?? null) : null)),
  ),
  MSET: atLeast(2, (keyspace, words) => {
    if (words.length % 2 !== 0) throw wrongArgumentCount('mset')
    for (const [key, value] of pairs(words)) keyspace.put(key, 'string', value)
    return OK
  }),
  MSETNX: atLeast(2, (keyspace, words) => {
    if (words.length % 2 !== 0) throw wrongArgumentCount('msetnx')
    if (pairs(words).some(([key]) => keyspace.has(key))) return 0
    for (const [key, value] of pairs(words)) keyspace.put(key, 'string', value)
    return 1
  }),
  INCR: exactly(1, (keyspace, [key = '']) => increment(keyspace, key, 1n)),
  DECR: exactly(1, (keyspace, [key = '']) => increment(keyspace, key, -1n)),
  INCRBY: exactly(2, (keyspace, [key = '', amount = '']) => increment(keyspace, key, parseInt64(amount))),
  DECRBY: exactly(2, (keyspace, [key = '', amount = '']) => {
    const by = -parseInt64(amount)
    if (!isInt64(by)) throw new RedisError('ERR decrement would overflow')
    return increment(keyspace, key, by)
  }),
  INCRBYFLOAT: exactly(2, (keyspace, [key = '', amount = '']) => {
    const current = keyspace.get(key, 'string')
    const sum = addFloats(current, amount)
    keyspace.put(key, 'string', sum, true)
    return sum
  }),
}

/**
 * Adds an integer to the text of a counter.
 *
 * @throws RedisError if the counter is no 64-bit integer or would leave that range
 */
export function addIntegers(current: string | undefined, by: bigint, notAnInteger = NOT_AN_INTEGER): bigint {
  const sum = parseInt64(current ?? '0', notAnInteger) + by
  if (!isInt64(sum)) throw new RedisError('ERR increment or decrement would overflow')
  return sum
}

/**
 * Adds a float to the text of a counter.
 *
 * @throws RedisError if one of the two is no number or the sum is infinite
 */
export function addFloats(current = '0', amount = '0', notAFloat = NOT_A_FLOAT): string {
  const areFinite = [parseFloat64(current, notAFloat), parseFloat64(amount)].every(Number.isFinite)
  const sum = areFinite ? addLongDoubles(current, amount) : undefined
  if (sum === undefined) throw new RedisError('ERR increment would produce NaN or Infinity')
  return sum
}

/**
 * Reads an expiry as EX, PX, EXAT or PXAT give it.
 *
 * @returns milliseconds since 1970
 * @throws RedisError if it is zero, negative or no integer
 */
export function expiryTime(keyspace: Keyspace, unit: string, amount: string, command: string): number {
  const value = parseInteger(amount)
  if (value <= 0) throw new RedisError(`ERR invalid expire time in '${command}' command`)
  const milliseconds = unit.startsWith('EX') ? value * 1000 : value
  return unit.endsWith('AT') ? milliseconds : keyspace.now() + milliseconds
}

function putWithExpiry(keyspace: Keyspace, key: string, value: string, expiresAt: number): Reply {
  keyspace.put(key, 'string', value)
  keyspace.setExpiry(key, expiresAt)
  return OK
}

function setCommand(keyspace: Keyspace, [key = '', value = '', ...words]: string[]): Reply {
  const options = readSetOptions(keyspace, words)
  const previous = options.get ? (keyspace.get(key, 'string') ?? null) : null
  const present = keyspace.has(key)
  if ((options.condition === 'NX' && present) || (options.condition === 'XX' && !present)) return previous
  keyspace.put(key, 'string', value, options.keepExpiry)
  if (options.expiresAt !== undefined) keyspace.setExpiry(key, options.expiresAt)
  return options.get ? previous : OK
}

function readSetOptions(keyspace: Keyspace, words: string[]): SetOptions {
  const options: SetOptions = { condition: undefined, get: false, keepExpiry: false, expiresAt: undefined }
  let lifetimes = 0
  let lifetime: [unit: string, amount: string] | undefined
  for (let index = 0; index < words.length; index++) {
    const option = word(words, index).toUpperCase()
    if (option === 'NX' || option === 'XX') {
      if (options.condition !== undefined && options.condition !== option) throw new RedisError(SYNTAX_ERROR)
      options.condition = option
    } else if (option === 'GET') options.get = true
    else if (option === 'KEEPTTL') {
      options.keepExpiry = true
      lifetimes++
    } else if (/^(EX|PX)(AT)?$/.test(option)) {
      lifetime = [option, word(words, ++index)]
      lifetimes++
    } else throw new RedisError(SYNTAX_ERROR)
  }
  if (lifetimes > 1) throw new RedisError(SYNTAX_ERROR)
  if (lifetime !== undefined) options.expiresAt = expiryTime(keyspace, ...lifetime, 'set')
  return options
}

function getAndExpire(keyspace: Keyspace, [key = '', option, amount, ...rest]: string[]): Reply {
  const unit = option?.toUpperCase()
  if (unit !== undefined && (unit === 'PERSIST') !== (amount === undefined))
    throw new RedisError(SYNTAX_ERROR)
  if (rest.length > 0 || (unit !== undefined && !/^(PERSIST|(EX|PX)(AT)?)$/.test(unit))) {
    throw new RedisError(SYNTAX_ERROR)
  }
  const value = keyspace.get(key, 'string')
  if (value === undefined) return null
  if (unit === 'PERSIST') keyspace.setExpiry(key, null)
  else if (unit !== undefined) keyspace.setExpiry(key, expiryTime(keyspace, unit, amount ?? '', 'getex'))
  return value
}

/** Unlike the ranges of lists, an end before the start of the string means its first byte. */
function getRange(keyspace: Keyspace, [key = '', startText = '', endText = '']: string[]): Reply {
  const start = parseInteger(startText)
  const end = parseInteger(endText)
  const value = keyspace.get(key, 'string') ?? ''
  if (start < 0 && end < 0 && start > end) return ''
  const from = start < 0 ? Math.max(0, value.length + start) : start
  const to = end < 0 ? Math.max(0, value.length + end) : end
  return value.slice(from, to + 1)
}

function setRange(keyspace: Keyspace, [key = '', offsetText = '', patch = '']: string[]): Reply {
  const offset = parseInteger(offsetText)
  if (offset < 0) throw new RedisError('ERR offset is out of range')
  const value = keyspace.get(key, 'string') ?? ''
  if (patch === '') return value.length
  if (offset + patch.length > MAX_STRING_LENGTH) {
    throw new RedisError('ERR string exceeds maximum allowed size (proto-max-bulk-len)')
  }
  const patched = value.padEnd(offset, '\0').slice(0, offset) + patch + value.slice(offset + patch.length)
  keyspace.put(key, 'string', patched, true)
  return patched.length
}

function increment(keyspace: Keyspace, key: string, by: bigint): Reply {
  const sum = addIntegers(keyspace.get(key, 'string'), by)
  keyspace.put(key, 'string', sum.toString(), true)
  return integerReply(sum)
}
