import type { Redis } from '@upstash/redis'
import { BoundedMap } from '../../lib/bounded-map.ts'
import type { Clock } from '../../lib/clock.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { type CatalogueRoute, routeKey } from '../catalogue/model-catalogue.ts'
import type { Provider } from '../providers/provider.ts'
import { waitInBody } from '../translation/error-shapes.ts'
import { isRefusalStatus, lacksModel, refusesGateway } from '../translation/upstream-errors.ts'
import { noteRefused, noteRequestedWait } from './route-health.ts'

/** The latest refusal of the gateway by each provider, in Redis, so that the management API of any isolate reads it. */

export interface ProviderHealthDeps {
  clock: Clock
  redis: Pick<Redis, 'set' | 'del'>
  waitUntil: (work: Promise<unknown>) => void
}

/** A provider that refused the gateway's credential or account, and has not served a call since. */
interface ProviderRefusal {
  /** HTTP status of the provider. */
  status: number
  /** Milliseconds since the epoch. */
  at: number
}

/** A stored refusal expires after a day, in case its provider gets no further calls. */
const LIFETIME_SECONDS = 24 * 60 * 60
/** An isolate stores and logs a repeated refusal at most this often. */
const BETWEEN_STORES_MS = 10_000
const MOST_PROVIDERS = 1_000

/** When this isolate last stored a refusal, by the provider's id; milliseconds since the epoch. */
const refused = new BoundedMap<string, number>(MOST_PROVIDERS)

const keyOf = (providerId: string) => `provider-refusal:${providerId}`

/**
 * Logs an error answer that refuses the gateway or does not know the model of the route, and has the route tried last;
 * stores a refusal. A wait that is requested in the body is kept. Never throws.
 * @param body of the answer, because a 403 can also be about the contents of the request; null when reading it failed.
 */
export function noteErrorAnswer(
  { clock, redis, waitUntil }: ProviderHealthDeps,
  route: CatalogueRoute,
  status: number,
  body: Uint8Array | null,
): void {
  if (body !== null) noteBody(route, status, body, clock())
  const isRefusal = body === null ? isRefusalStatus(status) && status !== 403 : refusesGateway(status, body)
  if (!isRefusal) return
  const { id, name } = route.provider
  const now = clock()
  noteRefused(route, now)
  const stored = refused.get(id)
  if (stored !== undefined && now - stored < BETWEEN_STORES_MS) return
  refused.set(id, now)
  logEvent('error', 'provider_refused_gateway', { provider: name, status })
  const refusal: ProviderRefusal = { status, at: now }
  waitUntil(quietly(() => redis.set(keyOf(id), refusal, { ex: LIFETIME_SECONDS })))
}

/** When this isolate last logged that a route has no model, by `routeKey`; milliseconds since the epoch. */
const missing = new BoundedMap<string, number>(MOST_PROVIDERS)

function noteBody(route: CatalogueRoute, status: number, body: Uint8Array, now: number): void {
  const wait = status === 429 || status >= 500 ? waitInBody(body) : null
  if (wait !== null) noteRequestedWait(route, wait, now)
  if (!lacksModel(status, body)) return
  noteRefused(route, now)
  const key = routeKey(route)
  const logged = missing.get(key)
  if (logged !== undefined && now - logged < BETWEEN_STORES_MS) return
  missing.set(key, now)
  const { provider, upstreamModel } = route
  logEvent('error', 'provider_lacks_model', { provider: provider.name, model: upstreamModel, status })
}

/** A provider has served a call. Costs a look-up unless this isolate saw it refuse before. */
export function noteServed({ redis, waitUntil }: ProviderHealthDeps, { id }: Pick<Provider, 'id'>): void {
  if (refused.get(id) === undefined) return
  refused.delete(id)
  waitUntil(quietly(() => redis.del(keyOf(id))))
}

/** @returns null for a provider that has not refused lately; undefined when Redis does not answer. */
export async function readRefusal(
  redis: Pick<Redis, 'get'>,
  providerId: string,
): Promise<ProviderRefusal | null | undefined> {
  return quietly(() => redis.get<ProviderRefusal>(keyOf(providerId)))
}

/** Removes a stored refusal: the provider has a new credential. */
export async function forgetRefusal(redis: Pick<Redis, 'del'>, providerId: string): Promise<void> {
  await quietly(() => redis.del(keyOf(providerId)))
}

async function quietly<Result>(act: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await act()
  } catch (error) {
    logEvent('warn', 'provider_health_unavailable', { reason: errorText(error) })
    return undefined
  }
}
