import { placeOf } from '../model/response-ids.ts'
import type { ResponseMethods } from '../model/types.ts'
import { responseClient, responseStreamClient } from '../object/object-client.ts'
import { locationHint } from './regions.ts'
import { poolName } from './slots.ts'

interface ResponseNamespaces {
  /** Objects of one response each, for ids without a place. */
  RESPONSE_STREAMS: DurableObjectNamespace
  RESPONSE_POOLS: DurableObjectNamespace
}

/**
 * The client of a response in the object that its id names.
 * @param organizationId the caller's: a foreign id names an object of the caller's own organization.
 */
export function responseObjectClient(
  { RESPONSE_STREAMS: streams, RESPONSE_POOLS: pools }: ResponseNamespaces,
  organizationId: string,
  responseId: string,
): ResponseMethods {
  const place = placeOf(responseId)
  if (place === null) return responseStreamClient(streams, responseId)
  return responseClient({
    namespace: pools,
    name: poolName(organizationId, place),
    before: [responseId],
    locationHint: locationHint(place.region),
  })
}
