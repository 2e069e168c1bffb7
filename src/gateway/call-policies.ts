import { TokenVault } from '../governance/dlp/actions.ts'
import { type CallPolicy, callPolicy } from '../governance/dlp/call-policy.ts'
import { KNOWN_DETECTORS } from '../governance/dlp/known-detectors.ts'
import { loadPolicies } from '../governance/dlp/policies-cache.ts'
import { profilesFor } from '../governance/dlp/policy.ts'
import type { Principal } from '../governance/principal.ts'
import { ApiError } from '../lib/api-error.ts'
import { currentKey, type KeyRing } from '../lib/crypto.ts'
import type { CatalogDatabase } from './catalog/store.ts'

export interface PolicyDeps {
  database: CatalogDatabase
  configuration: { VAULT_KEYS: KeyRing }
}

/**
 * The data-loss prevention policies that hold for a model call.
 * @throws ApiError internal when they cannot be read or applied: nothing passes then.
 */
export async function policyFor(
  deps: PolicyDeps,
  principal: Principal,
  modelId: string,
): Promise<CallPolicy> {
  const { organizationId, userId, groupIds, epoch } = principal
  try {
    const policies = await loadPolicies(deps, organizationId, epoch)
    const subject = { groupIds, userId, modelId, integrationId: null }
    const vault = new TokenVault(currentKey(deps.configuration.VAULT_KEYS).key, `${organizationId}/${userId}`)
    return callPolicy(profilesFor(policies, subject, KNOWN_DETECTORS), vault)
  } catch (error) {
    throw new ApiError('internal', 'The data-loss prevention policy could not be applied.', {
      code: 'dlp_unavailable',
      cause: error,
    })
  }
}
