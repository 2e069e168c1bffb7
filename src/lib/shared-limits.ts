import { Ratelimit } from '@upstash/ratelimit'
import type { Redis } from '@upstash/redis'
import { BoundedMap } from './bounded-map.ts'
import type { Clock } from './clock.ts'
import { sha256Hex } from './crypto.ts'
import { errorText, logEvent } from './log.ts'
import { withinLoopTime } from './time-limit.ts'

// Limits that all isolates share through Redis, for requests that reach no ledger: failed authentication and the management
// API. The ledger applies the limits of calls.

/** A sliding window of a minute. */
export interface SharedLimit {
  /** Names the counters in Redis. */
  name: string
  perMinute: number
}

export interface SharedCount {
  allowed: boolean
  /** Whole seconds, at least 1 when refused; 0 when allowed. */
  retryAfterSeconds: number
  /** Redis did not answer in time: the lower cap of this isolate decided. */
  degraded: boolean
}

export interface SharedLimitDeps {
  clock: Clock
  redis: Redis
  configuration: { LIMITS_TIMEOUT_MS: number; DEGRADED_RATE_LIMIT: number }
}

const WINDOW_MS = 60_000
/** The circuit stays open this long after Redis failed, so that not every request waits for the time-out. */
const OPEN_MS = 2_000

// Plain data only: the runtime cancels pending I/O with the request that started it.
const degradedCounts = new BoundedMap<string, number>(10_000)
let degradedWindow = 0
/** When the circuit breaker lets a request through again, in milliseconds since the epoch; 0 while Redis answers. */
let openUntil = 0

/** Addresses of callers are counted whole, and are in Redis as a digest only. */
const keyOf = (identifier: string): string => sha256Hex(identifier).slice(0, 32)

/**
 * Counts one against a limit. While Redis is away, slow (LIMITS_TIMEOUT_MS) or answers errors, this isolate allows at most
 * DEGRADED_RATE_LIMIT a minute for each identifier. It never rejects.
 */
export async function countShared(
  deps: SharedLimitDeps,
  limit: SharedLimit,
  identifier: string,
): Promise<SharedCount> {
  const outcome = await callRedis(deps, () => limiterOf(deps.redis, limit).limit(keyOf(identifier)))
  if (outcome === null) return countAlone(deps, limit, identifier)
  // The library reads the system's clock, so its `reset` is measured by that one too.
  const retryAfterSeconds = outcome.success ? 0 : secondsUntil(outcome.reset, Date.now())
  return { allowed: outcome.success, retryAfterSeconds, degraded: false }
}

/** Whether a limit leaves room for another one. Counts nothing; true while Redis is away. It never rejects. */
export async function hasSharedRoom(
  deps: SharedLimitDeps,
  limit: SharedLimit,
  identifier: string,
): Promise<boolean> {
  const outcome = await callRedis(deps, () => limiterOf(deps.redis, limit).getRemaining(keyOf(identifier)))
  return outcome === null || outcome.remaining > 0
}

/** @returns null when Redis did not answer in time, or while the circuit is open. */
async function callRedis<Answer>(
  { clock, configuration }: SharedLimitDeps,
  ask: () => Promise<Answer>,
): Promise<Answer | null> {
  const now = clock()
  if (now < openUntil) return null
  // A single request tries Redis again; the others continue without it.
  if (openUntil !== 0) openUntil = now + OPEN_MS
  try {
    const answer = await withinLoopTime(ask(), configuration.LIMITS_TIMEOUT_MS, 'Redis')
    openUntil = 0
    return answer
  } catch (error) {
    openUntil = clock() + OPEN_MS
    logEvent('warn', 'limits_degraded', { reason: errorText(error) })
    return null
  }
}

/** Counts a limit in Redis. */
export function limiterOf(redis: Redis, { name, perMinute }: SharedLimit): Ratelimit {
  return new Ratelimit({
    redis,
    limiter: Ratelimit.slidingWindow(perMinute, `${WINDOW_MS} ms`),
    prefix: `limit:${name}`,
    // The cache repeats a refusal until the next window begins, which is longer than a sliding window refuses.
    ephemeralCache: false,
    // The library's own time-out lets the request pass; callers set a deadline.
    timeout: 0,
    enableTelemetry: false,
  })
}

/** Decides without Redis. Synchronous, so that concurrent requests cannot pass the cap. */
function countAlone(
  { clock, configuration }: SharedLimitDeps,
  { name, perMinute }: SharedLimit,
  identifier: string,
): SharedCount {
  const now = clock()
  const window = Math.floor(now / WINDOW_MS)
  if (window !== degradedWindow) degradedCounts.clear()
  degradedWindow = window
  const key = `${name}:${identifier}`
  const count = degradedCounts.get(key) ?? 0
  if (count >= Math.min(perMinute, configuration.DEGRADED_RATE_LIMIT)) {
    return { allowed: false, retryAfterSeconds: secondsUntil((window + 1) * WINDOW_MS, now), degraded: true }
  }
  degradedCounts.set(key, count + 1)
  return { allowed: true, retryAfterSeconds: 0, degraded: true }
}

/** @returns whole seconds, at least 1. */
const secondsUntil = (instant: number, now: number) => Math.max(1, Math.ceil((instant - now) / 1_000))
