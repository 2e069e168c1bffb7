import { noLongerAllowed, readPrincipal } from '../../calls/renew-rights.ts'
import { isExpired, type Principal } from '../../identity/principal.ts'
import type { Clock } from '../../lib/clock.ts'
import type { StoredRequest } from './response-head.ts'
import type { Owner } from './types.ts'

type RightsDeps = Parameters<typeof readPrincipal>[0] & { clock: Clock }

/**
 * The principal of a further turn. The turn's admission detects changed rights by their epoch; expiry changes no epoch and
 * is checked here. After a restart, the rights are read again.
 * @param known the principal of the last turn; null after a restart.
 * @throws ApiError unauthorized for a caller without access, and the error of a database that is not available.
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
  return readPrincipal(deps, { organizationId, userId, credential })
}
