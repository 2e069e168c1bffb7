/**
 * Each provider has its own prompt cache, so a conversation stays on the route that took it over. The first route is the
 * default; only deviations are stored, in the memory of this isolate.
 */
import { BoundedMap } from '../../lib/bounded-map.ts'
import type { Clock } from '../../lib/clock.ts'
import { conversationKey } from '../calls/conversation-key.ts'
import type { PlannedCall } from '../calls/model-call.ts'
import { type CatalogRoute, routeKey } from '../catalog/catalog.ts'
import { OPERATIONS } from '../protocols/operations.ts'

/** Providers drop a prompt cache five minutes after its last use, unless the caller pays for longer. */
const LIFETIME_MS = 5 * 60_000
const MOST_CONVERSATIONS = 10_000

/** `routeKey` by `conversationKey`, of conversations that are not on their first route. `until`: milliseconds since the epoch. */
const moved = new BoundedMap<string, { route: string; until: number }>(MOST_CONVERSATIONS)

type RoutedCall = Pick<PlannedCall, 'request' | 'model' | 'routes' | 'outline'>

/** The route that one call's conversation is on. */
export class Affinity {
  /** `routeKey` of a route other than the first; null for the first one. */
  readonly route: string | null
  readonly #call: RoutedCall
  readonly #clock: Clock
  #key: string | null | undefined

  constructor(call: RoutedCall, clock: Clock) {
    this.#call = call
    this.#clock = clock
    this.route = this.#lookUp()
  }

  #lookUp(): string | null {
    // The key is a digest of the prompt: not computed while nothing is stored.
    if (moved.size === 0 || !this.#hasChoice) return null
    const found = moved.get(this.#conversation ?? '')
    return found && found.until > this.#clock() ? found.route : null
  }

  /** Stores which route answered, until five minutes have passed without another answer. */
  noteAnswer(route: CatalogRoute): void {
    const key = routeKey(route)
    const [first] = this.#call.routes
    const isFirst = first !== undefined && routeKey(first) === key
    if (!this.#hasChoice || (isFirst && this.route === null)) return
    const conversation = this.#conversation
    if (conversation === null) return
    if (isFirst) moved.delete(conversation)
    else moved.set(conversation, { route: key, until: this.#clock() + LIFETIME_MS })
  }

  /** Counting tokens uses no prompt cache. */
  get #hasChoice(): boolean {
    return this.#call.routes.length > 1 && OPERATIONS[this.#call.request.operation].generates
  }

  get #conversation(): string | null {
    const { request, model, outline } = this.#call
    const { headers, principal } = request
    const { organizationId } = principal
    this.#key ??= conversationKey({ organizationId, modelId: model.id, headers, outline })
    return this.#key
  }
}
