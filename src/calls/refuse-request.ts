import type { RenewDeps } from '../identity/identify.ts'
import type { ApiError } from '../lib/api-error.ts'
import { type CallRequest, type GovernanceDeps, type Refused, refuse } from './governed-call.ts'
import { withCurrentRights } from './renew-rights.ts'

/**
 * Records the refused request of a valid key, which counts against the limits of its caller.
 * @returns the error for the caller, in whose place a limit that is reached can be. Null where the caller has lost its
 *   rights meanwhile, or they cannot be read: nothing is recorded then.
 */
export async function refuseRequest(
  deps: GovernanceDeps & RenewDeps,
  request: Pick<CallRequest, 'identity' | 'rights'>,
  error: ApiError,
): Promise<Refused | null> {
  try {
    return await withCurrentRights(deps, request.rights, (rights) =>
      refuse(deps, { ...request, rights, counted: true }, error, { target: null }),
    )
  } catch {
    return null
  }
}
