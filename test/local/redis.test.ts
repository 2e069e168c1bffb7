import { Ratelimit } from '@upstash/ratelimit'
import { Redis } from '@upstash/redis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startRedis } from '../../scripts/local/redis/start.ts'
import type { RunningStandIn } from '../../scripts/local/stand-in-process.ts'
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
    let standIn: RunningStandIn
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
        await redis.set('text', '🌱')
        expect(await redis.strlen('text')).toBe(4)
        // Values that look like what the protocol says itself.
        await redis.mset({ ok: 'OK', abcd: 'abcd', empty: '' })
        expect(await redis.mget('ok', 'abcd', 'empty', 'absent')).toEqual(['OK', 'abcd', '', null])
        expect(await redis.get('ok')).toBe('OK')
      })

      it('honours conditions and lifetimes of SET', async () => {
        expect(await redis.set('k', 1, { nx: true, px: 50_000 })).toBe('OK')
        expect(await redis.set('k', 2, { nx: true })).toBeNull()
        expect(await redis.pttl('k')).toBeGreaterThan(40_000)
        expect(await redis.set('k', 3, { xx: true, keepTtl: true, get: true })).toBe(1)
        expect(await redis.ttl('k')).toBe(50)
        expect(await redis.set('other', 1, { xx: true })).toBeNull()
      })

      it('serves hashes, sets, sorted sets and lists', async () => {
        expect(await redis.hset('h', { a: 1, b: 'two' })).toBe(2)
        expect(await redis.hgetall('h')).toEqual({ a: 1, b: 'two' })
        expect(await redis.hincrby('h', 'a', 4)).toBe(5)
        expect(await redis.sadd('s', 'x', 'y', 'x')).toBe(2)
        expect(await redis.smismember('s', ['x', 'z'])).toEqual([1, 0])
        await redis.zadd('z', { score: 2, member: 'b' }, { score: 1.5, member: 'a' })
        expect(await redis.zrange('z', 0, -1, { withScores: true })).toEqual(['a', 1.5, 'b', 2])
        expect(await redis.zrange('z', '(1.5', '+inf', { byScore: true })).toEqual(['b'])
        await redis.rpush('l', 1, 2, 3)
        expect(await redis.lpop('l', 2)).toEqual([1, 2])
        expect((await redis.scan(0, { match: 'h*' }))[1]).toEqual(['h'])
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

      it('runs a transaction, scripts included', async () => {
        const transaction = redis.multi()
        transaction.incr('n')
        transaction.eval('return {KEYS[1], ARGV[1], redis.call("GET", "n")}', ['key'], ['value'])
        transaction.get('n')
        expect(await transaction.exec()).toEqual([1, ['key', 'value', 1], 1])
      })

      it('discards a transaction with an unknown command as a whole', async () => {
        const response = await post('/multi-exec', [['SET', 'k', '1'], ['NOSUCH']])
        expect(response.status).toBe(400)
        expect(((await response.json()) as { error: string }).error).toMatch(/^EXECABORT/)
        expect(await redis.get('k')).toBeNull()
      })

      it('runs scripts by hash, and asks for the source of unknown ones', async () => {
        const source = '#!lua flags=allow-key-locking\nreturn tonumber(ARGV[1]) * 2'
        const script = redis.createScript<number>(source)
        expect(await script.exec([], ['21'])).toBe(42)
        const hash = await redis.scriptLoad(source)
        expect(await redis.scriptExists(hash, 'f'.repeat(40))).toEqual([1, 0])
        expect(await redis.evalsha(hash, [], ['4'])).toBe(8)
        await redis.scriptFlush()
        await expect(redis.evalsha(hash, [], ['4'])).rejects.toThrow(/\bNOSCRIPT /)
        expect(await script.exec([], ['5'])).toBe(10)
      })

      it('tells errors of commands and scripts', async () => {
        await redis.set('k', 'v')
        await expect(redis.lpush('k', 1)).rejects.toThrow(/\bWRONGTYPE /)
        await expect(redis.eval('return redis.call("LPUSH", KEYS[1], 1)', ['k'], [])).rejects.toThrow(
          /\bWRONGTYPE /,
        )
        await expect(redis.eval('error("boom")', [], [])).rejects.toThrow(/boom/)
        await expect(redis.eval('this is not lua', [], [])).rejects.toThrow(/\bERR Error compiling script/)
        await expect(redis.eval('return y', [], [])).rejects.toThrow(/nonexistent global variable 'y'/)
        await expect(redis.eval('x = 1', [], [])).rejects.toThrow(/Attempt to modify a readonly table/)
      })
    })

    describe('the REST interface', () => {
      it('takes a command as body, as path, and as path with body and query', async () => {
        expect(await (await post('/', ['SET', 'a', '1'])).json()).toEqual({ result: 'OK' })
        expect(await (await post('/get/a', '')).json()).toEqual({ result: '1' })
        expect(await (await post('/set/b?EX=100', 'from the body')).json()).toEqual({ result: 'OK' })
        expect(await (await post('/ttl/b', '')).json()).toEqual({ result: 100 })
        const get = await fetch(`${standIn.url}/get/${encodeURIComponent('b')}?_token=${TOKEN}`)
        expect(await get.json()).toEqual({ result: 'from the body' })
      })

      it('encodes strings in base64 on request only', async () => {
        await redis.set('k', 'abcd')
        const headers = { 'upstash-encoding': 'base64' }
        expect(await (await post('/', ['GET', 'k'])).json()).toEqual({ result: 'abcd' })
        expect(await (await post('/', ['GET', 'k'], headers)).json()).toEqual({ result: 'YWJjZA==' })
        expect(await (await post('/', ['SET', 'k', 'OK'], headers)).json()).toEqual({ result: 'OK' })
        expect(await (await post('/', ['MGET', 'k'], headers)).json()).toEqual({ result: ['T0s='] })
      })

      it('keeps integers of 64 bits exact', async () => {
        await post('/', ['SET', 'n', '9007199254740992'])
        expect(await (await post('/', ['INCR', 'n'])).text()).toBe('{"result":9007199254740993}')
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
        ['/pipeline', '{"a":1}'],
        ['/pipeline', '["GET","k"]'],
        ['/', '["NOSUCH"]'],
        ['/', '["GET"]'],
        ['/get/%E0%A4%A', ''],
      ])('answers 400 to POST %s %s', async (path, body) => {
        const response = await post(path, body)
        expect(response.status).toBe(400)
        expect(await response.json()).toEqual({ error: expect.any(String) })
      })

      it('refuses a request over 10 MB', async () => {
        expect((await post('/', ['SET', 'k', 'x'.repeat(10 * 1024 * 1024)])).status).toBe(413)
      })
    })

    describe('@upstash/ratelimit', () => {
      const limiters = {
        fixedWindow: Ratelimit.fixedWindow(5, '60 s'),
        slidingWindow: Ratelimit.slidingWindow(5, '60 s'),
        tokenBucket: Ratelimit.tokenBucket(5, '60 s', 5),
      }

      it.each(Object.entries(limiters))('admits exactly 5 of 20 at once with %s', async (name, limiter) => {
        const limit = new Ratelimit({ redis, limiter, prefix: name, ephemeralCache: false })
        const results = await Promise.all(Array.from({ length: 20 }, () => limit.limit('user')))
        expect(results.filter(({ success }) => success)).toHaveLength(5)
        expect((await limit.getRemaining('user')).remaining).toBe(0)
        expect((await limit.limit('other')).success).toBe(true)
        await limit.resetUsedTokens('user')
        expect(await limit.limit('user')).toMatchObject({ success: true, limit: 5, remaining: 4 })
      })

      it('admits exactly 5 of 20 with cachedFixedWindow', async () => {
        const limiter = Ratelimit.cachedFixedWindow(5, '60 s')
        const limit = new Ratelimit({ redis, limiter, prefix: 'cached', ephemeralCache: new Map() })
        const results = await Promise.all(Array.from({ length: 20 }, () => limit.limit('user')))
        await Promise.all(results.map(({ pending }) => pending))
        expect(results.filter(({ success }) => success)).toHaveLength(5)
      })

      it('weighs requests, and leaves a bucket alone that does not suffice', async () => {
        const limit = new Ratelimit({
          redis,
          limiter: limiters.tokenBucket,
          prefix: 'w',
          ephemeralCache: false,
        })
        expect(await limit.limit('u', { rate: 4 })).toMatchObject({ success: true, remaining: 1 })
        expect(await limit.limit('u', { rate: 2 })).toMatchObject({ success: false })
        expect(await limit.limit('u')).toMatchObject({ success: true, remaining: 0 })
      })

      it('serves analytics, dynamic limits and the deny list', async () => {
        const limit = new Ratelimit({
          redis,
          limiter: limiters.slidingWindow,
          prefix: 'all',
          analytics: true,
          dynamicLimits: true,
          enableProtection: true,
          ephemeralCache: false,
        })
        await limit.setDynamicLimit({ limit: 2 })
        await redis.sadd('all:denyList:all', 'bad-user')
        await redis.set('all:ipDenyListStatus', 'disabled')
        const results = [await limit.limit('u'), await limit.limit('u'), await limit.limit('u')]
        expect(results.map(({ success }) => success)).toEqual([true, true, false])
        expect(await limit.limit('bad-user')).toMatchObject({ success: false, reason: 'denyList' })
        await Promise.all(results.map(({ pending }) => pending))
        const events = await redis.keys('all:events:*')
        expect(await redis.zrange(events[0] ?? '', 0, -1)).toContainEqual({ identifier: 'u', success: true })
      })
    })
  })
})
