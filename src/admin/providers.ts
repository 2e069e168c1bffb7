import {
  type CredentialParts,
  credentialOf,
  type ProviderCredential,
  sealCredential,
} from '../gateway/providers/credential.ts'
import { PROVIDER_KINDS } from '../gateway/providers/provider.ts'
import type { ProviderKindDefinition } from '../gateway/providers/transport.ts'
import { type ChangeScope, changeCatalogue, conflict } from '../ledger/changes/audited-change.ts'
import { notFound, unprocessable } from '../lib/api-error.ts'
import { checkEgress, EgressError, isException } from '../lib/safe-fetch.ts'
import { withoutTrailing } from '../lib/without-trailing.ts'
import {
  insertProvider,
  organizationExists,
  type ProviderRow,
  selectProvider,
  updateProvider,
} from './model-catalogue.store.ts'

/** One text, or the named parts that the kind of provider needs. */
type GivenCredential = string | CredentialParts

/**
 * Creates a provider with its sealed credential, for all organizations or for one.
 * @throws ApiError `unprocessable` for an address that may not be called and for a credential of another form;
 * `not_found` for an organization that does not exist; `unprocessable` for a taken name.
 */
export async function createProvider(
  scope: ChangeScope,
  values: {
    name: string
    kind: ProviderRow['kind']
    /** Absent for the kind's default. */
    baseUrl?: string | undefined
    credential: GivenCredential
    organizationId?: string | null | undefined
    allowedMembers?: string[] | undefined
    allowsUnpriced?: boolean | undefined
  },
): Promise<ProviderRow> {
  const id = crypto.randomUUID()
  const { name, kind, organizationId = null, allowedMembers = [], allowsUnpriced } = values
  const definition = PROVIDER_KINDS[kind]
  const credential = credentialOf(definition.credential, values.credential)
  definition.check?.(credential.parts)
  const given = values.baseUrl ?? definition.defaultBaseUrl?.(credential.parts)
  if (given === undefined) throw unprocessable('base_url: is required for this kind of provider.')
  const baseUrl = checkBaseUrl(given, definition, scope.egressAllow)
  definition.check?.(credential.parts, baseUrl)
  if (organizationId !== null && !(await organizationExists(scope.database, organizationId))) {
    throw notFound('Organization', organizationId)
  }
  return changeCatalogue(
    scope,
    {
      action: 'provider.created',
      resource: `providers/${id}`,
      detail: {
        name,
        kind,
        base_url: baseUrl,
        organization_id: organizationId,
        allowed_members: allowedMembers,
        allow_unpriced: allowsUnpriced,
      },
    },
    () => {
      const sealedCredential = sealCredential(scope.vaultRing, id, credential)
      return insertProvider(scope.database, {
        ...{ id, name, kind, baseUrl, sealedCredential, organizationId, allowedMembers },
        ...(allowsUnpriced && { allowsUnpriced }),
      })
    },
  )
}

/** @throws ApiError `not_found`. */
export async function readProvider(scope: ChangeScope, providerId: string): Promise<ProviderRow> {
  const row = await selectProvider(scope.database, providerId)
  if (row === null) throw notFound('Provider', providerId)
  return row
}

/**
 * Changes name, address, credential (all its parts) or state of a provider. Another host needs the credential in the same
 * request: otherwise the stored one could be sent to an address of the caller's choice.
 * @throws ApiError `not_found`; `unprocessable` for an address that may not be called and for a credential of another
 * form; `unprocessable` for another host without the credential.
 */
export async function changeProvider(
  scope: ChangeScope,
  providerId: string,
  values: {
    name?: string | undefined
    baseUrl?: string | undefined
    credential?: GivenCredential | undefined
    allowedMembers?: string[] | undefined
    allowsUnpriced?: boolean | undefined
    disabled?: boolean | undefined
  },
): Promise<ProviderRow> {
  const before = await readProvider(scope, providerId)
  const { name, disabled, allowedMembers, allowsUnpriced } = values
  const { credential, baseUrl } = checkedChange(scope, before, values)
  await changeCatalogue(
    scope,
    {
      action: disabled === true ? 'provider.disabled' : 'provider.updated',
      resource: `providers/${providerId}`,
      detail: {
        ...{ name, base_url: baseUrl, credential_replaced: credential !== undefined, disabled },
        allowed_members: allowedMembers,
        allow_unpriced: allowsUnpriced,
      },
    },
    async () => {
      const raised = await updateProvider(scope.database, providerId, before.baseUrl, {
        name,
        disabled,
        ...(allowedMembers !== undefined && { allowedMembers }),
        ...(allowsUnpriced !== undefined && { allowsUnpriced }),
        ...(baseUrl !== undefined && { baseUrl }),
        ...(credential !== undefined && {
          sealedCredential: sealCredential(scope.vaultRing, providerId, credential),
        }),
      })
      if (raised === null) throw conflict('Somebody changed the provider at the same time; look at it again.')
      return raised
    },
  )
  return readProvider(scope, providerId)
}

/** Checks a new address and credential. @throws ApiError as `changeProvider`. */
function checkedChange(
  { egressAllow }: ChangeScope,
  before: ProviderRow,
  given: { baseUrl?: string | undefined; credential?: GivenCredential | undefined },
): { baseUrl: string | undefined; credential: ProviderCredential | undefined } {
  const definition = PROVIDER_KINDS[before.kind]
  const credential =
    given.credential === undefined ? undefined : credentialOf(definition.credential, given.credential)
  const baseUrl =
    given.baseUrl === undefined ? undefined : checkBaseUrl(given.baseUrl, definition, egressAllow)
  if (baseUrl !== undefined && credential === undefined && !sameOrigin(baseUrl, before.baseUrl)) {
    throw conflict('A base_url on another host needs its credential in the same request.')
  }
  if (credential) definition.check?.(credential.parts, baseUrl ?? before.baseUrl)
  return { baseUrl, credential }
}

/**
 * Checks an address by the rules of outbound calls, that it is a host of the vendor where the kind has only one, and that
 * paths can be appended to it.
 * @returns the address without a trailing slash.
 */
function checkBaseUrl(
  address: string,
  { hosts }: Pick<ProviderKindDefinition, 'hosts'>,
  egressAllow: readonly string[],
): string {
  try {
    const url = checkEgress(address, egressAllow)
    if (hosts && !hosts.test(url.hostname) && !isException(url, egressAllow)) {
      throw new EgressError('is no host of this vendor')
    }
    if (url.search !== '' || url.hash !== '' || /[?#]/.test(address)) {
      throw new EgressError('a query or fragment is not allowed')
    }
    return withoutTrailing(url.href, '/')
  } catch (error) {
    if (error instanceof EgressError) throw unprocessable(`base_url: ${error.message}`)
    throw error
  }
}

const sameOrigin = (left: string, right: string) => new URL(left).origin === new URL(right).origin
