/** Recent failures and waits of routes, in the memory of this isolate: such routes are tried last. */
import { BoundedMap } from '../../lib/bounded-map.ts'
import { type CatalogueRoute, routeKey } from '../catalogue/model-catalogue.ts'
import type { Provider } from '../providers/provider.ts'

/** Why a route is tried last: its provider requested a wait (`requested`) or refused the gateway, or it failed. */
export interface Backoff {
  reason: 'requested' | 'failed' | 'refused'
  /** Milliseconds since the epoch. */
  until: number
}

/** Time for which a route is tried last after it could not be reached or did not answer. Then one call tries it first. */
const FAILED_BACKOFF_MS = 5_000
/** Time for which a route is tried last after its provider refused the gateway. A person has to renew the credential. */
const REFUSED_BACKOFF_MS = 60_000
/** A longer `Retry-After` is shortened to this: limits can be raised, and requests differ in size. */
const LONGEST_REQUESTED_WAIT_MS = 60_000
/** Time after an answer for which a provider counts as reachable. */
const REACHABLE_MS = 1_000
const MOST_ROUTES = 1_000

// All times are milliseconds since the epoch.
/** Indexed by `routeKey`: the end of the wait that the provider requested. */
const requestedWaitUntil = new BoundedMap<string, number>(MOST_ROUTES)
/** Indexed by `routeKey`: time until which a route that did not answer is tried last. */
const silentUntil = new BoundedMap<string, number>(MOST_ROUTES)
/** Indexed by provider id: time until which the routes of an unreachable provider are tried last. */
const unreachableUntil = new BoundedMap<string, number>(MOST_ROUTES)
/**
 * Indexed by `routeKey`: time until which a route whose provider refused the gateway is tried last, and the entry that was
 * refused. Provider ids would be too coarse, because a credential can lack the permission for one model.
 */
const refusals = new BoundedMap<string, { until: number; entry: string }>(MOST_ROUTES)
/** Indexed by provider id: time of the last answer. */
const lastAnswerAt = new BoundedMap<string, number>(MOST_ROUTES)

/** @returns null for a route that can be tried in its turn. */
export function backoffOf(route: CatalogueRoute, now: number): Backoff | null {
  const failed = Math.max(unreachableUntil.get(route.provider.id) ?? 0, silentUntil.get(routeKey(route)) ?? 0)
  const refusal = refusalOf(route)
  if (refusal && refusal.until > now) return { reason: 'refused', until: refusal.until }
  if (failed > now) return { reason: 'failed', until: failed }
  const until = requestedWaitUntil.get(routeKey(route)) ?? 0
  return until > now ? { reason: 'requested', until } : null
}

/** Records that a call tries the route. If it failed before, other calls try it last until it has answered. */
export function beginTrial(route: CatalogueRoute, now: number): void {
  const { id } = route.provider
  const key = routeKey(route)
  if (unreachableUntil.get(id) !== undefined) unreachableUntil.set(id, now + FAILED_BACKOFF_MS)
  if (silentUntil.get(key) !== undefined) silentUntil.set(key, now + FAILED_BACKOFF_MS)
  const refusal = refusalOf(route)
  if (refusal && refusal.until <= now) refusals.set(key, { ...refusal, until: now + FAILED_BACKOFF_MS })
}

/**
 * Records that the route has answered, with whatever status.
 * @returns the end of the wait that the upstream requests, in milliseconds since the epoch; null when it requests none.
 */
export function noteAnswer(
  route: CatalogueRoute,
  response: Pick<Response, 'status' | 'headers'>,
  now: number,
): number | null {
  const wait = response.status >= 400 ? requestedWait(response.headers, now) : null
  const until = wait === null ? null : noteRequestedWait(route, wait, now)
  if (until === null) requestedWaitUntil.delete(routeKey(route))
  silentUntil.delete(routeKey(route))
  if (response.status < 400) refusals.delete(routeKey(route))
  if (EDGE_WITHOUT_ORIGIN.has(response.status)) noteUnreachable(route, now)
  else {
    lastAnswerAt.set(route.provider.id, now)
    unreachableUntil.delete(route.provider.id)
  }
  return until
}

/**
 * Records that the route requested a wait. @param wait in milliseconds.
 * @returns its end, in milliseconds since the epoch.
 */
export function noteRequestedWait(route: CatalogueRoute, wait: number, now: number): number {
  const until = now + Math.min(wait, LONGEST_REQUESTED_WAIT_MS)
  requestedWaitUntil.set(routeKey(route), until)
  return until
}

/**
 * Statuses of Cloudflare for a host that it could not connect to, also for requests of a Worker
 * (https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-5xx-errors/).
 */
const EDGE_WITHOUT_ORIGIN = new Set([521, 522, 523, 525, 526, 530])

/** The provider could not be reached: all its routes are tried last for a while. */
export function noteUnreachable(route: CatalogueRoute, now: number): void {
  unreachableUntil.set(route.provider.id, now + FAILED_BACKOFF_MS)
}

/** The route took a request and did not answer in time. */
export function noteSilence(route: CatalogueRoute, now: number): void {
  silentUntil.set(routeKey(route), now + FAILED_BACKOFF_MS)
}

/** The provider refused the gateway's credential or account. */
export function noteRefused(route: CatalogueRoute, now: number): void {
  refusals.set(routeKey(route), { until: now + REFUSED_BACKOFF_MS, entry: entryOf(route.provider) })
}

/** A refusal counts for the entry that was refused, not for one with a new credential or address. */
function refusalOf(route: CatalogueRoute): { until: number; entry: string } | null {
  const refusal = refusals.get(routeKey(route))
  if (!refusal || refusal.entry === entryOf(route.provider)) return refusal ?? null
  refusals.delete(routeKey(route))
  return null
}

const entryOf = ({ kind, baseUrl, credential }: Provider): string =>
  JSON.stringify([kind, baseUrl, credential.parts])

/** Whether the provider answered just now, so that a connection to it will succeed. */
export const heardLately = (provider: Provider, now: number): boolean =>
  now - (lastAnswerAt.get(provider.id) ?? 0) < REACHABLE_MS

/**
 * The wait that an upstream requests: `retry-after-ms`, which some vendors send, else `Retry-After`.
 * @returns milliseconds, not negative; null when it requests none, or declares a retry useless.
 */
export function requestedWait(headers: Headers, now: number): number | null {
  if (headers.get('x-should-retry') === 'false') return null
  return numberOf(headers.get('retry-after-ms')) ?? retryAfterWait(headers.get('retry-after'), now)
}

/**
 * The wait of a `Retry-After` header, in seconds or as a date (RFC 9110 section 10.2.3).
 * @returns milliseconds, not negative; null for no header and for any other text.
 */
export function retryAfterWait(text: string | null, now: number): number | null {
  const seconds = numberOf(text)
  if (seconds !== null) return seconds * 1_000
  // Date.parse accepts many texts as dates; a date of HTTP begins with the name of a day.
  const date = text !== null && /^\s*[A-Z][a-z]{2}/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? null : Math.max(0, date - now)
}

function numberOf(text: string | null): number | null {
  return text !== null && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : null
}
