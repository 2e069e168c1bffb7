import { readAll } from '../../lib/bytes/read-bytes.ts'
import { isRefusalStatus } from '../translation/upstream-errors.ts'
import type { Route } from './call-routes.ts'
import type { RouteCall } from './route-call.ts'

/** The longest error body, in bytes, that is kept while other routes are tried. */
const LONGEST_DEFERRED_BYTES = 1024 * 1024

interface DeferredError {
  routeCall: RouteCall
  response: Response
  /** Read while other routes are tried; null when reading failed. */
  body: Promise<Uint8Array | null>
}

/** Error answers of upstreams, sent only if no other route answers: the latest of each route. */
export class DeferredErrors {
  readonly #errors = new Map<Route, DeferredError>()

  get size(): number {
    return this.#errors.size
  }

  /** Begins to read an error answer, in place of an earlier one of its route. @returns its body; null when reading failed. */
  add(routeCall: RouteCall, response: Response): Promise<Uint8Array | null> {
    const { route } = routeCall.request
    const earlier = this.#errors.get(route)
    if (earlier) giveUp(earlier.routeCall)
    // Deleted first: a map keeps the place of a key that is set again.
    this.#errors.delete(route)
    const reading = response.body ? readAll(response.body, LONGEST_DEFERRED_BYTES) : new Uint8Array()
    const body = Promise.resolve(reading).catch(() => null)
    this.#errors.set(route, { routeCall, response, body })
    return body
  }

  /** @returns the most useful error whose body was read, of equal ones the earliest; null without one. */
  async best(): Promise<{ routeCall: RouteCall; response: Response; body: Uint8Array } | null> {
    const inOrder = [...this.#errors.values()].sort(
      (left, right) => usefulness(right.response.status) - usefulness(left.response.status),
    )
    for (const { routeCall, response, body: reading } of inOrder) {
      const body = await reading
      if (body) return { routeCall, response, body }
    }
    return null
  }

  /** Ends the attempts whose upstreams may still be sending. */
  giveUp(): void {
    for (const { routeCall } of this.#errors.values()) giveUp(routeCall)
  }
}

/** The order of errors for the caller: when to come back, then a fault of the upstream, then one of the gateway. */
function usefulness(status: number): number {
  if (status === 429) return 2
  return isRefusalStatus(status) ? 0 : 1
}

function giveUp({ attempt }: RouteCall): void {
  attempt.dispose()
  attempt.abort.abort()
}
