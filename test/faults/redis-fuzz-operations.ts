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

/** One operation: its words, and how the replies are to be compared. */
export interface Operation {
  readonly words: string[]
  /** Whether the order of the reply is Redis' own business. */
  readonly unordered?: boolean
}

const KEYS = ['a', 'b', 'c', 'd', 'ключ']
const FIELDS = ['f', 'g', 'h', '']
const VALUES = [
  '',
  '0',
  '1',
  '-1',
  '7',
  '10',
  '1.5',
  'x',
  'word',
  'ü',
  '🌱',
  'inf',
  '+5',
  '01',
  ' 1',
  '9223372036854775807',
]
// Dyadic fractions are exact in double and long double, so that both print the same digits.
const FLOATS = ['0', '1', '-1', '0.5', '2.25', '-3.75', '1e2', '+4', 'inf', '-inf', 'nan', 'x', '']
/** For INCRBYFLOAT, whose long double the store computes in, fractions may be any. */
const AMOUNTS = [...FLOATS, '0.1', '0.2', '1234.1', '-0.3', '3e-5', '.5', '5.']
const INTEGERS = [
  '0',
  '1',
  '-1',
  '2',
  '5',
  '-3',
  '100',
  'x',
  '',
  '1.0',
  '9223372036854775807',
  '-9223372036854775808',
]
const INDEXES = ['0', '1', '2', '-1', '-2', '-100', '100', 'x']
const BOUNDS = ['-inf', '+inf', '0', '1', '(1', '2.25', '(-1', '(inf', 'x', '-3.75', '']
/** In seconds or milliseconds, and far away: what expires during a run would depend on the speed. */
const LIFETIMES = ['100', '1000', '0', '-1', 'x', '']
/** Absolute, in seconds: what depends on them does not depend on when a command runs. */
const TIMES = ['4102444800', '4102444900', '1', 'x']
const PATTERNS = ['*', 'a', '?', '[ab]', '[^ab]', '[a-c]', 'a*', '*ü*', '\\a', '[', 'клю*', '[]', '\\']

/** Scripts whose result must not depend on the engine: numbers, conversions, errors, every kind of reply. */
const SCRIPTS = [
  'return redis.call("GET", KEYS[1])',
  'return redis.call("SET", KEYS[1], ARGV[1])',
  'local v = redis.call("INCRBY", KEYS[1], ARGV[1]) return {v, tostring(v), v / 2}',
  'return {KEYS[1], ARGV[1], #KEYS, #ARGV}',
  'return redis.pcall("LPUSH", KEYS[1], ARGV[1])',
  'local r = redis.pcall("HSET", KEYS[1], "f", ARGV[1]) if type(r) == "table" then return r.err end return r',
  'return {1.9, -1.9, "x", true, false}',
  'return {1, nil, 3}',
  'return tonumber(ARGV[1])',
  'local n = tonumber(ARGV[1]) if n then return tostring(n * 1000000 * 3600) end return "none"',
  'return tostring(2147483647 + 1) .. ":" .. 7 / 2 .. ":" .. 10 / 5 .. ":" .. 1e15 .. ":" .. 123456789012345',
  'return redis.call("HGETALL", KEYS[1])',
  'local t = {} for i = 1, 3 do t[i] = redis.call("RPUSH", KEYS[1], i) end return t',
  'return {ok = "FINE"}',
  'return {err = "MINE broken"}',
  'return redis.error_reply("MINE broken")',
  'return redis.status_reply("FINE")',
  'return redis.call("ZADD", KEYS[1], 1.5, ARGV[1])',
  'return redis.call("ZRANGE", KEYS[1], 0, -1, "WITHSCORES")',
  'return cjson.encode({ARGV[1], 1, 1.5, {a = KEYS[1]}})',
  'return cjson.decode(cjson.encode({k = {1, "two"}})).k',
  'return string.format("%d|%5.1f|%s|%05d|%x", 1700000000000, 2.5, ARGV[1], 42, 255)',
  'return math.floor(-3.5) .. ":" .. math.ceil(2.25) .. ":" .. math.max(1, 2.5) .. ":" .. 7 % 3 .. ":" .. -7 % 3',
  'return redis.sha1hex(ARGV[1])',
  'return undefined_name',
  'some_global = 1',
  'return redis.call("NOPE", KEYS[1])',
  'return redis.call("GET")',
  'local a = {unpack(ARGV)} table.sort(a) return table.concat(a, ",")',
  'return string.sub(ARGV[1], 1, 1) .. string.upper("x") .. string.rep("ab", 2) .. #ARGV[1]',
  'if redis.call("EXISTS", KEYS[1]) == 1 then return redis.call("TYPE", KEYS[1]) end return false',
  'return redis.call("TYPE", KEYS[1]).ok',
  'return {redis.call("MGET", KEYS[1], "nokey")}',
  'return',
  'local s = 0 for i = 1, 10, 3 do s = s + i end return tostring(s)',
  'return string.byte("a") * 100000000 .. ":" .. #ARGV[1] * #ARGV[1] * 2147483647 .. ":" .. select("#", 1, 2)',
  'return {string.char(104, 105), (string.gsub("aXbX", "X", "y")), string.find("hello", "l", 1, true)}',
  'local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) table.insert(t, 9) table.remove(t, 1) return t',
  'return {tostring(1e100), tostring(0.1), tostring(1 / 3), tostring(1e14), tostring(2 ^ 53), tostring(1e-5), tostring(nil)}',
  'return {math.floor(tonumber("12.7")) * 1000000000000, math.pow(2, 40), math.fmod(-7, 3), table.getn({1, 2})}',
  'return string.format("%5s|%-5s|%c|%o|%g|%.3f|%i|%%|%s", "a", "b", 65, 8, 0.5, 1.125, -7.9, 1e15)',
  'return string.format("%s", nil)',
  'return string.format("%d", ARGV[1])',
  'return {bit.band(255, 15), bit.bor(1, 4294967296), bit.bxor(5, 3), bit.bnot(0), bit.lshift(1, 31), bit.rshift(-1, 1), bit.arshift(-8, 1), bit.tobit(4294967295)}',
  'return cjson.encode({1700000000000, 0.1, 1e20, "/\\"", true})',
  'return cjson.encode(cjson.decode(\'{"a":null}\'))',
  'return cjson.decode("{bad")',
  'return cjson.encode({[1] = 1, [2] = 2}) .. cjson.encode({})',
  'return {tostring(ARGV[1] < "m"), tostring("a" .. 1 == "a1"), tostring(10 == "10")}',
  'return ARGV[1] + 1',
  'local ok, e = pcall(function() error("inner") end) return tostring(ok) .. string.sub(e, -5)',
  'error({err = "MINE thrown"})',
  'return {redis.call("TIME")[3], type(redis.call("TIME")[1])}',
  'return #redis.call("SCAN", "0", "MATCH", KEYS[1])[2]',
  'return redis.call("SET", KEYS[1], 1.5)',
  'return redis.call("SET", KEYS[1], 1e15, "EX", 100)',
  'return redis.call("SET", KEYS[1], {})',
]

type Shape = () => Operation

/** Words to make commands of. */
function makeWords(random: Random) {
  return {
    random,
    key: () => random.pick(KEYS),
    value: () => random.pick(VALUES),
    field: () => random.pick(FIELDS),
    int: () => random.pick(INTEGERS),
    float: () => random.pick(FLOATS),
    index: () => random.pick(INDEXES),
    bound: () => random.pick(BOUNDS),
    lifetime: () => random.pick(LIFETIMES),
    time: () => random.pick(TIMES),
    maybe: (...words: string[]) => (random.below(2) === 0 ? words : []),
    some: (make: () => string, most = 3) => random.list(1, most, make),
  }
}

type Words = ReturnType<typeof makeWords>

/** Makes one operation: every command of the store, with arguments that are right, odd and wrong. */
export function makeOperation(random: Random): Operation {
  const words = makeWords(random)
  const groups = [stringShapes, keyShapes, hashAndSetShapes, listShapes, sortedSetShapes, scriptShapes]
  const shapes = groups.flatMap((group) => group(words))
  const operation = random.pick(shapes)()
  // Now and then one word too few or too many.
  const chance = random.below(60)
  if (chance === 0 && operation.words.length > 2) return { ...operation, words: operation.words.slice(0, -1) }
  if (chance === 1) return { ...operation, words: [...operation.words, words.value()] }
  return operation
}

function scriptShapes({ random, key, value, int }: Words): Shape[] {
  return [
    () => ({ words: ['EVAL', random.pick(SCRIPTS), '1', key(), value()] }),
    () => ({ words: ['EVAL', random.pick(SCRIPTS), '1', key(), int(), value()] }),
    () => ({ words: ['EVAL', 'return 1', random.pick(['0', '-1', '5', 'x'])] }),
    () => ({ words: ['NOSUCH', value()] }),
  ]
}

function stringShapes({ random, key, value, int, index, lifetime, maybe, some }: Words): Shape[] {
  return [
    () => ({ words: ['GET', key()] }),
    () => ({ words: ['SET', key(), value()] }),
    () => ({ words: ['set', key(), int(), ...maybe(random.pick(['nx', 'XX', 'GET', 'KEEPTTL', 'bad']))] }),
    () => ({ words: ['SET', key(), value(), random.pick(['EX', 'PX', 'px']), lifetime(), ...maybe('NX')] }),
    () => ({ words: ['SET', key(), value(), 'NX', random.pick(['XX', 'GET', 'KEEPTTL'])] }),
    () => ({ words: ['SETNX', key(), value()] }),
    () => ({ words: ['SETEX', key(), lifetime(), value()] }),
    () => ({ words: ['PSETEX', key(), random.pick(['100000', '0', 'x']), value()] }),
    () => ({ words: ['GETSET', key(), value()] }),
    () => ({ words: ['GETDEL', key()] }),
    () => ({ words: ['GETEX', key(), ...maybe(random.pick(['PERSIST', 'bad']))] }),
    () => ({ words: ['GETEX', key(), 'EX', lifetime()] }),
    () => ({ words: ['APPEND', key(), value()] }),
    () => ({ words: ['STRLEN', key()] }),
    () => ({ words: ['GETRANGE', key(), index(), index()] }),
    () => ({ words: ['SETRANGE', key(), random.pick(['0', '1', '5', '-1', 'x']), value()] }),
    () => ({ words: ['MGET', ...some(key)] }),
    () => ({ words: ['MSET', ...some(() => [key(), value()] as never, 2).flat()] }),
    () => ({ words: ['MSETNX', key(), value(), key(), value()] }),
    () => ({ words: [random.pick(['INCR', 'DECR']), key()] }),
    () => ({ words: [random.pick(['INCRBY', 'DECRBY']), key(), int()] }),
    () => ({ words: ['INCRBYFLOAT', key(), random.pick(AMOUNTS)] }),
  ]
}

function keyShapes({ random, key, value, lifetime, time, maybe, some }: Words): Shape[] {
  return [
    () => ({ words: [random.pick(['DEL', 'UNLINK', 'EXISTS', 'TOUCH']), ...some(key)] }),
    () => ({ words: ['TYPE', key()] }),
    () => ({ words: ['RENAME', key(), key()] }),
    () => ({ words: ['RENAMENX', key(), key()] }),
    () => ({
      words: ['EXPIRE', key(), lifetime(), ...maybe(random.pick(['NX', 'xx', 'bad']))],
    }),
    () => ({ words: ['PEXPIRE', key(), random.pick(['500000', '1000000', '-1'])] }),
    // Comparing conditions need times that do not depend on when a command runs.
    () => ({
      words: ['EXPIREAT', key(), time(), ...random.list(0, 2, () => random.pick(['NX', 'XX', 'gt', 'LT']))],
    }),
    () => ({ words: ['PEXPIREAT', key(), random.pick(['4102444800000', '4102444900000', '1'])] }),
    () => ({ words: [random.pick(['EXPIRETIME', 'PEXPIRETIME']), 'timed'] }),
    () => ({ words: ['SET', 'timed', '1', 'EXAT', '4102444800'] }),
    () => ({ words: [random.pick(['EXPIRETIME', 'PERSIST', 'TTL']), 'absent'] }),
    () => ({ words: ['PERSIST', key()] }),
    () => ({ words: ['KEYS', random.pick(PATTERNS)], unordered: true }),
    () => ({ words: ['DBSIZE'] }),
    () => ({ words: ['ECHO', value()] }),
    () => ({ words: ['PING', ...maybe(value())] }),
    () => ({ words: ['FLUSHALL'] }),
  ]
}

function hashAndSetShapes({ random, key, value, field, int, maybe, some }: Words): Shape[] {
  return [
    () => ({
      words: [random.pick(['HSET', 'HMSET']), key(), field(), value(), ...maybe(field(), value())],
    }),
    () => ({ words: ['HSETNX', key(), field(), value()] }),
    () => ({ words: [random.pick(['HGET', 'HEXISTS', 'HSTRLEN']), key(), field()] }),
    () => ({ words: ['HMGET', key(), ...some(field)] }),
    () => ({ words: [random.pick(['HGETALL', 'HKEYS', 'HVALS']), key()], unordered: true }),
    () => ({ words: ['HLEN', key()] }),
    () => ({ words: ['HDEL', key(), ...some(field)] }),
    () => ({ words: ['HINCRBY', key(), field(), int()] }),
    () => ({ words: ['HINCRBYFLOAT', key(), field(), random.pick(AMOUNTS)] }),
    () => ({ words: [random.pick(['SADD', 'SREM']), key(), ...some(value)] }),
    () => ({ words: ['SMEMBERS', key()], unordered: true }),
    () => ({ words: ['SCARD', key()] }),
    () => ({ words: ['SISMEMBER', key(), value()] }),
    () => ({ words: ['SMISMEMBER', key(), ...some(value)] }),
    () => ({ words: ['SMOVE', key(), key(), value()] }),
    () => ({ words: [random.pick(['SUNION', 'SINTER', 'SDIFF']), ...some(key)], unordered: true }),
    () => ({ words: [random.pick(['SUNIONSTORE', 'SINTERSTORE', 'SDIFFSTORE']), key(), ...some(key)] }),
  ]
}

function listShapes({ random, key, value, index, maybe, some }: Words): Shape[] {
  return [
    () => ({ words: [random.pick(['LPUSH', 'RPUSH', 'LPUSHX', 'RPUSHX']), key(), ...some(value)] }),
    () => ({
      words: [random.pick(['LPOP', 'RPOP']), key(), ...maybe(random.pick(['0', '1', '2', '-1', 'x']))],
    }),
    () => ({ words: ['LLEN', key()] }),
    () => ({ words: ['LRANGE', key(), index(), index()] }),
    () => ({ words: ['LTRIM', key(), index(), index()] }),
    () => ({ words: ['LINDEX', key(), index()] }),
    () => ({ words: ['LSET', key(), index(), value()] }),
    () => ({ words: ['LREM', key(), random.pick(['0', '1', '-1', '2', 'x']), value()] }),
    () => ({ words: ['RPOPLPUSH', key(), key()] }),
    () => ({
      words: ['LMOVE', key(), key(), random.pick(['LEFT', 'right', 'UP']), random.pick(['RIGHT', 'left'])],
    }),
  ]
}

function sortedSetShapes({ random, key, value, float, index, bound, maybe, some }: Words): Shape[] {
  const scored = (): string[] => [float(), value()]
  const withScores = (): string[] => maybe('WITHSCORES')
  return [
    () => ({ words: ['ZADD', key(), ...scored(), ...maybe(...scored())] }),
    () => ({
      words: [
        'ZADD',
        key(),
        ...random.list(1, 2, () => random.pick(['NX', 'xx', 'GT', 'LT', 'CH', 'INCR'])),
        ...scored(),
      ],
    }),
    () => ({ words: ['ZINCRBY', key(), float(), value()] }),
    () => ({ words: [random.pick(['ZSCORE', 'ZRANK', 'ZREVRANK']), key(), value()] }),
    () => ({ words: ['ZMSCORE', key(), ...some(value)] }),
    () => ({ words: ['ZCARD', key()] }),
    () => ({ words: [random.pick(['ZCOUNT', 'ZREMRANGEBYSCORE']), key(), bound(), bound()] }),
    () => ({ words: ['ZRANGE', key(), index(), index(), ...maybe('REV'), ...withScores()] }),
    () => ({
      words: [
        'ZRANGE',
        key(),
        bound(),
        bound(),
        'BYSCORE',
        ...maybe('REV'),
        ...maybe('LIMIT', index(), index()),
      ],
    }),
    () => ({ words: ['ZREVRANGE', key(), index(), index(), ...withScores()] }),
    () => ({
      words: [
        random.pick(['ZRANGEBYSCORE', 'ZREVRANGEBYSCORE']),
        key(),
        bound(),
        bound(),
        ...withScores(),
        ...maybe('LIMIT', '1', '2'),
      ],
    }),
    () => ({ words: ['ZREM', key(), ...some(value)] }),
    () => ({ words: ['ZREMRANGEBYRANK', key(), index(), index()] }),
    () => ({
      words: [random.pick(['ZPOPMIN', 'ZPOPMAX']), key(), ...maybe(random.pick(['0', '1', '2', '-1', 'x']))],
    }),
    () => ({
      words: [
        'ZUNION',
        '2',
        key(),
        key(),
        ...maybe('WEIGHTS', float(), '2'),
        ...maybe('AGGREGATE', 'MAX'),
        ...withScores(),
      ],
    }),
    () => ({ words: ['ZUNIONSTORE', key(), random.pick(['1', '2', '0', '9']), key(), key()] }),
  ]
}
