import { atLeast, between, type CommandTable, exactly } from './command.ts'
import type { Keyspace } from './keyspace.ts'
import { parseIndexRange, parseInteger, sliceOf } from './numbers.ts'
import { INDEX_OUT_OF_RANGE, NO_SUCH_KEY, OK, RedisError, type Reply, SYNTAX_ERROR } from './reply.ts'

type Side = 'LEFT' | 'RIGHT'

/** Commands on lists; the blocking ones are left out, as Upstash's REST interface has none. */
export const listCommands: CommandTable = {
  LPUSH: atLeast(2, (keyspace, [key = '', ...added]) => push(keyspace, key, 'LEFT', added)),
  RPUSH: atLeast(2, (keyspace, [key = '', ...added]) => push(keyspace, key, 'RIGHT', added)),
  LPUSHX: atLeast(2, (keyspace, [key = '', ...added]) => pushIfPresent(keyspace, key, 'LEFT', added)),
  RPUSHX: atLeast(2, (keyspace, [key = '', ...added]) => pushIfPresent(keyspace, key, 'RIGHT', added)),
  LPOP: between(1, 2, (keyspace, [key = '', count]) => pop(keyspace, key, 'LEFT', count)),
  RPOP: between(1, 2, (keyspace, [key = '', count]) => pop(keyspace, key, 'RIGHT', count)),
  LLEN: exactly(1, (keyspace, [key = '']) => keyspace.get(key, 'list')?.length ?? 0),
  LRANGE: exactly(3, (keyspace, [key = '', start = '', stop = '']) => {
    const range = parseIndexRange(start, stop)
    const items = keyspace.get(key, 'list') ?? []
    return items.slice(...sliceOf(items.length, range))
  }),
  LTRIM: exactly(3, (keyspace, [key = '', start = '', stop = '']) => {
    const range = parseIndexRange(start, stop)
    const items = keyspace.get(key, 'list')
    if (items !== undefined) replaceItems(items, items.slice(...sliceOf(items.length, range)))
    keyspace.settle(key)
    return OK
  }),
  LINDEX: exactly(2, (keyspace, [key = '', index = '']) => {
    const items = keyspace.get(key, 'list')
    return items?.at(parseInteger(index)) ?? null
  }),
  LSET: exactly(3, (keyspace, [key = '', index = '', item = '']) => {
    const items = keyspace.get(key, 'list')
    if (items === undefined) throw new RedisError(NO_SUCH_KEY)
    const position = parseInteger(index)
    const offset = position < 0 ? items.length + position : position
    if (offset < 0 || offset >= items.length) throw new RedisError(INDEX_OUT_OF_RANGE)
    items[offset] = item
    return OK
  }),
  LREM: exactly(3, removeItems),
  RPOPLPUSH: exactly(2, (keyspace, [from = '', to = '']) => move(keyspace, from, to, 'RIGHT', 'LEFT')),
  LMOVE: exactly(4, (keyspace, [from = '', to = '', take = '', give = '']) =>
    move(keyspace, from, to, readSide(take), readSide(give)),
  ),
}

function push(keyspace: Keyspace, key: string, side: Side, added: string[]): number {
  const items = keyspace.obtain(key, 'list')
  if (side === 'LEFT') replaceItems(items, [...added.toReversed(), ...items])
  else for (const item of added) items.push(item)
  return items.length
}

function pushIfPresent(keyspace: Keyspace, key: string, side: Side, added: string[]): number {
  return keyspace.get(key, 'list') === undefined ? 0 : push(keyspace, key, side, added)
}

function pop(keyspace: Keyspace, key: string, side: Side, count: string | undefined): Reply {
  const wanted = count === undefined ? 1 : parseInteger(count, 'ERR value is out of range, must be positive')
  if (wanted < 0) throw new RedisError('ERR value is out of range, must be positive')
  const items = keyspace.get(key, 'list')
  if (items === undefined) return null
  const taken: string[] = []
  while (taken.length < wanted && items.length > 0) {
    taken.push((side === 'LEFT' ? items.shift() : items.pop()) ?? '')
  }
  keyspace.settle(key)
  return count === undefined ? (taken[0] ?? null) : taken
}

function move(keyspace: Keyspace, from: string, to: string, take: Side, give: Side): Reply {
  const source = keyspace.get(from, 'list')
  if (source === undefined) return null
  keyspace.get(to, 'list')
  const item = (take === 'LEFT' ? source.shift() : source.pop()) ?? ''
  push(keyspace, to, give, [item])
  // Only now, since source and target may be the same list of one item.
  keyspace.settle(from)
  return item
}

function readSide(text: string): Side {
  const side = text.toUpperCase()
  if (side !== 'LEFT' && side !== 'RIGHT') throw new RedisError(SYNTAX_ERROR)
  return side
}

function removeItems(keyspace: Keyspace, [key = '', count = '', item = '']: string[]): Reply {
  const wanted = parseInteger(count)
  const items = keyspace.get(key, 'list')
  if (items === undefined) return 0
  const limit = wanted === 0 ? Infinity : Math.abs(wanted)
  let removed = 0
  const keep = (candidate: string): boolean => candidate !== item || removed === limit || ++removed < 0
  const kept = wanted < 0 ? items.toReversed().filter(keep).toReversed() : items.filter(keep)
  replaceItems(items, kept)
  keyspace.settle(key)
  return removed
}

/** Not `splice(0, length, ...kept)`: the number of arguments of a call is limited. */
function replaceItems(items: string[], kept: string[]): void {
  items.length = 0
  for (const item of kept) items.push(item)
}
