import { renewPrincipal } from '../../governance/identity/identify.ts'
import { isExpired, type Principal } from '../../governance/principal.ts'
import { noLongerAllowed } from '../../governance/renew-rights.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Owner } from '../types.ts'
import type { StoredRequest } from './response-head.ts'

type RightsDeps = Parameters<typeof renewPrincipal>[0] & { clock: Clock }

/**
 * The principal that a further turn is made under. What has changed since it was read, the admission of the turn finds
 * out by its epoch; expiry changes no epoch, and another life of the object has no principal.
 * @param known as it was at the last turn; null after a restart.
 * @throws ApiError unauthorized for a caller that may not call any more, and whatever the database throws when it cannot
 * be asked: the response does not go on then.
 */
export async function currentPrincipal(
  deps: RightsDeps,
  { organizationId, userId }: Owner,
  { credential }: Pick<StoredRequest, 'credential'>,
  known: Principal | null,
): Promise<Principal> {
  if (known) {
    if (isExpired(known, deps.clock())) throw noLongerAllowed('expired')
    return known
  }
  // Who the caller is stays; everything else is read.
  const identification = await renewPrincipal(deps, { organizationId, userId, credential } as Principal)
  if (identification.kind === 'refused') throw noLongerAllowed(identification.reason)
  return identification.principal
}
