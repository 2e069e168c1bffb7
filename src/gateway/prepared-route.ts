import { ApiError } from '../lib/api-error.ts'
import type { Candidate } from './candidates.ts'
import type { PlannedCall } from './model-call.ts'
import { type RouteRequest, routeRequest } from './route-attempt.ts'

/** The request of one route, made before the call is sent: whether any route can express it is known then. */
export class PreparedRoute {
  readonly #candidate: Candidate
  #request: RouteRequest | null

  constructor(candidate: Candidate, request: RouteRequest) {
    this.#candidate = candidate
    this.#request = request
  }

  /** Hands over the request, once: a body of 50 MB must not live as long as its answer. @returns null for other routes. */
  take(candidate: Candidate): RouteRequest | null {
    if (candidate !== this.#candidate) return null
    const request = this.#request
    this.#request = null
    return request
  }
}

/**
 * Makes the request of the first route that can express it.
 * @throws ApiError invalid_request of the first route when none can.
 */
export function prepareRoute(planned: PlannedCall): PreparedRoute {
  let refusal: ApiError | null = null
  for (const candidate of planned.candidates) {
    try {
      return new PreparedRoute(candidate, routeRequest(planned, candidate))
    } catch (error) {
      if (!(error instanceof ApiError) || error.kind !== 'invalid_request') throw error
      refusal ??= error
    }
  }
  throw refusal ?? new Error('a turn has no routes')
}
