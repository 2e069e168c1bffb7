/** What this isolate has lately learned of routes, so that calls go first to where they will be answered. */
import { BoundedMap } from '../../lib/bounded-map.ts'
import type { Route } from '../catalog/catalog.ts'
import type { Provider } from '../providers/provider.ts'

/** Why a route is not asked first: it asked to wait, or it was not there. */
export interface Rest {
  reason: 'asked' | 'failed'
  /** Milliseconds since the epoch. */
  until: number
}

/** How long a route is asked last after it could not be reached or stayed silent. Then one call tries it. */
const FAILED_REST_MS = 5_000
/** A longer `Retry-After` is looked at again after this time: limits are raised and requests differ in size. */
const LONGEST_ASKED_REST_MS = 60_000
/** For so long after an answer a provider is taken to be reachable. */
const HEARD_MS = 1_000
const MOST_ROUTES = 1_000

const asked = new BoundedMap<string, number>(MOST_ROUTES)
const silent = new BoundedMap<string, number>(MOST_ROUTES)
const unreachable = new BoundedMap<string, number>(MOST_ROUTES)
const heard = new BoundedMap<string, number>(MOST_ROUTES)

/** Names a route in this isolate's memory. */
const nameOf = (route: Route): string => `${route.provider.id} ${route.upstreamModel}`

/** @returns null for a route that may be asked. */
export function restOf(route: Route, now: number): Rest | null {
  const failed = Math.max(unreachable.get(route.provider.id) ?? 0, silent.get(nameOf(route)) ?? 0)
  if (failed > now) return { reason: 'failed', until: failed }
  const until = asked.get(nameOf(route)) ?? 0
  return until > now ? { reason: 'asked', until } : null
}

/** A route is tried: until it has answered, one that failed before is asked last by all other calls. */
export function beginTrial(route: Route, now: number): void {
  const { id } = route.provider
  const name = nameOf(route)
  if (unreachable.get(id) !== undefined) unreachable.set(id, now + FAILED_REST_MS)
  if (silent.get(name) !== undefined) silent.set(name, now + FAILED_REST_MS)
}

/**
 * The route has answered with a status, whatever it is.
 * @returns until when it asks not to be asked again, in milliseconds since the epoch; null when it does not.
 */
export function noteAnswer(
  route: Route,
  response: Pick<Response, 'status' | 'headers'>,
  now: number,
): number | null {
  const wait = response.status >= 400 ? askedWait(response.headers, now) : null
  const until = wait === null ? null : now + Math.min(wait, LONGEST_ASKED_REST_MS)
  if (until === null) asked.delete(nameOf(route))
  else asked.set(nameOf(route), until)
  silent.delete(nameOf(route))
  if (EDGE_WITHOUT_ORIGIN.has(response.status)) noteUnreachable(route, now)
  else {
    heard.set(route.provider.id, now)
    unreachable.delete(route.provider.id)
  }
  return until
}

/**
 * Cloudflare answers these when it could not connect to a host
 * (https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-5xx-errors/), for what is
 * behind it as for the requests of a Worker.
 */
const EDGE_WITHOUT_ORIGIN = new Set([521, 522, 523, 525, 526, 530])

/** The provider could not be reached at all: none of its routes is there. */
export function noteUnreachable(route: Route, now: number): void {
  unreachable.set(route.provider.id, now + FAILED_REST_MS)
}

/** The route took a request and did not answer in time. */
export function noteSilence(route: Route, now: number): void {
  silent.set(nameOf(route), now + FAILED_REST_MS)
}

/** Whether a connection to the provider can be counted on, because it answered just now. */
export const heardLately = (provider: Provider, now: number): boolean =>
  now - (heard.get(provider.id) ?? 0) < HEARD_MS

/**
 * How long an upstream asks to wait: `retry-after-ms` as some vendors send it, else `Retry-After` in seconds or as a
 * date (RFC 9110 section 10.2.3).
 * @returns milliseconds, not negative; null when it does not ask, or says that waiting is of no use.
 */
export function askedWait(headers: Headers, now: number): number | null {
  if (headers.get('x-should-retry') === 'false') return null
  const precise = numberOf(headers.get('retry-after-ms'))
  if (precise !== null) return precise
  const text = headers.get('retry-after')
  const seconds = numberOf(text)
  if (seconds !== null) return seconds * 1_000
  // Date.parse takes much for a date; one of HTTP begins with a day's name.
  const date = text !== null && /^\s*[A-Z][a-z]{2}/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? null : Math.max(0, date - now)
}

function numberOf(text: string | null): number | null {
  return text !== null && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : null
}
