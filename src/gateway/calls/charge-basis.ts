import { costOf } from '../../calls/usage.ts'
import type { Usage } from '../../ledger/audit-record.ts'
import type { Route } from '../catalogue/call-routes.ts'
import type { CatalogueModel, CatalogueRoute } from '../catalogue/model-catalogue.ts'
import { OPERATIONS, type Operation } from '../protocols/operations.ts'
import type { RequestOutline } from '../protocols/request-outline.ts'
import { familyOf } from '../token-count/model-families.ts'
import { defaultCompletionTokens } from '../translation/requests/completions-to-chat.ts'
import { fixedUnits, pricedCall, pricesAt, termsOf } from './call-terms.ts'
import { boundsOf, type Charge, type ChargeBasis, MOST_BYTES_PER_TOKEN } from './charges.ts'
import { hiddenOutputOf } from './hidden-output.ts'

/** The maximum price of a request, and the routes that may take it at a known price. */
export function chargeBasis(
  outline: RequestOutline,
  model: CatalogueModel,
  operation: Operation,
  allRoutes: readonly Route[],
  headers: Headers,
): { routes: Route[]; basis: ChargeBasis } {
  const terms = termsOf(outline, headers)
  const { routes, prices: atHundred, unpriced } = pricedCall(model, operation, allRoutes, terms)
  const percents = routes.map(percentOf)
  const dearest = Math.max(...percents, 0) || 100
  const prices = pricesAt(atHundred, dearest)
  const maximumOutput = maximumOutputOf(outline, operation, routes, model)
  const bounds = boundsOf({ ...outline, maximumOutput }, { ...model, prices }, terms)
  const basis: ChargeBasis = {
    prices,
    bounds,
    requestBytes: outline.bytes,
    charged: OPERATIONS[operation].generates,
    hiddenOutput: hiddenOutputOf(outline, model, routes, bounds.outputTokens),
    bytesPerToken: Math.min(
      ...routes.map(({ upstreamModel }) => familyOf(upstreamModel).bytesPerToken),
      MOST_BYTES_PER_TOKEN,
    ),
    ...(percents.some((percent) => percent !== dearest) && { pricesOfRoutes: atHundred }),
    ...fixedUnits(terms, prices, routes),
    ...(unpriced.length > 0 && { unpriced }),
  }
  return { routes, basis }
}

const percentOf = ({ pricePercent = 100 }: CatalogueRoute): number => pricePercent

/** A charge at the prices of the route that answered. @param route null where none is known, which costs the most. */
export function atRoute(basis: ChargeBasis, charge: Charge, route: CatalogueRoute | null): Charge {
  if (!basis.pricesOfRoutes || !charge.usage || route === null) return charge
  return { ...charge, cost: costAtRoute(basis, charge.usage, route) }
}

/** The cost of a usage at the prices of a route, in micro-credits. */
export function costAtRoute(
  { prices, pricesOfRoutes }: ChargeBasis,
  usage: Usage,
  route: CatalogueRoute,
): number {
  return costOf(usage, pricesOfRoutes ? pricesAt(pricesOfRoutes, percentOf(route)) : prices)
}

/** A translated legacy completion has a default maximum; elsewhere an upstream may generate as much as the model can. */
function maximumOutputOf(
  outline: RequestOutline,
  operation: Operation,
  routes: readonly Route[],
  model: CatalogueModel,
): number | null {
  const { translationLimitsOutput } = OPERATIONS[operation]
  const limited = translationLimitsOutput && routes.every(({ translation }) => translation)
  return outline.maximumOutput ?? (limited ? defaultCompletionTokens(model.capabilities) : null)
}
