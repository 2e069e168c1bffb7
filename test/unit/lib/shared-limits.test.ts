import { randomUUID } from 'node:crypto'
import { Redis } from '@upstash/redis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { configuration, redisAt } from '../calls/fixtures.ts'
import { emptyRedis, type Forwarder, startForwarder, unusedUrl } from '../calls/stand-ins.ts'

type Limits = typeof import('../../../src/lib/shared-limits.ts')
type Guard = typeof import('../../../src/identity/look-up-guard.ts')

let limits: Limits
let guard: Guard
let forwarder: Forwarder
/** The start of a minute; each test has its own, so that none meets what another left in the isolate's memory. */
let minute = Date.UTC(2026, 10, 21, 12, 0)

const clock = () => Date.now()
/** Generous, so that a busy machine is not taken for a slow Redis. */
const patient = { LIMITS_TIMEOUT_MS: 20_000 }
const impatient = { LIMITS_TIMEOUT_MS: 100, DEGRADED_RATE_LIMIT: 5 }

beforeAll(async () => {
  // An isolate of its own: it remembers when Redis last failed, and the clock of these tests is not that of others.
  vi.resetModules()
  limits = await import('../../../src/lib/shared-limits.ts')
  guard = await import('../../../src/identity/look-up-guard.ts')
  forwarder = await startForwarder((await emptyRedis()).url)
}, 60_000)

afterAll(() => forwarder?.close())

beforeEach(async () => {
  // The limiter reads the system's clock, so that is the one that is moved; timers stay real.
  vi.useFakeTimers({ toFake: ['Date'] })
  vi.spyOn(console, 'log').mockImplementation(() => undefined)
  minute += 10 * 60_000
  vi.setSystemTime(minute)
  forwarder.behaviour = 'forward'
  // Makes the limiter's script known, so that tests which count requests do not see it being sent.
  await count()
  forwarder.requests = 0
})

afterEach(() => {
  forwarder.cutStalled()
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const dependencies = (url = forwarder.url, values: Record<string, unknown> = patient) => ({
  configuration: configuration(values),
  clock,
  redis: redisAt(url),
})

const count = (perMinute = 1_000, identifier: string = randomUUID(), deps = dependencies()) =>
  limits.countShared(deps, { name: 'test', perMinute }, identifier)

const countTimes = async (times: number, perMinute: number, identifier: string) => {
  const counts = []
  for (let each = 0; each < times; each += 1) counts.push(await count(perMinute, identifier))
  return counts
}

describe('with Redis', () => {
  it('refuses the third of two a minute, and says how long to wait', async () => {
    vi.setSystemTime(minute + 20_500)
    const [first, , third] = await countTimes(3, 2, 'x')
    expect(first).toEqual({ allowed: true, retryAfterSeconds: 0, degraded: false })
    expect(third).toEqual({ allowed: false, retryAfterSeconds: 40, degraded: false })
    expect((await count(2, 'y')).allowed).toBe(true)
    const other = { name: 'another', perMinute: 2 }
    expect((await limits.countShared(dependencies(), other, 'x')).allowed).toBe(true)
  })

  it('is not taken for away while the event loop is busy', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] })
    vi.setSystemTime(minute)
    const counting = count(1_000, 'busy', dependencies(forwarder.url, impatient))
    await vi.waitUntil(() => vi.getTimerCount() > 0)
    // The loop was busy for longer than Redis may take: its first timer is late, and the answer is not read yet.
    vi.setSystemTime(minute + 400)
    vi.advanceTimersToNextTimer()
    expect(await counting).toEqual({ allowed: true, retryAfterSeconds: 0, degraded: false })
  })

  it('never says to wait less than a second', async () => {
    vi.setSystemTime(minute + 59_999)
    expect((await countTimes(2, 1, 'x'))[1]).toMatchObject({ allowed: false, retryAfterSeconds: 1 })
  })

  it('lets in again as the window slides, not only in the next minute', async () => {
    await countTimes(10, 10, 'x')
    vi.setSystemTime(minute + 60_000)
    expect((await count(10, 'x')).allowed).toBe(false)
    vi.setSystemTime(minute + 90_000)
    expect((await count(10, 'x')).allowed).toBe(true)
  })

  it('keeps a limit exactly under concurrency', async () => {
    const counts = await Promise.all(Array.from({ length: 40 }, () => count(15, 'x')))
    expect(counts.filter(({ allowed }) => allowed)).toHaveLength(15)
  })

  it('tells whether there is room without taking any', async () => {
    const limit = { name: 'test', perMinute: 2 }
    for (let each = 0; each < 5; each += 1) {
      expect(await limits.hasSharedRoom(dependencies(), limit, 'x')).toBe(true)
    }
    await countTimes(2, 2, 'x')
    expect(await limits.hasSharedRoom(dependencies(), limit, 'x')).toBe(false)
  })
})

describe('Redis away', () => {
  it('leaves the lower cap of the isolate, for each identifier, until the next minute', async () => {
    const away = dependencies(await unusedUrl(), { ...patient, DEGRADED_RATE_LIMIT: 7 })
    const counts = await Promise.all(Array.from({ length: 20 }, () => count(1_000, 'x', away)))
    expect(counts.filter(({ allowed }) => allowed)).toHaveLength(7)
    expect(counts[19]).toEqual({ allowed: false, retryAfterSeconds: 60, degraded: true })
    expect(await count(1_000, 'y', away)).toMatchObject({ allowed: true, degraded: true })
    vi.setSystemTime(minute + 60_000)
    expect(await count(1_000, 'x', away)).toMatchObject({ allowed: true, degraded: true })
  })

  it('never raises a limit', async () => {
    const away = dependencies(await unusedUrl(), { ...patient, DEGRADED_RATE_LIMIT: 7 })
    const counts = await Promise.all(Array.from({ length: 5 }, () => count(2, 'x', away)))
    expect(counts.filter(({ allowed }) => allowed)).toHaveLength(2)
  })

  it('costs one request the time-out, spares the next ones, and is tried again by one after two seconds', async () => {
    forwarder.behaviour = 'stall'
    const slow = dependencies(forwarder.url, impatient)
    const started = performance.now()
    expect(await count(9, randomUUID(), slow)).toMatchObject({ allowed: true, degraded: true })
    expect(performance.now() - started).toBeGreaterThanOrEqual(95)
    for (let each = 0; each < 20; each += 1) await count(9, randomUUID(), slow)
    expect(forwarder.requests).toBe(1)
    vi.setSystemTime(minute + 2_001)
    await Promise.all(Array.from({ length: 20 }, () => count(9, randomUUID(), slow)))
    expect(forwarder.requests).toBe(2)
    vi.setSystemTime(minute + 4_002)
    forwarder.behaviour = 'forward'
    expect((await count()).degraded).toBe(false)
    expect((await count()).degraded).toBe(false)
  })

  it('leaves no rejection behind when the late answer fails or is aborted', async () => {
    const unhandled: unknown[] = []
    const notice = (reason: unknown) => unhandled.push(reason)
    process.on('unhandledRejection', notice)
    forwarder.behaviour = 'stall'
    const aborted: AbortSignal[] = []
    const aborting = new Redis({
      url: forwarder.url,
      token: 'local-token',
      retry: { retries: 0 },
      signal: () => {
        const signal = AbortSignal.timeout(120)
        aborted.push(signal)
        return signal
      },
    })
    expect(await count(9, 'x', { ...dependencies(forwarder.url, impatient), redis: aborting })).toMatchObject(
      {
        degraded: true,
      },
    )
    await vi.waitFor(() => expect(aborted.every((signal) => signal.aborted)).toBe(true), { timeout: 5_000 })
    forwarder.cutStalled()
    // A rejection that nobody handles is reported after the turn it happened in; several pass here.
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', notice)
    expect(unhandled).toEqual([])
  })

  it.each([
    ['a refusal', { status: 400, body: '{"error":"ERR max requests limit exceeded"}' }],
    ['a wrong token', { status: 401, body: '{"error":"Unauthorized"}' }],
    ['a failing proxy', { status: 502, body: '<html>Bad gateway</html>' }],
    ['no JSON', { status: 200, body: 'hello' }],
  ])('is also %s', async (_name, answer) => {
    forwarder.behaviour = answer
    expect(await count()).toMatchObject({ allowed: true, degraded: true })
  })

  it('is logged without the token', async () => {
    const lines: string[] = []
    vi.spyOn(console, 'warn').mockImplementation((line) => void lines.push(String(line)))
    vi.spyOn(console, 'log').mockImplementation((line) => void lines.push(String(line)))
    forwarder.behaviour = { status: 401, body: '{"error":"Unauthorized"}' }
    await count()
    expect(lines.join()).toContain('limits_degraded')
    expect(lines.join()).not.toContain('local-token')
  })
})

describe('an address whose keys keep being refused', () => {
  /** Several isolates: each has its own memory, and all share one Redis. */
  const anotherIsolate = async (): Promise<Guard> => {
    vi.resetModules()
    return import('../../../src/identity/look-up-guard.ts')
  }

  it('is known to every isolate', async () => {
    const address = '192.0.2.77'
    const refusals = Array.from({ length: 6 }, async () => {
      const isolate = await anotherIsolate()
      // Less than one isolate alone takes for suspicious.
      await Promise.all(Array.from({ length: 50 }, () => isolate.noteRefusal(dependencies(), address)))
    })
    await Promise.all(refusals)
    expect(await guard.mayLookUp(dependencies(), address)).toBe(false)
    expect(await guard.mayLookUp(dependencies(), '192.0.2.78')).toBe(true)
    vi.setSystemTime(minute + 2 * 60_000)
    expect(await guard.mayLookUp(dependencies(), address)).toBe(true)
  })

  it('is bounded by each isolate alone while Redis is away', async () => {
    const away = dependencies(await unusedUrl())
    const address = '192.0.2.79'
    for (let each = 0; each < 60; each += 1) await guard.noteRefusal(away, address)
    const allowed = []
    for (let each = 0; each < 20; each += 1) allowed.push(await guard.mayLookUp(away, address))
    expect(allowed.filter(Boolean)).toHaveLength(5)
  })

  it('is not looked for where the address is unknown', async () => {
    await guard.noteRefusal(dependencies(), null)
    expect(await guard.mayLookUp(dependencies(), null)).toBe(true)
    expect(forwarder.requests).toBe(0)
  })
})
