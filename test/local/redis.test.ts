import { Ratelimit } from '@upstash/ratelimit'
import { Redis } from '@upstash/redis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { startRedis } from '../../scripts/local/redis/start.ts'
import type { RunningServer } from '../../scripts/node/loopback-server.ts'
import { findRealRedis, type RealServer, startRealRedis, tellSkipped } from './real-servers.ts'

const TOKEN = 'test-token'
const hasRealRedis = findRealRedis() !== undefined
if (!hasRealRedis) tellSkipped('the Upstash stand-in before a real Redis', 'redis-server')

describe.each([
  { backend: 'the store in memory', isReal: false },
  { backend: 'a real Redis', isReal: true },
])('the Upstash stand-in over $backend', ({ isReal }) => {
  describe.skipIf(isReal && !hasRealRedis)('', () => {
    let real: RealServer | undefined
    let standIn: RunningServer
    let redis: Redis

    beforeAll(async () => {
      real = isReal ? await startRealRedis() : undefined
      standIn = await startRedis({ token: TOKEN, ...(real !== undefined && { redisUrl: real.url }) })
      redis = new Redis({ url: standIn.url, token: TOKEN, enableTelemetry: false })
    }, 60_000)
    afterAll(async () => {
      await standIn?.close()
      await real?.stop()
    })
    beforeEach(() => redis.flushall())

    const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
      fetch(standIn.url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${TOKEN}`, ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      })

    describe('the SDK', () => {
      it('stores and reads values of every kind', async () => {
        expect(await redis.set('k', { deep: ['é', 1] })).toBe('OK')
        expect(await redis.get('k')).toEqual({ deep: ['é', 1] })
        expect(await redis.get('absent')).toBeNull()
        // A value that looks like a reply of the protocol.
        await redis.set('ok', 'OK')
        expect(await redis.get('ok')).toBe('OK')
        expect(await redis.hset('h', { a: 1, b: '🌱' })).toBe(2)
        expect(await redis.hgetall('h')).toEqual({ a: 1, b: '🌱' })
        expect((await redis.scan(0, { match: 'h*' }))[1]).toEqual(['h'])
        expect(await redis.del('k', 'absent')).toBe(1)
      })

      it('honours conditions and lifetimes of SET', async () => {
        expect(await redis.set('k', 1, { nx: true, px: 50_000 })).toBe('OK')
        expect(await redis.set('k', 2, { nx: true })).toBeNull()
        expect(await redis.pttl('k')).toBeGreaterThan(40_000)
        expect(await redis.set('k', 3, { xx: true, ex: 100 })).toBe('OK')
        expect(await redis.ttl('k')).toBe(100)
        expect(await redis.set('other', 1, { xx: true })).toBeNull()
      })

      it('answers a pipeline with a result or an error for each command', async () => {
        const pipeline = redis.pipeline()
        pipeline.set('k', 'text')
        pipeline.incr('k')
        pipeline.get('k')
        expect(await pipeline.exec({ keepErrors: true })).toEqual([
          { result: 'OK', error: undefined },
          { error: expect.stringMatching(/^ERR value is not an integer/) },
          { result: 'text', error: undefined },
        ])
      })

      it('runs scripts by hash once it has their source, without the line that stock Redis refuses', async () => {
        const source = '#!lua flags=allow-key-locking\nreturn {KEYS[1], tonumber(ARGV[1]) * 2}'
        const script = redis.createScript<[string, number]>(source)
        await expect(redis.evalsha(await script.sha1, ['k'], ['21'])).rejects.toThrow(/\bNOSCRIPT /)
        expect(await script.exec(['k'], ['21'])).toEqual(['k', 42])
        expect(await redis.evalsha(await script.sha1, ['k'], ['4'])).toEqual(['k', 8])
      })

      it('reports errors of commands and scripts', async () => {
        await redis.set('k', 'v')
        await expect(redis.hset('k', { a: 1 })).rejects.toThrow(/\bWRONGTYPE /)
        await expect(redis.eval('return redis.call("HGETALL", KEYS[1])', ['k'], [])).rejects.toThrow(
          /\bWRONGTYPE /,
        )
        await expect(redis.eval('error("boom")', [], [])).rejects.toThrow(/boom/)
        await expect(redis.eval('this is not lua', [], [])).rejects.toThrow(/\bERR Error compiling script/)
      })

      it('gives a lock to one of 50', async () => {
        const tries = Array.from({ length: 50 }, (_, index) =>
          redis.set('lock', index, { nx: true, px: 60_000 }),
        )
        expect((await Promise.all(tries)).filter((result) => result === 'OK')).toHaveLength(1)
      })
    })

    describe('the REST interface', () => {
      it('encodes strings in base64 on request only', async () => {
        await redis.set('k', 'abcd')
        const headers = { 'upstash-encoding': 'base64' }
        expect(await (await post('/', ['GET', 'k'])).json()).toEqual({ result: 'abcd' })
        expect(await (await post('/', ['GET', 'k'], headers)).json()).toEqual({ result: 'YWJjZA==' })
        expect(await (await post('/', ['SET', 'k', 'OK'], headers)).json()).toEqual({ result: 'OK' })
        expect(await (await post('/', ['HMGET', 'h', 'f'], headers)).json()).toEqual({ result: [null] })
      })

      it('refuses a missing or wrong token', async () => {
        for (const authorization of ['Bearer wrong', '', TOKEN]) {
          const response = await post('/', ['GET', 'k'], { authorization })
          expect(response.status).toBe(401)
          expect(await response.json()).toEqual({ error: 'WRONGPASS invalid or missing auth token' })
        }
        expect((await post('/pipeline', [['GET', 'k']], { authorization: 'Bearer wrong' })).status).toBe(401)
      })

      it.each([
        ['/', 'not json'],
        ['/', '{}'],
        ['/', '[]'],
        ['/pipeline', '["GET","k"]'],
        ['/', '["NOSUCH"]'],
        ['/', '["GET"]'],
        ['/get/k', ''],
      ])('answers 400 to POST %s %s', async (path, body) => {
        const response = await post(path, body)
        expect(response.status).toBe(400)
        expect(await response.json()).toEqual({ error: expect.any(String) })
      })
    })

    describe('@upstash/ratelimit', () => {
      const limiters = {
        fixedWindow: Ratelimit.fixedWindow(5, '60 s'),
        slidingWindow: Ratelimit.slidingWindow(5, '60 s'),
        tokenBucket: Ratelimit.tokenBucket(5, '60 s', 5),
      }

      // The client reads the clock: no window may begin between two of its calls.
      beforeEach(() => {
        vi.useFakeTimers({ toFake: ['Date'], now: Math.floor(Date.now() / 60_000) * 60_000 + 30_000 })
      })
      afterEach(() => {
        vi.useRealTimers()
      })

      it.each(Object.entries(limiters))('admits exactly 5 of 20 at once with %s', async (name, limiter) => {
        const limit = new Ratelimit({ redis, limiter, prefix: name, ephemeralCache: false })
        const results = await Promise.all(Array.from({ length: 20 }, () => limit.limit('user')))
        expect(results.filter(({ success }) => success)).toHaveLength(5)
        expect((await limit.getRemaining('user')).remaining).toBe(0)
        expect((await limit.limit('other')).success).toBe(true)
        await limit.resetUsedTokens('user')
        expect(await limit.limit('user', { rate: 4 })).toMatchObject({
          success: true,
          limit: 5,
          remaining: 1,
        })
      })
    })
  })
})
