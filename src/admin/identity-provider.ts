import { audited, type ChangeScope, conflict } from '../ledger/changes/audited-change.ts'
import { unprocessable } from '../lib/api-error.ts'
import { seal, unseal } from '../lib/crypto.ts'
import { checkEgress, EgressError } from '../lib/safe-fetch.ts'
import {
  deleteProvider,
  type IdentityProviderRow,
  replaceProvider,
  selectProvider,
} from './identity-provider.store.ts'
import { issuerOf, ProviderError, type ProviderFailure } from './sign-in/oidc-client.ts'

/** The identity provider of an organization: with whose accounts its members sign in. */

/** Binds the secret of a client to its organization, so that it does not open in another one's row. */
export const providerSecretContext = (organizationId: string) => `identity-provider/${organizationId}`

/** The secret of the organization's client at its provider; null for a client without one. @throws when it does not open. */
export const openProviderSecret = (
  { vaultRing }: Pick<ChangeScope, 'vaultRing'>,
  { organizationId, sealedClientSecret }: IdentityProviderRow,
): string | null =>
  sealedClientSecret === null
    ? null
    : unseal(vaultRing, sealedClientSecret, providerSecretContext(organizationId))

interface ProviderValues {
  issuer: string
  clientId: string
  /** Undefined keeps the one that is stored; null removes it. */
  clientSecret: string | null | undefined
}

/**
 * Sets the provider of an organization, after a test of its discovery. Accounts of another issuer sign in no more.
 * @throws ApiError `unprocessable` for an issuer that may not be called, does not answer, or names another issuer, and for a
 * stored secret that was given for another issuer or client.
 */
export async function setProvider(scope: ChangeScope, values: ProviderValues): Promise<IdentityProviderRow> {
  const { organizationId, vaultRing } = scope
  const { clientId, clientSecret } = values
  const before = await selectProvider(scope)
  const issuer = await checkedIssuer(scope, values.issuer)
  const keepsSecret = clientSecret === undefined
  const isSameClient = before === null || (before.issuer === issuer && before.clientId === clientId)
  if (keepsSecret && !isSameClient && before.sealedClientSecret !== null) throw secretOfAnother()
  const sealedClientSecret =
    typeof clientSecret === 'string'
      ? seal(vaultRing, clientSecret, providerSecretContext(organizationId))
      : null
  const detail = { issuer, client_id: clientId, client_secret_replaced: !keepsSecret }
  const resource = `organizations/${organizationId}/identity-provider`
  return audited(scope, { action: 'identity_provider.replaced', resource, detail }, async () => {
    const keeps = keepsSecret && before !== null && before.sealedClientSecret !== null
    const row = await replaceProvider(scope, { issuer, clientId, sealedClientSecret }, keeps)
    if (row === null) throw conflict('The identity provider was changed at the same time; look at it again.')
    return row
  })
}

const secretOfAnother = () =>
  unprocessable(
    'client_secret: the stored one was given for another issuer or client; give the secret of this one, or null',
  )

const FAILURES: Record<ProviderFailure, string> = {
  unreachable: 'does not answer',
  unusable: 'does not answer as a provider of OpenID Connect under this issuer',
  declined: 'has declined',
  refused: 'does not answer as a provider of OpenID Connect under this issuer',
}

/** The issuer as its own metadata have it. */
async function checkedIssuer(scope: ChangeScope, address: string): Promise<string> {
  try {
    const { search, hash } = checkEgress(address, scope.egressAllow)
    if (search !== '' || hash !== '') throw new EgressError('a query or a fragment is not allowed')
    return await issuerOf(scope, address)
  } catch (error) {
    if (error instanceof EgressError) throw unprocessable(`issuer: ${error.message}`)
    if (error instanceof ProviderError) throw unprocessable(`issuer: ${FAILURES[error.failure]}`)
    throw error
  }
}

/** Removes the provider: its accounts sign in no more. Sessions go on. */
export async function removeProvider(scope: ChangeScope): Promise<void> {
  const row = await selectProvider(scope)
  if (row === null) return
  const resource = `organizations/${scope.organizationId}/identity-provider`
  const detail = { issuer: row.issuer, client_id: row.clientId }
  await audited(scope, { action: 'identity_provider.removed', resource, detail }, () => deleteProvider(scope))
}
