import { atLeast, type CommandTable, exactly, pairs, scanPage, word } from './command.ts'
import type { Keyspace } from './keyspace.ts'
import {
  formatFloat,
  parseFloat64,
  parseIndexRange,
  parseInteger,
  parseLimit,
  parseScoreBound,
  type ScoreBound,
  sliceOf,
} from './numbers.ts'
import { RedisError, type Reply, SYNTAX_ERROR } from './reply.ts'
import { storeUnion, unionCommand } from './sorted-set-union.ts'

type Scored = [member: string, score: number]

interface AddOptions {
  readonly nx: boolean
  readonly xx: boolean
  readonly gt: boolean
  readonly lt: boolean
  readonly changed: boolean
  readonly increment: boolean
}

/** Commands on sorted sets; ranges by member (BYLEX) are left out. */
export const sortedSetCommands: CommandTable = {
  ZADD: atLeast(3, add),
  ZINCRBY: exactly(3, (keyspace, [key = '', by = '', member = '']) =>
    add(keyspace, [key, 'INCR', by, member]),
  ),
  ZSCORE: exactly(2, (keyspace, [key = '', member = '']) =>
    scoreReply(keyspace.get(key, 'zset')?.get(member)),
  ),
  ZMSCORE: atLeast(2, (keyspace, [key = '', ...members]) => {
    const scores = keyspace.get(key, 'zset')
    return members.map((member) => scoreReply(scores?.get(member)))
  }),
  ZCARD: exactly(1, (keyspace, [key = '']) => keyspace.get(key, 'zset')?.size ?? 0),
  ZCOUNT: exactly(3, (keyspace, [key = '', min = '', max = '']) => byScore(keyspace, key, min, max).length),
  ZRANK: exactly(2, (keyspace, [key = '', member = '']) => rank(ordered(keyspace, key), member)),
  ZREVRANK: exactly(2, (keyspace, [key = '', member = '']) => rank(ordered(keyspace, key).reverse(), member)),
  ZRANGE: atLeast(3, (keyspace, [key = '', start = '', stop = '', ...options]) =>
    range(keyspace, key, start, stop, options),
  ),
  ZREVRANGE: atLeast(3, (keyspace, [key = '', start = '', stop = '', ...options]) =>
    range(keyspace, key, start, stop, ['REV', ...options]),
  ),
  ZRANGEBYSCORE: atLeast(3, (keyspace, [key = '', min = '', max = '', ...options]) =>
    range(keyspace, key, min, max, ['BYSCORE', ...options]),
  ),
  ZREVRANGEBYSCORE: atLeast(3, (keyspace, [key = '', max = '', min = '', ...options]) =>
    range(keyspace, key, max, min, ['BYSCORE', 'REV', ...options]),
  ),
  ZREM: atLeast(2, (keyspace, [key = '', ...members]) => remove(keyspace, key, members)),
  ZREMRANGEBYSCORE: exactly(3, (keyspace, [key = '', min = '', max = '']) =>
    remove(keyspace, key, byScore(keyspace, key, min, max).map(memberOf)),
  ),
  ZREMRANGEBYRANK: exactly(3, (keyspace, [key = '', start = '', stop = '']) => {
    const indexes = parseIndexRange(start, stop)
    const members = ordered(keyspace, key)
    return remove(keyspace, key, members.slice(...sliceOf(members.length, indexes)).map(memberOf))
  }),
  ZPOPMIN: atLeast(1, (keyspace, words) => popFirst(keyspace, words, false)),
  ZPOPMAX: atLeast(1, (keyspace, words) => popFirst(keyspace, words, true)),
  ZUNION: atLeast(2, (keyspace, words) => {
    const { scores, withScores } = unionCommand(keyspace, 'zunion', words)
    return flatten(sortByScore(scores), withScores)
  }),
  ZUNIONSTORE: atLeast(3, storeUnion),
  ZSCAN: atLeast(2, (keyspace, [key = '', , ...options]) => {
    const scores = keyspace.get(key, 'zset') ?? new Map<string, number>()
    return scanPage(ordered(keyspace, key).map(memberOf), options, (member) => [
      member,
      formatFloat(scores.get(member) ?? 0),
    ])
  }),
}

function scoreReply(score: number | undefined): Reply {
  return score === undefined ? null : formatFloat(score)
}

function memberOf([member]: Scored): string {
  return member
}

/** Order of Redis: by score, then by the bytes of the member. */
function sortByScore(scores: Map<string, number>): Scored[] {
  return [...scores].sort(([memberA, scoreA], [memberB, scoreB]) =>
    scoreA === scoreB ? (memberA < memberB ? -1 : 1) : scoreA < scoreB ? -1 : 1,
  )
}

function ordered(keyspace: Keyspace, key: string): Scored[] {
  return sortByScore(keyspace.get(key, 'zset') ?? new Map())
}

function flatten(members: Scored[], withScores: boolean): Reply {
  return members.flatMap(([member, score]) => (withScores ? [member, formatFloat(score)] : [member]))
}

function rank(members: Scored[], member: string): Reply {
  const position = members.findIndex(([candidate]) => candidate === member)
  return position < 0 ? null : position
}

function byScore(keyspace: Keyspace, key: string, min: string, max: string): Scored[] {
  const lowest = parseScoreBound(min)
  const highest = parseScoreBound(max)
  return ordered(keyspace, key).filter(([, score]) => isAbove(score, lowest) && isBelow(score, highest))
}

function isAbove(score: number, bound: ScoreBound): boolean {
  return bound.exclusive ? score > bound.value : score >= bound.value
}

function isBelow(score: number, bound: ScoreBound): boolean {
  return bound.exclusive ? score < bound.value : score <= bound.value
}

function range(keyspace: Keyspace, key: string, start: string, stop: string, words: string[]): Reply {
  const options = readRangeOptions(words)
  if (options.limit !== undefined && !options.byScore) {
    throw new RedisError(
      'ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX',
    )
  }
  if (!options.byScore) {
    const indexes = parseIndexRange(start, stop)
    const members = ordered(keyspace, key)
    if (options.reverse) members.reverse()
    return flatten(members.slice(...sliceOf(members.length, indexes)), options.withScores)
  }
  const [min, max] = options.reverse ? [stop, start] : [start, stop]
  const members = byScore(keyspace, key, min, max)
  if (options.reverse) members.reverse()
  const { offset, count } = options.limit ?? { offset: 0, count: -1 }
  if (offset < 0) return []
  return flatten(members.slice(offset, count < 0 ? undefined : offset + count), options.withScores)
}

function readRangeOptions(words: string[]) {
  const options = {
    byScore: false,
    reverse: false,
    withScores: false,
    limit: undefined as { offset: number; count: number } | undefined,
  }
  for (let index = 0; index < words.length; index++) {
    const option = word(words, index).toUpperCase()
    if (option === 'BYSCORE') options.byScore = true
    else if (option === 'REV') options.reverse = true
    else if (option === 'WITHSCORES') options.withScores = true
    else if (option === 'LIMIT') {
      options.limit = parseLimit(words, index)
      index += 2
    } else if (option === 'BYLEX') throw new RedisError('ERR BYLEX is not available in the local Redis')
    else throw new RedisError(SYNTAX_ERROR)
  }
  return options
}

function remove(keyspace: Keyspace, key: string, members: string[]): number {
  const scores = keyspace.get(key, 'zset')
  const removed = members.filter((member) => scores?.delete(member)).length
  keyspace.settle(key)
  return removed
}

function popFirst(keyspace: Keyspace, [key = '', count = '1', ...rest]: string[], fromEnd: boolean): Reply {
  if (rest.length > 0) throw new RedisError(SYNTAX_ERROR)
  const wanted = parseInteger(count, 'ERR value is out of range, must be positive')
  if (wanted < 0) throw new RedisError('ERR value is out of range, must be positive')
  const members = ordered(keyspace, key)
  const taken = (fromEnd ? members.reverse() : members).slice(0, wanted)
  remove(keyspace, key, taken.map(memberOf))
  return flatten(taken, true)
}

function add(keyspace: Keyspace, [key = '', ...words]: string[]): Reply {
  const { options, rest } = readAddOptions(words)
  const entries = pairs(rest).map(([score, member]): Scored => [member, parseFloat64(score)])
  const scores = keyspace.obtain(key, 'zset')
  let count = 0
  let result: Reply = null
  try {
    for (const [member, given] of entries) {
      const current = scores.get(member)
      const score = options.increment ? given + (current ?? 0) : given
      if (Number.isNaN(score)) throw new RedisError('ERR resulting score is not a number (NaN)')
      if (isSkipped(options, current, score)) continue
      if (current === undefined || (options.changed && current !== score)) count++
      scores.set(member, score)
      result = formatFloat(score)
    }
  } finally {
    keyspace.settle(key)
  }
  return options.increment ? result : count
}

function isSkipped(options: AddOptions, current: number | undefined, score: number): boolean {
  if (current === undefined) return options.xx
  return options.nx || (options.gt && score <= current) || (options.lt && score >= current)
}

function readAddOptions(words: string[]): { options: AddOptions; rest: string[] } {
  const seen = new Set<string>()
  let position = 0
  while (/^(NX|XX|GT|LT|CH|INCR)$/i.test(words[position] ?? ''))
    seen.add(word(words, position++).toUpperCase())
  const rest = words.slice(position)
  if (rest.length === 0 || rest.length % 2 !== 0) throw new RedisError(SYNTAX_ERROR)
  const [nx, xx, gt, lt] = [seen.has('NX'), seen.has('XX'), seen.has('GT'), seen.has('LT')]
  if (nx && xx) throw new RedisError('ERR XX and NX options at the same time are not compatible')
  if ((gt && lt) || (nx && (gt || lt))) {
    throw new RedisError('ERR GT, LT, and/or NX options at the same time are not compatible')
  }
  const increment = seen.has('INCR')
  if (increment && rest.length > 2)
    throw new RedisError('ERR INCR option supports a single increment-element pair')
  return { options: { nx, xx, gt, lt, changed: seen.has('CH'), increment }, rest }
}
