import { Ratelimit } from '@upstash/ratelimit'
import { Redis } from '@upstash/redis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startRedis } from '../../scripts/local/redis/start.ts'
import type { RunningStandIn } from '../../scripts/local/stand-in-process.ts'
import { findRealRedis, type RealServer, startRealRedis, tellSkipped } from './real-servers.ts'

const hasRealRedis = findRealRedis() !== undefined
if (!hasRealRedis) tellSkipped('contention of two stand-ins for one Redis', 'redis-server')

describe.skipIf(!hasRealRedis)('two stand-ins before one real Redis', () => {
  let real: RealServer
  let standIns: RunningStandIn[] = []
  let clients: Redis[] = []

  beforeAll(async () => {
    real = await startRealRedis()
    standIns = await Promise.all([startRedis({ redisUrl: real.url }), startRedis({ redisUrl: real.url })])
    clients = standIns.map(({ url }) => new Redis({ url, token: 'local', enableAutoPipelining: false }))
  }, 60_000)
  afterAll(async () => {
    for (const standIn of standIns) await standIn.close()
    await real?.stop()
  })
  beforeEach(() => clientAt(0).flushall())

  const clientAt = (index: number): Redis => clients[index % clients.length] as Redis

  it('count 50 increments', async () => {
    const results = await Promise.all(Array.from({ length: 50 }, (_, index) => clientAt(index).incr('n')))
    expect(results.toSorted((left, right) => left - right)).toEqual(
      Array.from({ length: 50 }, (_, index) => index + 1),
    )
  })

  it('give a lock to one of 50', async () => {
    const tries = Array.from({ length: 50 }, (_, index) =>
      clientAt(index).set('lock', index, { nx: true, px: 60_000 }),
    )
    expect((await Promise.all(tries)).filter((result) => result === 'OK')).toHaveLength(1)
  })

  it('run scripts as one step each', async () => {
    const script = `local n = tonumber(redis.call('GET', KEYS[1]) or '0')
      if n >= 10 then return 0 end
      redis.call('SET', KEYS[1], n + 1)
      return 1`
    const taken = Array.from({ length: 50 }, (_, index) => clientAt(index).eval(script, ['slots'], []))
    expect((await Promise.all(taken)).filter((result) => result === 1)).toHaveLength(10)
  })

  it('learn scripts each for itself, and admit exactly 5 of 20 together', async () => {
    const limits = clients.map((redis) => {
      const limiter = Ratelimit.tokenBucket(5, '60 s', 5)
      return new Ratelimit({ redis, limiter, prefix: 'p', ephemeralCache: false })
    })
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, index) => limits[index % 2]?.limit('user')),
    )
    expect(results.filter((result) => result?.success)).toHaveLength(5)
  })

  it('report a Redis that is gone', async () => {
    const own = await startRealRedis()
    const standIn = await startRedis({ redisUrl: own.url })
    const redis = new Redis({ url: standIn.url, token: 'local', retry: false })
    await redis.set('k', 1)
    await own.stop()
    await expect(redis.get('k')).rejects.toThrow()
    await standIn.close()
  })
})
