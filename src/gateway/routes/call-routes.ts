import { ApiError } from '../../lib/api-error.ts'
import type { CatalogModel, Route } from '../catalog/catalog.ts'
import { OPERATIONS, type Operation } from '../operations.ts'
import { speaks } from '../providers/provider.ts'
import type { CallerProtocol, UpstreamProtocol } from '../translation/translated-call.ts'
import { routeDigest } from './affinity.ts'
import { restOf } from './route-health.ts'

/** A place that can answer a call. */
export interface Candidate extends Route {
  /** What it is asked for, in its own protocol. */
  operation: Operation
  /** Set when the call has to be translated for it. */
  translation: { caller: CallerProtocol; upstream: UpstreamProtocol } | null
}

/**
 * The routes of a model that can answer a call: those that speak its protocol first, because nothing is lost on them,
 * the others translated; each group in the order of the catalogue.
 */
export function candidatesFor(model: CatalogModel, operation: Operation): Candidate[] {
  const { translatesTo, caller } = OPERATIONS[operation]
  const native: Candidate[] = []
  const translated: Candidate[] = []
  for (const route of model.routes) {
    if (isNative(model, route, operation)) native.push({ ...route, operation, translation: null })
    else {
      const upstream = translatesTo.find((protocol) => speaks(route.provider, protocol))
      if (!upstream || !caller) continue
      translated.push({ ...route, operation: upstream, translation: { caller, upstream } })
    }
  }
  return [...native, ...translated]
}

/** The provider has a path for the operation, and serves the model on it. */
function isNative(model: CatalogModel, route: Route, operation: Operation): boolean {
  if (!speaks(route.provider, operation)) return false
  const { capability } = OPERATIONS[operation]
  return capability === null || model.capabilities.includes(capability)
}

/**
 * Candidates in the order to try them now: the one that has the conversation, the others as they come, then those that
 * lately were not there, and last those that asked to wait, the soonest first.
 * @param home `routeDigest` of the one that has the conversation; null for none. @param now milliseconds since the epoch.
 */
export function inOrder(
  candidates: readonly Candidate[],
  home: string | null,
  now: number,
): readonly Candidate[] {
  if (candidates.length === 1) return candidates
  const rank = (candidate: Candidate): [standing: number, until: number] => {
    const rest = restOf(candidate, now)
    if (rest) return [rest.reason === 'failed' ? 2 : 3, rest.until]
    return [home !== null && routeDigest(candidate) === home ? 0 : 1, 0]
  }
  return candidates
    .map((candidate) => ({ candidate, rank: rank(candidate) }))
    .sort((left, right) => left.rank[0] - right.rank[0] || left.rank[1] - right.rank[1])
    .map(({ candidate }) => candidate)
}

/**
 * @returns none only for operations that need no upstream.
 * @throws ApiError when no provider of the model can answer the call.
 */
export function someCandidate(model: CatalogModel, operation: Operation): Candidate[] {
  const candidates = candidatesFor(model, operation)
  if (candidates.length > 0 || OPERATIONS[operation].answeredWithoutUpstream) return candidates
  throw new ApiError('invalid_request', `The model ${model.id} is not served on this path.`, {
    code: 'model_not_found',
  })
}
