import type { Route } from '../catalog/call-routes.ts'
import { routeKey } from '../catalog/catalog.ts'
import type { Backoff } from './route-health.ts'
import { backoffOf } from './route-health.ts'

const BACKOFF_ORDER: Record<Backoff['reason'], number> = { failed: 2, requested: 3, refused: 4 }

/**
 * Routes in the order to try them:
 * 1. the route that the conversation is on
 * 2. the other routes, in the order of the catalogue
 * 3. routes that failed within the last seconds
 * 4. routes with a running `Retry-After`, the shortest wait first
 * 5. routes whose provider refused the gateway lately
 * @param current `routeKey` of the route that the conversation is on; null for none. @param now milliseconds since the epoch.
 */
export function inOrder(routes: readonly Route[], current: string | null, now: number): readonly Route[] {
  if (routes.length === 1) return routes
  const rank = (route: Route): [standing: number, until: number] => {
    const backoff = backoffOf(route, now)
    if (backoff) return [BACKOFF_ORDER[backoff.reason], backoff.until]
    return [routeKey(route) === current ? 0 : 1, 0]
  }
  return routes
    .map((route) => ({ route, rank: rank(route) }))
    .sort((left, right) => left.rank[0] - right.rank[0] || left.rank[1] - right.rank[1])
    .map(({ route }) => route)
}
