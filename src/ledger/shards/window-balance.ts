import type { Ratelimit } from '@upstash/ratelimit'
import type { Redis } from '@upstash/redis'
import type { Clock } from '../../lib/clock.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { limiterOf } from '../../lib/shared-limits.ts'
import { withinTime } from '../../lib/time-limit.ts'
import type { SlidingWindows } from '../account/sliding-windows.ts'

/** Interval at which a shard that admits calls reports their number. */
const INTERVAL_MS = 250
/** Wait after Redis failed. */
const REST_MS = 2_000
const ANSWER_LIMIT_MS = 2_000
/** A limit that is never reached: Redis counts, and the shards decide. */
const UNBOUNDED = 1_000_000_000

/**
 * Counts the calls that the shards of an organization admit together, through Redis, so that each can apply the
 * organization's limit. It runs beside the calls; only calls that would be refused because the other shards' counts are
 * unknown wait for it. The limit can be exceeded by calls that the others admit between two reports, or in the seconds
 * after Redis went away, when a shard relies on its last report. Each shard applies the limit to its own calls, so the
 * bound is the limit times the shards.
 */
export class WindowBalance {
  readonly #limiter: Ratelimit
  readonly #organizationId: string
  readonly #clock: Clock
  #nextAt = 0
  /** The running report. Two at a time would count the same calls twice. */
  #reporting: Promise<void> | null = null
  #windows: SlidingWindows | null = null
  /** `admitted` of these windows at the last report. */
  #reported = 0

  constructor(redis: Redis, organizationId: string, clock: Clock) {
    this.#limiter = limiterOf(redis, { name: 'organization-windows', perMinute: UNBOUNDED })
    this.#organizationId = organizationId
    this.#clock = clock
  }

  /** @returns the report that is running, null when none is due. It never rejects. */
  reportIfDue(windows: SlidingWindows): Promise<void> | null {
    const now = this.#clock()
    if (this.#reporting !== null || now < this.#nextAt) return this.#reporting
    this.#nextAt = now + INTERVAL_MS
    this.#reporting = this.#report(windows, now).finally(() => {
      this.#reporting = null
    })
    return this.#reporting
  }

  async #report(windows: SlidingWindows, now: number): Promise<void> {
    // Calls that were loaded after a restart were reported before it.
    if (windows !== this.#windows) this.#reported = windows.loaded
    this.#windows = windows
    const { admitted } = windows
    const own = windows.ofOrganization(now)
    try {
      const total = await withinTime(this.#count(admitted - this.#reported), ANSWER_LIMIT_MS, 'Redis')
      this.#reported = admitted
      windows.learnOthers(total - own, now)
    } catch (error) {
      this.#nextAt = now + REST_MS
      logEvent('warn', 'ledger.windows_not_balanced', { error: errorText(error) })
    }
  }

  /** Adds calls. @returns those in the window of all shards together. */
  async #count(calls: number): Promise<number> {
    const { remaining } =
      calls > 0
        ? await this.#limiter.limit(this.#organizationId, { rate: calls })
        : await this.#limiter.getRemaining(this.#organizationId)
    return UNBOUNDED - remaining
  }
}
