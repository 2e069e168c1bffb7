import { atLeast, type CommandTable, exactly, pairs, scanPage, wrongArgumentCount } from './command.ts'
import { addFloats, addIntegers } from './commands-strings.ts'
import type { Keyspace } from './keyspace.ts'
import { integerReply, parseFloat64, parseInt64 } from './numbers.ts'
import { OK, RedisError } from './reply.ts'

/** Commands on hashes. */
export const hashCommands: CommandTable = {
  HSET: atLeast(3, (keyspace, words) => setFields(keyspace, 'hset', words)),
  HMSET: atLeast(3, (keyspace, words) => {
    setFields(keyspace, 'hmset', words)
    return OK
  }),
  HSETNX: exactly(3, (keyspace, [key = '', field = '', value = '']) => {
    const fields = keyspace.obtain(key, 'hash')
    if (fields.has(field)) return 0
    fields.set(field, value)
    return 1
  }),
  HGET: exactly(2, (keyspace, [key = '', field = '']) => keyspace.get(key, 'hash')?.get(field) ?? null),
  HMGET: atLeast(2, (keyspace, [key = '', ...names]) => {
    const fields = keyspace.get(key, 'hash')
    return names.map((name) => fields?.get(name) ?? null)
  }),
  HGETALL: exactly(1, (keyspace, [key = '']) => [...(keyspace.get(key, 'hash') ?? [])].flat()),
  HKEYS: exactly(1, (keyspace, [key = '']) => [...(keyspace.get(key, 'hash')?.keys() ?? [])]),
  HVALS: exactly(1, (keyspace, [key = '']) => [...(keyspace.get(key, 'hash')?.values() ?? [])]),
  HLEN: exactly(1, (keyspace, [key = '']) => keyspace.get(key, 'hash')?.size ?? 0),
  HSTRLEN: exactly(
    2,
    (keyspace, [key = '', field = '']) => keyspace.get(key, 'hash')?.get(field)?.length ?? 0,
  ),
  HEXISTS: exactly(2, (keyspace, [key = '', field = '']) =>
    Number(keyspace.get(key, 'hash')?.has(field) ?? false),
  ),
  HDEL: atLeast(2, (keyspace, [key = '', ...names]) => {
    const fields = keyspace.get(key, 'hash')
    const removed = names.filter((name) => fields?.delete(name)).length
    keyspace.settle(key)
    return removed
  }),
  HINCRBY: exactly(3, (keyspace, [key = '', field = '', amount = '']) => {
    const by = parseInt64(amount)
    const sum = addIntegers(keyspace.get(key, 'hash')?.get(field), by, 'ERR hash value is not an integer')
    keyspace.obtain(key, 'hash').set(field, sum.toString())
    return integerReply(sum)
  }),
  HINCRBYFLOAT: exactly(3, (keyspace, [key = '', field = '', amount = '']) => {
    if (!Number.isFinite(parseFloat64(amount))) throw new RedisError('ERR value is NaN or Infinity')
    const sum = addFloats(keyspace.get(key, 'hash')?.get(field), amount, 'ERR hash value is not a float')
    keyspace.obtain(key, 'hash').set(field, sum)
    return sum
  }),
  HSCAN: atLeast(2, (keyspace, [key = '', , ...options]) => {
    const fields = keyspace.get(key, 'hash') ?? new Map<string, string>()
    return scanPage([...fields.keys()], options, (name) => [name, fields.get(name) ?? ''])
  }),
}

function setFields(keyspace: Keyspace, command: string, [key = '', ...words]: string[]): number {
  if (words.length % 2 !== 0) throw wrongArgumentCount(command)
  const fields = keyspace.obtain(key, 'hash')
  const before = fields.size
  for (const [field, value] of pairs(words)) fields.set(field, value)
  return fields.size - before
}
