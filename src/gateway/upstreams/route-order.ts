import type { Route } from '../catalogue/call-routes.ts'
import type { Backoff } from './route-health.ts'
import { backoffOf } from './route-health.ts'

const BACKOFF_ORDER: Record<Backoff['reason'], number> = { failed: 1, requested: 2, refused: 3 }

/**
 * Routes in the order to try them:
 * 1. routes in the order of the catalogue
 * 2. routes that failed within the last seconds
 * 3. routes with a running `Retry-After`, the shortest wait first
 * 4. routes whose provider refused the gateway lately
 * @param now milliseconds since the epoch.
 */
export function inOrder(routes: readonly Route[], now: number): readonly Route[] {
  if (routes.length === 1) return routes
  const rank = (route: Route): [standing: number, until: number] => {
    const backoff = backoffOf(route, now)
    return backoff ? [BACKOFF_ORDER[backoff.reason], backoff.until] : [0, 0]
  }
  return routes
    .map((route) => ({ route, rank: rank(route) }))
    .sort((left, right) => left.rank[0] - right.rank[0] || left.rank[1] - right.rank[1])
    .map(({ route }) => route)
}
