import { atLeast, between, type CommandTable, exactly, scanPage } from './command.ts'
import type { Keyspace } from './keyspace.ts'
import { parseInteger } from './numbers.ts'
import { RedisError, type Reply } from './reply.ts'

type Combine = (keyspace: Keyspace, keys: string[]) => Set<string>

/** Commands on sets. */
export const setCommands: CommandTable = {
  SADD: atLeast(2, (keyspace, [key = '', ...added]) => {
    const members = keyspace.obtain(key, 'set')
    const before = members.size
    for (const member of added) members.add(member)
    return members.size - before
  }),
  SREM: atLeast(2, (keyspace, [key = '', ...removed]) => {
    const members = keyspace.get(key, 'set')
    const count = removed.filter((member) => members?.delete(member)).length
    keyspace.settle(key)
    return count
  }),
  SMEMBERS: exactly(1, (keyspace, [key = '']) => [...(keyspace.get(key, 'set') ?? [])]),
  SCARD: exactly(1, (keyspace, [key = '']) => keyspace.get(key, 'set')?.size ?? 0),
  SISMEMBER: exactly(2, (keyspace, [key = '', member = '']) =>
    Number(keyspace.get(key, 'set')?.has(member) ?? false),
  ),
  SMISMEMBER: atLeast(2, (keyspace, [key = '', ...asked]) => {
    const members = keyspace.get(key, 'set')
    return asked.map((member) => Number(members?.has(member) ?? false))
  }),
  SPOP: between(1, 2, (keyspace, [key = '', count]) => {
    const members = keyspace.get(key, 'set')
    const taken = pick(members, count)
    for (const member of taken) members?.delete(member)
    keyspace.settle(key)
    return count === undefined ? (taken[0] ?? null) : taken
  }),
  SRANDMEMBER: between(1, 2, (keyspace, [key = '', count]) => {
    const taken = pick(keyspace.get(key, 'set'), count)
    return count === undefined ? (taken[0] ?? null) : taken
  }),
  SMOVE: exactly(3, (keyspace, [from = '', to = '', member = '']) => {
    const source = keyspace.get(from, 'set')
    // The target's type matters even if there is nothing to move, but not if there is no source.
    if (source === undefined) return 0
    keyspace.get(to, 'set')
    if (from === to) return Number(source.has(member))
    if (!source.delete(member)) return 0
    keyspace.settle(from)
    keyspace.obtain(to, 'set').add(member)
    return 1
  }),
  SUNION: atLeast(1, (keyspace, keys) => [...union(keyspace, keys)]),
  SINTER: atLeast(1, (keyspace, keys) => [...intersection(keyspace, keys)]),
  SDIFF: atLeast(1, (keyspace, keys) => [...difference(keyspace, keys)]),
  SUNIONSTORE: atLeast(2, (keyspace, words) => storeResult(keyspace, words, union)),
  SINTERSTORE: atLeast(2, (keyspace, words) => storeResult(keyspace, words, intersection)),
  SDIFFSTORE: atLeast(2, (keyspace, words) => storeResult(keyspace, words, difference)),
  SSCAN: atLeast(2, (keyspace, [key = '', , ...options]) =>
    scanPage([...(keyspace.get(key, 'set') ?? [])], options, (member) => [member]),
  ),
}

/** Members in stored order: "random" is allowed to be predictable. A negative count may repeat members. */
function pick(members: Set<string> | undefined, count: string | undefined): string[] {
  const wanted = count === undefined ? 1 : parseInteger(count)
  const all = [...(members ?? [])]
  if (wanted >= 0) return all.slice(0, wanted)
  if (all.length === 0) return []
  return Array.from({ length: -wanted }, (_, index) => all[index % all.length] ?? '')
}

function readSets(keyspace: Keyspace, keys: string[]): Set<string>[] {
  return keys.map((key) => keyspace.get(key, 'set') ?? new Set())
}

function union(keyspace: Keyspace, keys: string[]): Set<string> {
  return new Set(readSets(keyspace, keys).flatMap((members) => [...members]))
}

function intersection(keyspace: Keyspace, keys: string[]): Set<string> {
  const [first, ...others] = readSets(keyspace, keys)
  return new Set([...(first ?? [])].filter((member) => others.every((members) => members.has(member))))
}

function difference(keyspace: Keyspace, keys: string[]): Set<string> {
  const [first, ...others] = readSets(keyspace, keys)
  return new Set([...(first ?? [])].filter((member) => !others.some((members) => members.has(member))))
}

function storeResult(keyspace: Keyspace, [target, ...keys]: string[], combine: Combine): Reply {
  if (target === undefined) throw new RedisError('ERR syntax error')
  const members = combine(keyspace, keys)
  keyspace.put(target, 'set', members)
  keyspace.settle(target)
  return members.size
}
