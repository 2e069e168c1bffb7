import { ApiError } from '../../lib/api-error.ts'
import { OPERATIONS, type Operation } from '../protocols/operations.ts'
import type { CallerProtocol, UpstreamProtocol } from '../protocols/protocol.ts'
import { speaks } from '../providers/provider.ts'
import type { CatalogueModel, CatalogueRoute } from './model-catalogue.ts'

/** A route that can answer a call. */
export interface Route extends CatalogueRoute {
  /** The operation that is sent to the upstream, in its own protocol. */
  operation: Operation
  /** Null when the upstream speaks the protocol of the call. */
  translation: { caller: CallerProtocol; upstream: UpstreamProtocol } | null
}

/**
 * The routes of a model that can answer a call: those of the caller's protocol first, because nothing is lost on them,
 * then the translated ones; each group in the order of the catalogue.
 * @returns none only for operations that need no upstream.
 * @throws ApiError when no provider of the model can answer the call.
 */
export function routesFor(model: CatalogueModel, operation: Operation): Route[] {
  const { translatesTo, caller, answeredWithoutUpstream } = OPERATIONS[operation]
  const native: Route[] = []
  const translated: Route[] = []
  for (const route of model.routes) {
    const upstream = translatesTo.find((protocol) => speaks(route.provider, protocol, route.upstreamModel))
    if (isNative(model, route, operation)) native.push({ ...route, operation, translation: null })
    else if (upstream && caller) {
      translated.push({ ...route, operation: upstream, translation: { caller, upstream } })
    }
  }
  const routes = [...native, ...translated]
  if (routes.length > 0 || (answeredWithoutUpstream && model.routes.length > 0)) return routes
  const message = `The model ${model.id} is not served on this path.`
  throw new ApiError('invalid_request', message, { code: 'model_not_found' })
}

/** The provider has a path for the operation, and serves the model on it. */
function isNative(model: CatalogueModel, route: CatalogueRoute, operation: Operation): boolean {
  if (!speaks(route.provider, operation, route.upstreamModel)) return false
  const { capability } = OPERATIONS[operation]
  return capability === null || model.capabilities.includes(capability)
}
