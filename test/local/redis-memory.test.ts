import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ratelimit } from '@upstash/ratelimit'
import { Redis } from '@upstash/redis'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { AdjustableClock } from '../../scripts/local/adjustable-clock.ts'
import { type RedisOptions, startRedis } from '../../scripts/local/redis/start.ts'
import type { RunningServer } from '../../scripts/node/loopback-server.ts'

const running: RunningServer[] = []
const folder = mkdtempSync(join(tmpdir(), 'headgate-redis-memory-'))

async function open(options: RedisOptions = {}): Promise<{ redis: Redis; standIn: RunningServer }> {
  const standIn = await startRedis(options)
  running.push(standIn)
  return { standIn, redis: new Redis({ url: standIn.url, token: 'local', enableTelemetry: false }) }
}

afterEach(async () => {
  vi.useRealTimers()
  for (const standIn of running.splice(0)) await standIn.close()
  rmSync(folder, { recursive: true, force: true })
})

describe('the clock of the store in memory', () => {
  it('expires keys when it is moved', async () => {
    const clock = new AdjustableClock()
    const { redis } = await open({ clock })
    await redis.set('short', 1, { ex: 10 })
    await redis.set('long', 1, { ex: 100 })
    await redis.hset('hash', { a: 1 })
    await redis.pexpire('hash', 10_000)
    clock.advance(9_000)
    expect(await redis.exists('short', 'long', 'hash')).toBe(3)
    expect(await redis.ttl('short')).toBe(1)
    clock.advance(1_001)
    expect(await redis.exists('short', 'long', 'hash')).toBe(1)
    expect(await redis.set('short', 2, { nx: true })).toBe('OK')
    expect(await redis.ttl('short')).toBe(-1)
  })

  it('is moved over HTTP with the control interface only', async () => {
    const advance = (url: string, body: string): Promise<Response> =>
      fetch(`${url}/control/advance`, { method: 'POST', body })
    const { standIn, redis } = await open({ control: true })
    await redis.set('k', 1, { px: 60_000 })
    expect((await advance(standIn.url, '{"milliseconds":60001}')).status).toBe(200)
    expect(await redis.get('k')).toBeNull()
    for (const body of ['{"milliseconds":-1}', '{"milliseconds":"1"}', 'x', '{}']) {
      expect((await advance(standIn.url, body)).status).toBe(400)
    }
    const { standIn: uncontrolled } = await open()
    expect((await advance(uncontrolled.url, '{"milliseconds":1}')).status).toBe(401)
  })

  it('refills limits, together with the clock of the limiter', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_700_000_000_000 })
    const { redis } = await open()
    const limiter = Ratelimit.slidingWindow(2, '10 s')
    const limit = new Ratelimit({ redis, limiter, prefix: 'p', ephemeralCache: false })
    const admitted = async (): Promise<boolean> => (await limit.limit('u')).success
    expect([await admitted(), await admitted(), await admitted()]).toEqual([true, true, false])
    vi.setSystemTime(1_700_000_000_000 + 20_001)
    expect(await admitted()).toBe(true)
  })
})

describe('the file of the store in memory', () => {
  const file = join(folder, 'nested', 'redis.jsonl')

  it('keeps every type, byte and lifetime over a restart', async () => {
    const first = await open({ file })
    await first.redis.set('text', '🌱', { ex: 1_000 })
    await first.redis.hset('hash', { a: 1 })
    await first.standIn.close()

    const { redis } = await open({ file })
    expect(await redis.get('text')).toBe('🌱')
    expect(await redis.ttl('text')).toBeGreaterThan(990)
    expect(await redis.hgetall('hash')).toEqual({ a: 1 })
  })

  it('has every change before it is answered', async () => {
    const { redis } = await open({ file })
    await redis.set('kept', 1)
    await redis.set('gone', 1)
    await redis.del('gone')
    const copy = join(folder, 'copy.jsonl')
    copyFileSync(file, copy)
    const killed = await open({ file: copy })
    expect((await killed.redis.keys('*')).sort()).toEqual(expect.arrayContaining(['kept']))
    expect(await killed.redis.exists('gone')).toBe(0)
  })

  it('does not bring back what expired meanwhile', async () => {
    const first = await open({ file, clock: new AdjustableClock() })
    await first.redis.set('k', 1, { ex: 10 })
    await first.standIn.close()
    const clock = new AdjustableClock()
    clock.advance(11_000)
    const { redis } = await open({ file, clock })
    expect(await redis.get('k')).toBeNull()
  })

  it('is refused while another process has it, or when it is damaged', async () => {
    const { standIn } = await open({ file })
    await expect(startRedis({ file })).rejects.toThrow(/in use by process \d+/)
    await standIn.close()
    writeFileSync(file, 'nonsense\n')
    await expect(startRedis({ file })).rejects.toThrow(/is damaged in line 1/)
    // A refusal leaves no claim behind.
    writeFileSync(file, '')
    expect(await (await open({ file })).redis.keys('*')).toEqual([])
  })
})

describe('scripts of the store in memory', () => {
  it('compute with doubles, as Redis does, not with 32-bit integers', async () => {
    const { redis } = await open()
    const run = (source: string, ...values: string[]): Promise<unknown> => redis.eval(source, [], values)
    expect(await run('return 2147483647 + 1')).toBe(2_147_483_648)
    expect(await run('return ARGV[1] * 3600 * 1000', '1000000')).toBe(3_600_000_000_000)
    expect(await run('return math.floor(ARGV[1] / 1000) * 1000', '1700000000123')).toBe(1_700_000_000_000)
  })

  it('cannot reach files or the system', async () => {
    const { redis } = await open()
    for (const name of ['os', 'io', 'require', 'dofile', 'loadfile', 'debug', 'package', 'js']) {
      expect(await redis.eval(`return ${name} == nil`, [], [])).toBe(1)
    }
  })
})
