import type { BrokerDeps, BrokeredConnection } from '../brokers/broker.ts'
import { BROKERS } from '../brokers/brokers.ts'
import {
  type Connection,
  CredentialsUnavailable,
  type Integration,
  NO_CREDENTIAL,
  type UpstreamCredential,
} from '../types.ts'
import { selectCredential } from './connections.store.ts'

export type CredentialDeps = BrokerDeps

/**
 * The credential with which a request to an upstream is authorized. Read for each call, so that a connection that was
 * revoked is not used any more.
 * @param connection null for an integration that needs none.
 * @throws CredentialsUnavailable when the connection has none that can be used; ApiError upstream when it cannot be renewed
 * at the moment; what the database throws.
 */
export async function credentialOf(
  deps: CredentialDeps,
  integration: Integration,
  connection: Connection | null,
): Promise<UpstreamCredential> {
  if (integration.authorization.kind === 'none') return NO_CREDENTIAL
  if (connection === null) throw new CredentialsUnavailable(null)
  const brokered = await usableConnection(deps, integration, connection)
  if (brokered === null) throw new CredentialsUnavailable(connection.id)
  return BROKERS[brokered.row.broker].credentialOf(deps, brokered)
}

/**
 * Renews the credential of a connection that the upstream has refused, or marks the connection, unless the credential was
 * replaced meanwhile.
 * @param refused the credential that was sent.
 * @returns whether another credential is there: the call may be made once more, with a new `credentialOf`.
 * @throws ApiError upstream when it cannot be renewed at the moment; what the database throws.
 */
export async function reportRefused(
  deps: CredentialDeps,
  integration: Integration,
  connection: Connection,
  refused: UpstreamCredential,
): Promise<boolean> {
  const brokered = await usableConnection(deps, integration, connection)
  if (brokered === null) return false
  return BROKERS[brokered.row.broker].reportRefused(deps, brokered, refused)
}

async function usableConnection(
  { database }: CredentialDeps,
  integration: Integration,
  { id, organizationId, integrationId }: Connection,
): Promise<BrokeredConnection | null> {
  if (integrationId !== integration.id || organizationId !== integration.organizationId) return null
  const row = await selectCredential(database, organizationId, id)
  return row?.status === 'active' ? { organizationId, id, integration, row } : null
}
