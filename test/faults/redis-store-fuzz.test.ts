import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MemoryStore } from '../../scripts/local/redis/memory-store.ts'
import { RedisError, type Reply, StatusReply, toBytes, toText } from '../../scripts/node/redis/reply.ts'
import { findRealRedis, type RealServer, startRealRedis, tellSkipped } from '../local/real-servers.ts'
import { makeOperation, type Operation, Random } from './redis-fuzz-operations.ts'

const SEEDS = Number(process.env.FUZZ_SEEDS ?? 2)
const OPERATIONS = Number(process.env.FUZZ_OPERATIONS ?? 5000)
/** How many operations are sent to Redis at once. */
const BATCH = 500

const hasRealRedis = findRealRedis() !== undefined
if (!hasRealRedis) tellSkipped('the differential fuzz of the Redis store', 'redis-server')

describe.skipIf(!hasRealRedis)('the store in memory answers as Redis does', () => {
  let real: RealServer
  let redis: Redis

  beforeAll(async () => {
    real = await startRealRedis()
    redis = new Redis(real.url, { stringNumbers: true, protocol: 2 })
  }, 60_000)
  afterAll(async () => {
    redis?.disconnect()
    await real?.stop()
  })

  it.each(Array.from({ length: SEEDS }, (_, index) => index + 1))(
    `in ${OPERATIONS} random operations of seed %i`,
    { timeout: 60_000 + OPERATIONS * 20 },
    async (seed) => {
      await redis.flushall()
      const store = new MemoryStore()
      const random = new Random(seed)
      const history: string[] = []
      for (let done = 0; done < OPERATIONS; done += BATCH) {
        const operations = Array.from({ length: Math.min(BATCH, OPERATIONS - done) }, () =>
          makeOperation(random),
        )
        const answers = await askRedis(redis, operations)
        operations.forEach((operation, index) => {
          const ours = askStore(store, operation)
          history.push(JSON.stringify(operation.words))
          expect(ours, `after ${history.slice(-12).join('\n')}`).toEqual(answers[index])
        })
        expectSameState(stateOf(store), await realStateOf(redis))
      }
    },
  )
})

async function askRedis(redis: Redis, operations: Operation[]): Promise<unknown[]> {
  const pipeline = redis.pipeline()
  for (const { words } of operations) {
    const [name = '', ...rest] = words
    // Upper case for the client only, which would otherwise reshape replies; both sides take any case.
    pipeline.callBuffer(name.toUpperCase(), ...rest)
  }
  const results = (await pipeline.exec()) ?? []
  return results.map(([error, value], index) =>
    error === null
      ? comparable(fromRedis(value), operations[index])
      : comparableError(error.message, operations[index]),
  )
}

function askStore(store: MemoryStore, operation: Operation): unknown {
  try {
    return comparable(fromStore(store.run(operation.words.map(toBytes))), operation)
  } catch (error) {
    if (!(error instanceof RedisError)) throw error
    return comparableError(toText(error.message), operation)
  }
}

/** Integers and strings become different texts, so that 1 and "1" do not pass for the same. */
function fromRedis(value: unknown): unknown {
  if (Buffer.isBuffer(value)) return `$${(value as Buffer).toString('latin1')}`
  if (Array.isArray(value)) return value.map(fromRedis)
  return value === null ? null : `:${String(value)}`
}

function fromStore(reply: Reply): unknown {
  if (Array.isArray(reply)) return reply.map(fromStore)
  if (reply === null) return null
  if (reply instanceof StatusReply) return `$${reply.text}`
  return typeof reply === 'string' ? `$${reply}` : `:${reply}`
}

function comparable(reply: unknown, operation: Operation | undefined): unknown {
  return operation?.unordered === true && Array.isArray(reply) ? reply.toSorted() : reply
}

/** The code and, for commands, the text. Around an error in a script the engines add different words. */
function comparableError(message: string, operation: Operation | undefined): string {
  const isScript = operation?.words[0] === 'EVAL'
  return `error ${isScript ? message.split(' ', 1)[0] : message.trim()}`
}

/** A key, its type, and when it expires: milliseconds since 1970, or -1. */
type KeyState = [key: string, kind: string | undefined, expiresAt: number]

/** How far the expiry of a key may be off: the two clocks are read at different moments. */
const TOLERANCE_MS = 10_000

function expectSameState(ours: KeyState[], theirs: KeyState[]): void {
  const kinds = (states: KeyState[]): unknown => states.map(([key, kind]) => [key, kind])
  expect(kinds(ours)).toEqual(kinds(theirs))
  ours.forEach(([key, , expiresAt], index) => {
    const other = theirs[index]?.[2] ?? 0
    expect([key, expiresAt === -1]).toEqual([key, other === -1])
    expect(Math.abs(expiresAt - other), key).toBeLessThan(TOLERANCE_MS)
  })
}

function stateOf({ keyspace }: MemoryStore): KeyState[] {
  return keyspace
    .keys()
    .sort()
    .map((key) => [key, keyspace.kindOf(key), keyspace.expiryOf(key) ?? -1])
}

async function realStateOf(redis: Redis): Promise<KeyState[]> {
  const keys = (await redis.keysBuffer('*')).map((key) => (key as Buffer).toString('latin1')).sort()
  return Promise.all(
    keys.map(async (name): Promise<KeyState> => {
      const key = Buffer.from(name, 'latin1')
      return [name, await redis.type(key), Number(await redis.call('PEXPIRETIME', key))]
    }),
  )
}
