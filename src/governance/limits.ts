import { Ratelimit } from '@upstash/ratelimit'
import type { Redis } from '@upstash/redis'
import type { Deps } from '../deps.ts'
import { BoundedMap } from '../lib/bounded-map.ts'
import { errorText, logEvent } from '../lib/log.ts'
import { withinTime } from '../lib/time-limit.ts'
import { catalogueEpochKey, type EpochReading, organizationEpochKey } from './epochs.ts'
import type { Principal } from './principal.ts'

export type LimitScope = 'organization' | 'user'

export interface LimitDecision {
  allowed: boolean
  /** Whose limit refused the call; null when it is allowed. */
  scope: LimitScope | null
  /** Whole seconds, at least 1 when refused; 0 when allowed. */
  retryAfterSeconds: number
  /** Redis could not be asked in time, so this isolate's own lower cap decided. */
  degraded: boolean
  epochs: EpochReading
  /** What this call came to where it was counted, for `decideByNewLimits`. */
  counts: readonly Count[]
}

interface Count {
  scope: LimitScope
  /** Calls in the window, with this one. */
  calls: number
  /** Until the window ends, in whole seconds. */
  resetSeconds: number
}

/** One limit that a call has to pass. */
interface Allowance {
  scope: LimitScope
  /** Names the counter; also its key in what this isolate remembers. */
  identifier: string
  perMinute: number
}

interface Refusal {
  scope: LimitScope
  retryAfterSeconds: number
}

type LimitDeps = Pick<Deps, 'configuration' | 'clock' | 'redis'>

const WINDOW_MS = 60_000
/** How long a refusal by Redis is repeated without asking again. */
const REFUSAL_MEMORY_MS = 1_000
/** How long Redis is left alone after it failed, so that not every call waits for the time-out. */
const REST_MS = 2_000
const NO_EPOCHS: EpochReading = { organization: null, catalogue: null }

// Plain data only: pending I/O that requests share dies with the request that started it.
const refusals = new BoundedMap<string, Refusal & { until: number }>(10_000)
const degradedCounts = new BoundedMap<string, number>(10_000)
let degradedWindow = 0
/** When Redis may be asked again, in milliseconds since the epoch; 0 while it answers. */
let restingUntil = 0

/**
 * Counts a call against its organization and its user, and reads the epochs on the way: one HTTP request to Redis
 * (two when Redis has to be sent the limiter's script first).
 *
 * Redis away, slow (LIMITS_TIMEOUT_MS) or answering errors never means unlimited: this isolate then allows at most
 * DEGRADED_RATE_LIMIT calls a minute for each organization and for each user.
 *
 * A call that the user's limit refuses may have been counted against the organization, since both are asked at once;
 * the sliding window itself counts no call that it refuses. For the next second the refusal is remembered here and
 * nothing more is counted.
 * @returns always; it throws nothing.
 */
export async function checkLimits(deps: LimitDeps, principal: Principal): Promise<LimitDecision> {
  const now = deps.clock()
  const allowances = allowancesOf(principal)
  const remembered = rememberedRefusals(allowances, now)
  if (now < restingUntil) return decideAlone(deps, allowances, remembered, now)
  // After a rest one call tries while the others go on without Redis.
  if (restingUntil !== 0) restingUntil = now + REST_MS
  try {
    const asked = askRedis(deps.redis, principal, remembered.length > 0 ? [] : allowances)
    const answer = await withinTime(asked, deps.configuration.LIMITS_TIMEOUT_MS, 'Redis')
    restingUntil = 0
    for (const refusal of answer.refusals) remember(refusal, allowances, deps.clock())
    return decision([...remembered, ...answer.refusals], answer, false)
  } catch (error) {
    restingUntil = deps.clock() + REST_MS
    logEvent('warn', 'limits_degraded', { reason: errorText(error) })
    return decideAlone(deps, allowances, remembered, deps.clock())
  }
}

/**
 * Decides once more for a principal whose limits turned out to be others than those the call was counted by: a change
 * of limits holds from the next call on. A call that was let in is judged by what it came to, and not counted again;
 * one that was refused was not counted against the limit that refused it, so Redis is asked by the new ones.
 */
export async function decideByNewLimits(
  deps: LimitDeps,
  counted: LimitDecision,
  principal: Principal,
): Promise<LimitDecision> {
  if (!counted.allowed) return checkLimits(deps, principal)
  const refusals = allowancesOf(principal).flatMap(({ scope, perMinute }): Refusal[] => {
    const count = counted.counts.find((each) => each.scope === scope)
    return count && count.calls > perMinute ? [{ scope, retryAfterSeconds: count.resetSeconds }] : []
  })
  return decision(refusals, counted, counted.degraded)
}

/** Whether two principals are counted by the same limits. */
export const haveSameLimits = (one: Principal, other: Principal): boolean =>
  one.organizationLimitPerMinute === other.organizationLimitPerMinute &&
  one.userLimitPerMinute === other.userLimitPerMinute

function allowancesOf(principal: Principal): Allowance[] {
  const { organizationId, userId, organizationLimitPerMinute, userLimitPerMinute } = principal
  return [
    {
      scope: 'organization',
      identifier: `organization:${organizationId}`,
      perMinute: organizationLimitPerMinute,
    },
    // A user of two organizations has a limit in each.
    { scope: 'user', identifier: `user:${organizationId}:${userId}`, perMinute: userLimitPerMinute },
  ]
}

/** @param refused by one limit or by both, then the longer wait counts; nothing when the call may go on. */
function decision(
  refused: Refusal[],
  { epochs, counts }: Pick<LimitDecision, 'epochs' | 'counts'>,
  degraded: boolean,
): LimitDecision {
  const longest = refused.toSorted((left, right) => right.retryAfterSeconds - left.retryAfterSeconds)[0]
  return {
    allowed: longest === undefined,
    scope: longest?.scope ?? null,
    retryAfterSeconds: longest?.retryAfterSeconds ?? 0,
    degraded,
    epochs,
    counts,
  }
}

/** @returns whole seconds, at least 1. */
const secondsUntil = (instant: number, now: number) => Math.max(1, Math.ceil((instant - now) / 1_000))

/**
 * Why not the library's own `ephemeralCache`: it repeats a refusal until the next window begins. A sliding window that
 * was full refuses the first call of the next minute, so a caller just above its limit would be shut out of all of
 * every second minute. It also could not keep a refused user from being counted against the organization.
 */
function rememberedRefusals(allowances: Allowance[], now: number): Refusal[] {
  return allowances.flatMap((allowance) => {
    const refusal = refusals.get(limitName(allowance))
    return refusal && now < refusal.until ? [refusal] : []
  })
}

function remember(refusal: Refusal, allowances: Allowance[], now: number): void {
  for (const allowance of allowances) {
    if (allowance.scope === refusal.scope) {
      refusals.set(limitName(allowance), { ...refusal, until: now + REFUSAL_MEMORY_MS })
    }
  }
}

/** What another limit refused is no refusal by this one. */
const limitName = ({ identifier, perMinute }: Allowance) => `${identifier} ${perMinute}`

/** @throws what the client throws, and for each command that Redis answered with an error. */
async function askRedis(redis: Redis, principal: Principal, allowances: Allowance[]) {
  const batch = openBatch(redis)
  const epochs = batch.add<unknown[]>((pipeline) =>
    pipeline.mget(organizationEpochKey(principal.organizationId), catalogueEpochKey),
  )
  const checks = allowances.map((allowance) => limiterOf(batch, allowance).limit(allowance.identifier))
  batch.send()
  const [[organization, catalogue], ...outcomes] = await Promise.all([epochs, ...checks])
  const refusals: Refusal[] = []
  const counts: Count[] = []
  for (const [index, { scope }] of allowances.entries()) {
    const outcome = outcomes[index]
    if (!outcome) continue
    // The library reads the system's clock, so its `reset` is measured by that one too.
    const resetSeconds = secondsUntil(outcome.reset, Date.now())
    if (outcome.success) counts.push({ scope, calls: outcome.limit - outcome.remaining, resetSeconds })
    else refusals.push({ scope, retryAfterSeconds: resetSeconds })
  }
  return {
    epochs: { organization: epochOf(organization), catalogue: epochOf(catalogue) },
    refusals,
    counts,
  }
}

const epochOf = (value: unknown) => (Number.isSafeInteger(value) ? Number(value) : null)

function limiterOf(batch: Batch, { perMinute }: Allowance): Ratelimit {
  return new Ratelimit({
    redis: batch.redis,
    limiter: Ratelimit.slidingWindow(perMinute, `${WINDOW_MS} ms`),
    prefix: 'limit',
    ephemeralCache: false,
    // The library's own time-out lets the call pass; one deadline over everything is set in checkLimits.
    timeout: 0,
    enableTelemetry: false,
  })
}

type Pipeline = ReturnType<Redis['pipeline']>

interface Batch {
  /** What the limiter takes for a client: its scripts join the batch. */
  redis: Pick<Redis, 'evalsha' | 'eval' | 'get' | 'set'>
  add<Result>(queue: (pipeline: Pipeline) => unknown): Promise<Result>
  send(): void
}

/**
 * Collects commands for one HTTP request. The client's automatic pipelining would make two of them, since it keeps
 * reads (MGET) apart from writes (the scripts).
 */
function openBatch(redis: Redis): Batch {
  const pipeline = redis.pipeline()
  const sent = Promise.withResolvers<{ result: unknown; error?: string }[]>()
  const add = async <Result>(queue: (pipeline: Pipeline) => unknown): Promise<Result> => {
    const position = pipeline.length()
    queue(pipeline)
    const answer = (await sent.promise)[position]
    if (answer === undefined) throw new Error('Redis answered fewer commands than it was sent')
    if (answer.error) throw new Error(answer.error)
    return answer.result as Result
  }
  return {
    redis: {
      evalsha: (sha, keys, parameters) => add((open) => open.evalsha(sha, keys, parameters)),
      // Sent by the limiter after NOSCRIPT, when the batch has left.
      eval: (script, keys, parameters) => redis.eval(script, keys, parameters),
      get: (...parameters) => redis.get(...parameters),
      set: (...parameters) => redis.set(...parameters),
    },
    add,
    send: () =>
      sent.resolve(pipeline.exec({ keepErrors: true }) as Promise<{ result: unknown; error?: string }[]>),
  }
}

/** Decides without Redis. Synchronous, so that no number of concurrent calls gets past the cap. */
function decideAlone(
  deps: LimitDeps,
  allowances: Allowance[],
  remembered: Refusal[],
  now: number,
): LimitDecision {
  const window = Math.floor(now / WINDOW_MS)
  if (window !== degradedWindow) degradedCounts.clear()
  degradedWindow = window
  const countOf = ({ identifier }: Allowance) => degradedCounts.get(identifier) ?? 0
  const cap = ({ perMinute }: Allowance) => Math.min(perMinute, deps.configuration.DEGRADED_RATE_LIMIT)
  const retryAfterSeconds = secondsUntil((window + 1) * WINDOW_MS, now)
  const refused = allowances
    .filter((allowance) => countOf(allowance) >= cap(allowance))
    .map(({ scope }): Refusal => ({ scope, retryAfterSeconds }))
  const isRefused = remembered.length + refused.length > 0
  if (!isRefused) {
    for (const allowance of allowances) degradedCounts.set(allowance.identifier, countOf(allowance) + 1)
  }
  const counts = allowances.map((allowance): Count => {
    return { scope: allowance.scope, calls: countOf(allowance), resetSeconds: retryAfterSeconds }
  })
  return decision([...remembered, ...refused], { epochs: NO_EPOCHS, counts: isRefused ? [] : counts }, true)
}
