import type { ApiError } from '../lib/api-error.ts'
import { type CallRequest, type GovernanceDeps, type Refused, refuse } from './governed-call.ts'
import type { RenewDeps } from './identity/identify.ts'
import { MOST_ADMISSIONS, renewRights } from './renew-rights.ts'

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
  let { rights } = request
  for (let admissions = 0; admissions < MOST_ADMISSIONS; admissions++) {
    const result = await refuse(deps, { ...request, rights, counted: true }, error, { target: null })
    if (result.kind === 'refused') return result
    try {
      rights = await renewRights(deps, rights, result)
    } catch {
      return null
    }
  }
  return null
}
