import { randomUUID } from 'node:crypto'
import { Redis } from '@upstash/redis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { catalogueEpochKey, organizationEpochKey, publishEpoch } from '../../../src/governance/epochs.ts'
import type { Principal } from '../../../src/governance/principal.ts'
import { configuration, redisAt, somePrincipal } from './fixtures.ts'
import { type Forwarder, type Service, startForwarder, startStandIn, unusedUrl } from './stand-ins.ts'

let checkLimits: typeof import('../../../src/governance/limits.ts').checkLimits
let decideByNewLimits: typeof import('../../../src/governance/limits.ts').decideByNewLimits
let redis: Service
let forwarder: Forwarder
/** The start of a minute; each test has its own, so that none meets what another left in the isolate's memory. */
let minute = Date.UTC(2026, 10, 21, 12, 0)

const clock = () => Date.now()
/** Generous, so that a busy machine is not taken for a slow Redis. */
const patient = { LIMITS_TIMEOUT_MS: 20_000 }

beforeAll(async () => {
  // An isolate of its own: it remembers when Redis last failed, and the clock of these tests is not that of others.
  vi.resetModules()
  const limits = await import('../../../src/governance/limits.ts')
  checkLimits = limits.checkLimits
  decideByNewLimits = limits.decideByNewLimits
  redis = await startStandIn('redis', [], { LOCAL_REDIS_TOKEN: 'local-token' })
  forwarder = await startForwarder(redis.url)
}, 60_000)

afterAll(async () => {
  await forwarder?.close()
  await redis?.close()
})

beforeEach(async () => {
  // The limiter reads the system's clock, so that is the one that is moved; timers stay real.
  vi.useFakeTimers({ toFake: ['Date'] })
  vi.spyOn(console, 'log').mockImplementation(() => undefined)
  minute += 10 * 60_000
  vi.setSystemTime(minute)
  forwarder.behaviour = 'forward'
  // Makes the limiter's script known, so that tests which count requests do not see it being sent.
  await check(somePrincipal())
  forwarder.requests = 0
})

afterEach(() => {
  forwarder.cutStalled()
  vi.restoreAllMocks()
  vi.useRealTimers()
})

function check(principal: Principal, url = forwarder.url, values: Record<string, unknown> = patient) {
  return checkLimits({ configuration: configuration(values), clock, redis: redisAt(url) }, principal)
}

const colleagueOf = (principal: Principal): Principal => ({ ...principal, userId: randomUUID() })

async function checkTimes(times: number, principal: Principal) {
  const decisions = []
  for (let call = 0; call < times; call += 1) decisions.push(await check(principal))
  return decisions
}

describe('with Redis', () => {
  it('refuses the third call of a user with two a minute, and tells how long to wait', async () => {
    const principal = somePrincipal({ userLimitPerMinute: 2 })
    vi.setSystemTime(minute + 20_500)
    const decisions = await checkTimes(3, principal)
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, false])
    expect(decisions[0]).toMatchObject({ scope: null, retryAfterSeconds: 0, degraded: false })
    expect(decisions[2]).toMatchObject({ scope: 'user', retryAfterSeconds: 40, degraded: false })
    expect((await check(colleagueOf(principal))).allowed).toBe(true)
    expect((await check({ ...principal, organizationId: randomUUID() })).allowed).toBe(true)
  })

  it('refuses every user of an organization that is used up', async () => {
    const principal = somePrincipal({ organizationLimitPerMinute: 2 })
    await checkTimes(2, principal)
    const decision = await check(colleagueOf(principal))
    expect(decision).toMatchObject({ allowed: false, scope: 'organization', retryAfterSeconds: 60 })
    expect((await check(somePrincipal())).allowed).toBe(true)
  })

  it('never tells to wait less than a second', async () => {
    const principal = somePrincipal({ userLimitPerMinute: 1 })
    vi.setSystemTime(minute + 59_999)
    const [, refused] = await checkTimes(2, principal)
    expect(refused).toMatchObject({ allowed: false, retryAfterSeconds: 1 })
  })

  it('lets a waiting caller in again', async () => {
    const principal = somePrincipal({ userLimitPerMinute: 2 })
    const refused = (await checkTimes(3, principal))[2]
    expect(refused?.allowed).toBe(false)
    vi.setSystemTime(minute + 2 * 60_000)
    expect((await check(principal)).allowed).toBe(true)
  })

  it('lets a caller of a full last minute in as the window slides, not only in the next minute', async () => {
    const principal = somePrincipal({ userLimitPerMinute: 10 })
    await checkTimes(10, principal)
    vi.setSystemTime(minute + 60_000)
    expect((await check(principal)).allowed).toBe(false)
    vi.setSystemTime(minute + 90_000)
    expect((await check(principal)).allowed).toBe(true)
  })

  it('tells the longer wait when both limits refuse', async () => {
    const principal = somePrincipal({ userLimitPerMinute: 1, organizationLimitPerMinute: 2 })
    vi.setSystemTime(minute + 10_900)
    const refused = (await checkTimes(2, principal))[1]
    expect(refused).toMatchObject({ scope: 'user', retryAfterSeconds: 50 })
    vi.setSystemTime(minute + 11_100)
    const colleague = await check(colleagueOf(principal))
    expect(colleague).toMatchObject({ scope: 'organization', retryAfterSeconds: 49 })
    expect(await check(principal)).toMatchObject({ allowed: false, scope: 'user', retryAfterSeconds: 50 })
  })

  it.each([0, 1])('keeps a limit of %i exactly under concurrency', async (limit) => {
    const principal = somePrincipal({ userLimitPerMinute: limit })
    const decisions = await Promise.all(Array.from({ length: 30 }, () => check(principal)))
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(limit)
  })
})

describe('limits that have changed', () => {
  const decide = async (before: Principal, limits: Partial<Principal>) =>
    decideByNewLimits(
      { configuration: configuration(patient), clock, redis: redisAt(forwarder.url) },
      await check(before),
      { ...before, ...limits },
    )

  it('let as many calls pass as the lower one allows, of those that were counted by the higher', async () => {
    const principal = somePrincipal({ userLimitPerMinute: 60 })
    vi.setSystemTime(minute + 20_000)
    const decisions = await Promise.all(
      Array.from({ length: 20 }, () => decide(principal, { userLimitPerMinute: 5 })),
    )
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(5)
    const refused = decisions.find(({ allowed }) => !allowed)
    expect(refused).toMatchObject({ scope: 'user', retryAfterSeconds: 40 })
    // Counted once.
    expect(forwarder.requests).toBe(20)
  })

  it('do not repeat what the lower one refused, also where that is remembered', async () => {
    const principal = somePrincipal({ organizationLimitPerMinute: 1 })
    await checkTimes(3, principal)
    const raised = await decide(principal, { organizationLimitPerMinute: 3 })
    expect(raised).toMatchObject({ allowed: true, scope: null })
    // What is remembered by then does not hold either.
    await check(principal)
    expect((await decide(principal, { organizationLimitPerMinute: 3 })).allowed).toBe(true)
    expect((await decide(principal, { organizationLimitPerMinute: 3 })).allowed).toBe(false)
  })

  it('hold while Redis is away', async () => {
    forwarder.behaviour = { status: 500, body: '{"error":"down"}' }
    const principal = somePrincipal({ userLimitPerMinute: 60 })
    const decisions = []
    for (let call = 0; call < 4; call++) decisions.push(await decide(principal, { userLimitPerMinute: 2 }))
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, false, false])
    expect(decisions.at(-1)).toMatchObject({ degraded: true, scope: 'user' })
  })
})

describe('the round trip', () => {
  it('is one HTTP request for both limits and both epochs', async () => {
    const principal = somePrincipal()
    const direct = redisAt(redis.url)
    await publishEpoch(direct, organizationEpochKey(principal.organizationId), 41)
    await publishEpoch(direct, catalogueEpochKey, 7)
    forwarder.requests = 0
    const decision = await check(principal)
    expect(decision.epochs).toEqual({ organization: 41, catalogue: 7 })
    expect(forwarder.requests).toBe(1)
    await checkTimes(4, principal)
    expect(forwarder.requests).toBe(5)
  })

  it('is two when Redis does not know the script', async () => {
    await redisAt(redis.url).scriptFlush()
    const decision = await check(somePrincipal({ userLimitPerMinute: 0 }))
    expect(decision).toMatchObject({ allowed: false, scope: 'user', degraded: false })
    expect(forwarder.requests).toBe(2)
  })

  it('tells missing and unreadable epochs as null', async () => {
    const principal = somePrincipal()
    expect((await check(principal)).epochs.organization).toBeNull()
    for (const value of ['five', '1.5', '"7"', '{}']) {
      await redisAt(redis.url).set(organizationEpochKey(principal.organizationId), value)
      const decision = await check(principal)
      expect(decision).toMatchObject({ allowed: true, degraded: false })
      expect(decision.epochs.organization).toBeNull()
    }
  })

  it('still reads the epochs when it repeats a refusal', async () => {
    const principal = somePrincipal({ userLimitPerMinute: 1 })
    await checkTimes(2, principal)
    await publishEpoch(redisAt(redis.url), organizationEpochKey(principal.organizationId), 3)
    forwarder.requests = 0
    const decision = await check(principal)
    expect(decision).toMatchObject({ allowed: false, scope: 'user', epochs: { organization: 3 } })
    expect(forwarder.requests).toBe(1)
  })

  it('counts a refused user once against the organization, not on every repetition', async () => {
    const principal = somePrincipal({ userLimitPerMinute: 1, organizationLimitPerMinute: 5 })
    await checkTimes(20, principal)
    // One call allowed and one refused were counted; three are left.
    const decisions = await checkTimes(4, colleagueOf({ ...principal, userLimitPerMinute: 100 }))
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, false])
  })
})

describe('Redis away', () => {
  it('allows the lower cap of each user and organization, however many call at once', async () => {
    const url = await unusedUrl()
    const principal = somePrincipal()
    const values = { ...patient, DEGRADED_RATE_LIMIT: 7 }
    const decisions = await Promise.all(Array.from({ length: 100 }, () => check(principal, url, values)))
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(7)
    expect(decisions.every(({ degraded }) => degraded)).toBe(true)
    expect(decisions.every(({ epochs }) => epochs.organization === null && epochs.catalogue === null)).toBe(
      true,
    )
    const refused = decisions.filter(({ allowed }) => !allowed)
    expect(refused.every(({ retryAfterSeconds }) => retryAfterSeconds >= 1)).toBe(true)
    expect(await check(colleagueOf(principal), url, values)).toMatchObject({
      allowed: false,
      scope: 'organization',
    })
    expect((await check(somePrincipal(), url, values)).allowed).toBe(true)
    vi.setSystemTime(minute + 60_000)
    expect((await check(principal, url, values)).allowed).toBe(true)
  })

  it('never allows more than the limit itself, and does not charge a refused user to the organization', async () => {
    const url = await unusedUrl()
    const values = { ...patient, DEGRADED_RATE_LIMIT: 7 }
    const principal = somePrincipal({ userLimitPerMinute: 2 })
    const decisions = await Promise.all(Array.from({ length: 50 }, () => check(principal, url, values)))
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(2)
    const colleague = colleagueOf({ ...principal, userLimitPerMinute: 100 })
    const others = await Promise.all(Array.from({ length: 50 }, () => check(colleague, url, values)))
    expect(others.filter(({ allowed }) => allowed)).toHaveLength(5)
    expect(others.find(({ allowed }) => !allowed)).toMatchObject({ scope: 'organization', degraded: true })
  })

  it('repeats a refusal that Redis gave just before', async () => {
    const principal = somePrincipal({ userLimitPerMinute: 1 })
    await checkTimes(2, principal)
    const decision = await check(principal, await unusedUrl())
    expect(decision).toMatchObject({ allowed: false, scope: 'user', degraded: true })
  })
})

describe('Redis slow', () => {
  const impatient = { LIMITS_TIMEOUT_MS: 100, DEGRADED_RATE_LIMIT: 5 }

  it('costs one call the time-out, spares the next ones, and is tried again by one call after two seconds', async () => {
    forwarder.behaviour = 'stall'
    const started = performance.now()
    expect(await check(somePrincipal(), forwarder.url, impatient)).toMatchObject({
      allowed: true,
      degraded: true,
      epochs: { organization: null, catalogue: null },
    })
    expect(performance.now() - started).toBeGreaterThanOrEqual(95)
    expect(forwarder.requests).toBe(1)

    for (let call = 0; call < 20; call += 1) await check(somePrincipal(), forwarder.url, impatient)
    expect(forwarder.requests).toBe(1)

    vi.setSystemTime(minute + 2_001)
    await Promise.all(Array.from({ length: 20 }, () => check(somePrincipal(), forwarder.url, impatient)))
    expect(forwarder.requests).toBe(2)

    vi.setSystemTime(minute + 4_002)
    forwarder.behaviour = 'forward'
    expect((await check(somePrincipal())).degraded).toBe(false)
    const decisions = await Promise.all(Array.from({ length: 5 }, () => check(somePrincipal())))
    expect(decisions.some(({ degraded }) => degraded)).toBe(false)
    expect(forwarder.requests).toBe(8)
  })

  it('leaves no rejection behind when the late answer fails or is aborted', async () => {
    const unhandled: unknown[] = []
    const notice = (reason: unknown) => unhandled.push(reason)
    process.on('unhandledRejection', notice)
    forwarder.behaviour = 'stall'
    await check(somePrincipal(), forwarder.url, impatient)
    vi.setSystemTime(minute + 5_000)
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
    const dependencies = { configuration: configuration(impatient), clock, redis: aborting }
    expect(await checkLimits(dependencies, somePrincipal())).toMatchObject({ degraded: true })
    await vi.waitFor(() => expect(aborted.every((signal) => signal.aborted)).toBe(true), { timeout: 5_000 })
    forwarder.cutStalled()
    // A rejection that nobody handles is reported after the turn it happened in; several pass here.
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    await check(somePrincipal(), await unusedUrl())
    process.off('unhandledRejection', notice)
    expect(unhandled).toEqual([])
  })
})

describe('Redis answering nonsense', () => {
  const commandError = { error: 'WRONGTYPE Operation against a key holding the wrong kind of value' }

  it.each([
    ['a refusal', { status: 400, body: '{"error":"ERR max requests limit exceeded"}' }],
    ['a wrong token', { status: 401, body: '{"error":"Unauthorized"}' }],
    ['a failing proxy', { status: 502, body: '<html>Bad gateway</html>' }],
    ['no JSON', { status: 200, body: 'hello' }],
    ['another shape', { status: 200, body: '{"result":"hello"}' }],
    ['too few answers', { status: 200, body: '[{"result":[null,null]}]' }],
    [
      'a failed script',
      { status: 200, body: JSON.stringify([{ result: [null, null] }, commandError, { result: [9, 10] }]) },
    ],
    [
      'failed epochs',
      { status: 200, body: JSON.stringify([commandError, { result: [9, 10] }, { result: [9, 10] }]) },
    ],
  ])('%s is taken as Redis being away', async (_name, answer) => {
    forwarder.behaviour = answer
    const decision = await check(somePrincipal(), forwarder.url, { ...patient, DEGRADED_RATE_LIMIT: 1 })
    expect(decision).toMatchObject({ allowed: true, degraded: true })
  })

  it('logs the reason without the token', async () => {
    forwarder.behaviour = { status: 502, body: '<html>Bad gateway</html>' }
    await check(somePrincipal())
    const lines = vi.mocked(console.log).mock.calls.flat().join('\n')
    expect(lines).toContain('limits_degraded')
    expect(lines).not.toContain('local-token')
  })
})
