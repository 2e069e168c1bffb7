import type { Database } from '../../schema/database.ts'
import { TokenVault } from '../dlp/policy/actions.ts'
import { type CallPolicy, callPolicy } from '../dlp/policy/call-policy.ts'
import { loadPolicies } from '../dlp/policy/policies-cache.ts'
import { profilesFor } from '../dlp/policy/profiles.ts'
import type { Principal } from '../identity/principal.ts'
import { ApiError } from '../lib/api-error.ts'
import { currentKey, type KeyRing } from '../lib/crypto.ts'
import type { CallTarget } from './target.ts'

export interface PolicyDeps {
  database: Database
  configuration: { VAULT_KEYS: KeyRing }
}

/**
 * The data-loss prevention policies that hold for a call on a target.
 * @throws ApiError internal when they cannot be read or applied: nothing passes then.
 */
export async function policyFor(
  deps: PolicyDeps,
  principal: Pick<Principal, 'organizationId' | 'userId' | 'groupIds' | 'epoch'>,
  target: CallTarget,
): Promise<CallPolicy> {
  const { organizationId, userId, groupIds, epoch } = principal
  try {
    const policies = await loadPolicies(deps, organizationId, epoch)
    const subject = {
      groupIds,
      userId,
      modelId: target.kind === 'model' ? target.id : null,
      integrationId: target.kind === 'integration' ? target.slug : null,
    }
    const profiles = profilesFor(policies, subject)
    const { key } = currentKey(deps.configuration.VAULT_KEYS)
    return callPolicy(profiles, new TokenVault(key, `${organizationId}/${userId}`))
  } catch (error) {
    throw new ApiError('internal', 'The data-loss prevention policy could not be applied.', {
      code: 'dlp_unavailable',
      cause: error,
    })
  }
}
