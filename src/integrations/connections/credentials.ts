import type { Database } from '../../../schema/database.ts'
import type { KeyRing } from '../../lib/crypto.ts'
import {
  type Connection,
  CredentialsUnavailable,
  type Integration,
  NO_CREDENTIAL,
  type UpstreamCredential,
} from '../types.ts'
import { openCredential, upstreamCredential } from '../vault/stored-credential.ts'
import { markNeedsReauth, selectCredential } from './connections.store.ts'

export interface CredentialDeps {
  database: Database
  configuration: { VAULT_KEYS: KeyRing }
}

/**
 * The credential with which a request to an upstream is authorized.
 * @param connection null for an integration that needs none.
 * @throws CredentialsUnavailable when the connection has none that can be used; what the database throws.
 */
export async function credentialOf(
  deps: CredentialDeps,
  integration: Integration,
  connection: Connection | null,
): Promise<UpstreamCredential> {
  if (integration.authorization.kind === 'none') return NO_CREDENTIAL
  if (connection === null) throw new CredentialsUnavailable(null)
  const { id, organizationId } = connection
  const row = await selectCredential(deps.database, organizationId, id)
  if (row?.status !== 'active' || row.sealedCredential === null) throw new CredentialsUnavailable(id)
  const owner = { organizationId, connectionId: id }
  const stored = openCredential(deps.configuration.VAULT_KEYS, owner, row.sealedCredential)
  const credential = upstreamCredential(stored, integration)
  if (credential === null) throw new CredentialsUnavailable(id)
  return credential
}

/**
 * Marks a connection whose credential the upstream has refused, unless the credential was replaced meanwhile.
 * @param refused the credential that was sent.
 * @returns whether another credential is there: the call may be made once more, with a new `credentialOf`.
 */
export async function reportRefused(
  deps: CredentialDeps,
  integration: Integration,
  connection: Connection,
  refused: UpstreamCredential,
): Promise<boolean> {
  const { id, organizationId } = connection
  const row = await selectCredential(deps.database, organizationId, id)
  if (row?.status !== 'active' || row.sealedCredential === null) return false
  const owner = { organizationId, connectionId: id }
  const stored = openCredential(deps.configuration.VAULT_KEYS, owner, row.sealedCredential)
  const current = upstreamCredential(stored, integration)
  if (current !== null && !isSame(current, refused)) return true
  await markNeedsReauth(deps.database, organizationId, id, row.credentialVersion)
  return false
}

const isSame = (left: UpstreamCredential, right: UpstreamCredential) =>
  Object.entries(left.headers).every(([name, value]) => right.headers[name] === value)
