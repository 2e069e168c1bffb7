import { identifyOwner } from '../governance/identity/identify.ts'
import { readEpochs } from '../governance/identity/store.ts'
import type { Principal } from '../governance/principal.ts'
import { ApiError } from '../lib/api-error.ts'

/** What the caller of a response may do, and what there is to be used. */
export interface CurrentRights {
  principal: Principal
  catalogueEpoch: number
}

type RightsDeps = Parameters<typeof identifyOwner>[0]

/**
 * The rights that a response goes on with. A response may run for an hour, and a key that is revoked meanwhile pays for
 * nothing more. Postgres is asked, without the key, which does not leave the Worker.
 * @throws ApiError `key_revoked`, `key_expired`, `access_disabled`, `model_access_denied` for a caller that may not call
 * any more, and whatever the database throws when it cannot be asked. Nobody goes on then.
 */
export async function currentRights(
  deps: RightsDeps,
  { organizationId, keyId }: Pick<Principal, 'organizationId' | 'keyId'>,
): Promise<CurrentRights> {
  const [identification, epochs] = await Promise.all([
    identifyOwner(deps, organizationId, keyId),
    readEpochs(deps.database, organizationId),
  ])
  if (identification.kind === 'refused') throw refused(identification.reason)
  const { principal } = identification
  if (!principal.scopes.includes('models')) {
    const message = 'This API key does not have the scope models any more.'
    throw new ApiError('forbidden', message, { code: 'model_access_denied' })
  }
  return { principal, catalogueEpoch: epochs.catalogue }
}

function refused(reason: string): ApiError {
  if (reason === 'expired') {
    return new ApiError('unauthorized', 'The API key expired while the response ran.', {
      code: 'key_expired',
    })
  }
  if (reason === 'disabled') {
    return new ApiError('unauthorized', 'The user of the API key was disabled while the response ran.', {
      code: 'access_disabled',
    })
  }
  return new ApiError('unauthorized', 'The API key was revoked while the response ran.', {
    code: 'key_revoked',
  })
}
