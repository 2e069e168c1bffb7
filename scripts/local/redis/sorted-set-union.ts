import { word } from './command.ts'
import type { Keyspace } from './keyspace.ts'
import { parseFloat64, parseInteger } from './numbers.ts'
import { RedisError, type Reply, SYNTAX_ERROR, WRONG_TYPE } from './reply.ts'

type Aggregate = (left: number, right: number) => number

const AGGREGATES: Record<string, Aggregate> = {
  // inf + -inf is 0 here, by the manual of ZUNIONSTORE.
  SUM: (left, right) => (Number.isNaN(left + right) ? 0 : left + right),
  MIN: Math.min,
  MAX: Math.max,
}

interface UnionOptions {
  readonly weights: number[]
  readonly aggregate: Aggregate
  readonly withScores: boolean
}

/**
 * Reads and computes `numkeys key... [WEIGHTS w...] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]`.
 *
 * @param command its name, for the error text
 * @throws RedisError for bad syntax or a key that is neither set nor sorted set
 */
export function unionCommand(
  keyspace: Keyspace,
  command: string,
  [count = '', ...words]: string[],
): { scores: Map<string, number>; withScores: boolean } {
  const keyCount = parseInteger(count)
  if (keyCount < 1) throw new RedisError(`ERR at least 1 input key is needed for '${command}' command`)
  if (keyCount > words.length) throw new RedisError(SYNTAX_ERROR)
  const inputs = words.slice(0, keyCount).map((key) => scoresAt(keyspace, key))
  const options = readOptions(words.slice(keyCount), keyCount)
  const scores = new Map<string, number>()
  inputs.forEach((input, index) => {
    for (const [member, score] of input) {
      // 0 times inf is not a number, and Redis makes it 0.
      const product = score * (options.weights[index] ?? 1)
      const weighted = Number.isNaN(product) ? 0 : product
      const present = scores.get(member)
      scores.set(member, present === undefined ? weighted : options.aggregate(present, weighted))
    }
  })
  return { scores, withScores: options.withScores }
}

/** ZUNIONSTORE: the union replaces whatever is at the target. */
export function storeUnion(keyspace: Keyspace, [target = '', ...words]: string[]): Reply {
  const { scores } = unionCommand(keyspace, 'zunionstore', words)
  keyspace.put(target, 'zset', scores)
  keyspace.settle(target)
  return scores.size
}

function readOptions(words: string[], keyCount: number): UnionOptions {
  let weights: number[] = []
  let aggregate: Aggregate | undefined = AGGREGATES.SUM
  let withScores = false
  for (let index = 0; index < words.length; index++) {
    const option = word(words, index).toUpperCase()
    if (option === 'WEIGHTS') {
      const texts = words.slice(index + 1, index + 1 + keyCount)
      if (texts.length < keyCount) throw new RedisError(SYNTAX_ERROR)
      weights = texts.map((text) => parseFloat64(text, 'ERR weight value is not a float'))
      index += keyCount
    } else if (option === 'AGGREGATE') aggregate = AGGREGATES[word(words, ++index).toUpperCase()]
    else if (option === 'WITHSCORES') withScores = true
    else throw new RedisError(SYNTAX_ERROR)
  }
  if (aggregate === undefined) throw new RedisError(SYNTAX_ERROR)
  return { weights, aggregate, withScores }
}

/** A plain set counts as a sorted set with score 1 for each member. */
function scoresAt(keyspace: Keyspace, key: string): Map<string, number> {
  const kind = keyspace.kindOf(key)
  if (kind === undefined) return new Map()
  if (kind === 'zset') return keyspace.get(key, 'zset') ?? new Map()
  if (kind === 'set') return new Map([...(keyspace.get(key, 'set') ?? [])].map((member) => [member, 1]))
  throw new RedisError(WRONG_TYPE)
}
