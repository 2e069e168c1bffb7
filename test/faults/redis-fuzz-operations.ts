/** A seeded generator of numbers; the same seed gives the same operations. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0 || 1
  }

  /** A float from 0 up to 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** An integer from 0 up to `limit`, not included. */
  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item
  }

  /** The items made `count` times, `count` from `least` to `most`. */
  list<Item>(least: number, most: number, make: () => Item): Item[] {
    return Array.from({ length: least + this.below(most - least + 1) }, make)
  }
}

/** An operation: its words, and the comparison of the replies. */
export interface Operation {
  readonly words: string[]
  /** Whether the order of the reply is Redis' own business. */
  readonly unordered?: boolean
}

const KEYS = ['a', 'b', 'c', 'd', 'ключ']
const FIELDS = ['f', 'g', 'h', '']
const VALUES = ['', '0', '1', '-1', '7', '10', '1.5', 'x', 'word', 'ü', '🌱', '+5', '01', ' 1']
const INTEGERS = ['0', '1', '-1', '2', '5', '-3', '100', 'x', '', '1.0']
/** In seconds or milliseconds, and far away: what expires during a run would depend on the speed. */
const LIFETIMES = ['1000', '1000000', '0', '-1', 'x', '']
const PATTERNS = ['*', 'a', '?', 'a*', '*ü*', 'клю*', '.', 'a+']

/** Scripts with what those of `@upstash/ratelimit` use: replies of every kind, numbers, errors. */
const SCRIPTS = [
  'return redis.call("GET", KEYS[1])',
  'return redis.call("SET", KEYS[1], ARGV[1])',
  'return redis.call("INCRBY", KEYS[1], ARGV[1])',
  'local v = redis.call("GET", KEYS[1]) if v == false then v = "none" end return {v, tonumber(v)}',
  'return {KEYS[1], ARGV[1], #KEYS, #ARGV}',
  'return {1.9, -1.9, "x", true, false}',
  'return {1, nil, 3}',
  'return tonumber(ARGV[1])',
  'local n = tonumber(ARGV[1]) if n then return n * 1000000 * 3600 end return "none"',
  'return {math.floor(-3.5), math.ceil(2.25), math.max(1, 2.5), math.min(7 % 3, -7 % 3)}',
  'return {math.floor(tonumber("12.7")) * 1000000000000, math.floor(1700000000123 / 1000) * 1000}',
  'local t = redis.call("HGETALL", KEYS[1]) local n = 0 for i = 1, #t do n = n + 1 end return {t, n}',
  'return redis.call("HMGET", KEYS[1], "f", "g")',
  'return redis.call("HSET", KEYS[1], "f", ARGV[1], "n", 1700000000123.5)',
  'return {unpack(ARGV)}',
  'return {redis.call("PEXPIRE", KEYS[1], 1000000), redis.call("DEL", "nokey")}',
  'return redis.call("TYPE", KEYS[1]).ok',
  'return #redis.call("SCAN", "0", "MATCH", KEYS[1])[2]',
  'return redis.call("NOPE", KEYS[1])',
  'return redis.call("GET")',
  'return redis.call("SET", KEYS[1], {})',
  'return ARGV[1] + 1',
  'return',
]

/** Makes one operation: every command of the store, with arguments that are right, odd and wrong. */
export function makeOperation(random: Random): Operation {
  const operation = random.pick(shapesOf(random))()
  // Now and then one word too few or too many.
  const chance = random.below(60)
  if (chance === 0 && operation.words.length > 2) return { ...operation, words: operation.words.slice(0, -1) }
  const takesOptions = /^(SET|P?EXPIRE|FLUSHALL|PING)$/i.test(operation.words[0] ?? '')
  if (chance === 1 && !takesOptions) return { ...operation, words: [...operation.words, random.pick(VALUES)] }
  return operation
}

function shapesOf(random: Random): Array<() => Operation> {
  const key = () => random.pick(KEYS)
  const value = () => random.pick(VALUES)
  const field = () => random.pick(FIELDS)
  const int = () => random.pick(INTEGERS)
  const lifetime = () => random.pick(LIFETIMES)
  const maybe = (...words: string[]) => (random.below(2) === 0 ? words : [])
  const some = (make: () => string) => random.list(1, 3, make)
  return [
    () => ({ words: ['GET', key()] }),
    () => ({ words: ['SET', key(), value()] }),
    () => ({ words: ['set', key(), int(), ...maybe(random.pick(['nx', 'XX', 'bad']))] }),
    () => ({ words: ['SET', key(), value(), random.pick(['EX', 'px']), lifetime(), ...maybe('NX')] }),
    () => ({ words: ['SET', key(), value(), 'NX', 'XX'] }),
    () => ({ words: ['INCR', key()] }),
    () => ({ words: ['INCRBY', key(), int()] }),
    () => ({ words: [random.pick(['DEL', 'EXISTS']), ...some(key)] }),
    () => ({ words: ['TYPE', key()] }),
    () => ({ words: [random.pick(['EXPIRE', 'PEXPIRE']), key(), lifetime()] }),
    () => ({ words: [random.pick(['TTL', 'PTTL']), 'absent'] }),
    () => ({ words: ['KEYS', random.pick(PATTERNS)], unordered: true }),
    () => ({ words: ['PING'] }),
    () => ({ words: ['FLUSHALL'] }),
    () => ({ words: ['HSET', key(), field(), value(), ...maybe(field(), value())] }),
    () => ({ words: ['HGET', key(), field()] }),
    () => ({ words: ['HMGET', key(), ...some(field)] }),
    () => ({ words: ['HGETALL', key()], unordered: true }),
    () => ({ words: ['EVAL', random.pick(SCRIPTS), '1', key(), value()] }),
    () => ({ words: ['EVAL', random.pick(SCRIPTS), '1', key(), int(), value()] }),
    () => ({ words: ['EVAL', 'return 1', random.pick(['0', '-1', '5', 'x'])] }),
    () => ({ words: ['NOSUCH', value()] }),
  ]
}
