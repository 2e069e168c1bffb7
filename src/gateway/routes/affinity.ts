import type { Redis } from '@upstash/redis'
import { BoundedMap } from '../../lib/bounded-map.ts'
import type { Clock } from '../../lib/clock.ts'
import { currentKey, type KeyRing, sha256Hex } from '../../lib/crypto.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { withinTime } from '../../lib/time-limit.ts'
import type { Route } from '../catalog/catalog.ts'
import { type ConversationCall, conversationKey } from './conversation-key.ts'

/**
 * Keeps a conversation where its prompt cache is warm. The first route of a model is its home without a word; only a
 * conversation that another route had to take over is remembered, in Redis for all isolates, and stays there until it
 * has been quiet for longer than the caches of providers live, or that route fails it.
 */

export interface AffinityDeps {
  clock: Clock
  redis: Redis
  configuration: { KEY_PEPPERS: KeyRing; LIMITS_TIMEOUT_MS: number }
  waitUntil: (work: Promise<unknown>) => void
}

/** Prompt caches live for five minutes after their last use, unless a caller pays for more. */
const LIFETIME_MS = 5 * 60_000
/** How long Redis is left alone after it failed. */
const REST_MS = 2_000
const MOST_CONVERSATIONS = 10_000

interface Home {
  route: string
  until: number
}

/** What this isolate knows by itself, for when Redis does not answer. */
const remembered = new BoundedMap<string, Home>(MOST_CONVERSATIONS)
let restingUntil = 0

/** Names a route where others can read it: neither the model's name upstream nor the provider's is told. */
export const routeDigest = ({ provider, upstreamModel }: Route): string =>
  `r${sha256Hex(`${provider.id} ${upstreamModel}`).slice(0, 16)}`

/** Where one conversation belongs. */
export class Affinity {
  /** `routeDigest` of the route that has it; null for the first one. Never rejects, and soon settles. */
  readonly home: Promise<string | null>
  readonly #deps: AffinityDeps
  readonly #key: string
  readonly #first: string

  private constructor(deps: AffinityDeps, key: string, first: string) {
    this.#deps = deps
    this.#key = `home:${key}`
    this.#first = first
    this.home = this.#lookUp()
  }

  /**
   * Begins to ask where the conversation of a call belongs.
   * @param routes that can answer the call, as ordered by the catalogue.
   * @returns null when there is no choice, or no telling the conversation.
   */
  static begin(deps: AffinityDeps, routes: readonly Route[], call: ConversationCall): Affinity | null {
    const [first, second] = routes
    if (!first || !second) return null
    const key = conversationKey(call, currentKey(deps.configuration.KEY_PEPPERS).key)
    return key === null ? null : new Affinity(deps, key, routeDigest(first))
  }

  async #lookUp(): Promise<string | null> {
    const { clock, redis, configuration } = this.#deps
    const now = clock()
    if (now < restingUntil) return this.#own(now)
    try {
      const asked = redis.get<unknown>(this.#key)
      const found = await withinTime(asked, configuration.LIMITS_TIMEOUT_MS, 'Redis')
      restingUntil = 0
      return typeof found === 'string' ? found : null
    } catch (error) {
      restingUntil = clock() + REST_MS
      logEvent('warn', 'affinity_degraded', { reason: errorText(error) })
      return this.#own(now)
    }
  }

  #own(now: number): string | null {
    const home = remembered.get(this.#key)
    return home && home.until > now ? home.route : null
  }

  /** The conversation has been served there. Told to Redis after the answer, and only where there is something to tell. */
  async served(route: Route): Promise<void> {
    const digest = routeDigest(route)
    if (digest === this.#first) {
      if ((await this.home) === null) return
      remembered.delete(this.#key)
      this.#tell(this.#deps.redis.del(this.#key))
    } else {
      remembered.set(this.#key, { route: digest, until: this.#deps.clock() + LIFETIME_MS })
      this.#tell(this.#deps.redis.set(this.#key, digest, { px: LIFETIME_MS }))
    }
  }

  #tell(written: Promise<unknown>): void {
    this.#deps.waitUntil(
      written.catch((error: unknown) =>
        logEvent('warn', 'affinity_not_shared', { reason: errorText(error) }),
      ),
    )
  }
}
