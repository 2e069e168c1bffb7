import { Ratelimit } from '@upstash/ratelimit'
import type { Redis } from '@upstash/redis'
import type { Clock } from '../../../lib/clock.ts'
import { errorText, logEvent } from '../../../lib/log.ts'
import { withinTime } from '../../../lib/time-limit.ts'
import type { SlidingWindows } from '../account/sliding-windows.ts'

/** How often a shard that admits calls tells the others how many. */
const INTERVAL_MS = 250
/** How long it leaves Redis alone after it failed. */
const REST_MS = 2_000
const ANSWER_LIMIT_MS = 2_000
/** More calls than any window sees: Redis counts, and the shards decide. */
const UNBOUNDED = 1_000_000_000

/**
 * Tells the shards of an organization, through Redis, how many calls they admit together, so that each can keep the
 * organization's limit. Runs beside the calls; only what would be refused because nothing is known of the others waits
 * for it. Between two reports a shard does not know what the others admit: the limit can be passed by what they admit
 * in a quarter of a second, or in the seconds that a shard goes on relying on its last report when Redis goes away. Each
 * shard keeps the limit by itself, so that they never admit more than the limit times the shards.
 */
export class WindowBalance {
  readonly #limiter: Ratelimit
  readonly #organizationId: string
  readonly #clock: Clock
  #nextAt = 0
  /** One report at a time: two would tell of the same calls. */
  #reporting: Promise<void> | null = null
  #windows: SlidingWindows | null = null
  /** Calls that these had admitted when it was last told. */
  #reported = 0

  constructor(redis: Redis, organizationId: string, clock: Clock) {
    this.#limiter = new Ratelimit({
      redis,
      limiter: Ratelimit.slidingWindow(UNBOUNDED, '60 s'),
      prefix: 'limit:organization-windows',
      ephemeralCache: false,
      timeout: 0,
      enableTelemetry: false,
    })
    this.#organizationId = organizationId
    this.#clock = clock
  }

  /** @returns the report that was begun or is on its way, null when none is due. It never rejects. */
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
    // What was loaded after a restart was told before it.
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

  /** @returns calls in the window of all shards together, with these. */
  async #count(calls: number): Promise<number> {
    const { remaining } =
      calls > 0
        ? await this.#limiter.limit(this.#organizationId, { rate: calls })
        : await this.#limiter.getRemaining(this.#organizationId)
    return UNBOUNDED - remaining
  }
}
