import { selectCredential } from '../connections/connections.store.ts'
import {
  type Connection,
  CredentialsUnavailable,
  type Integration,
  NO_CREDENTIAL,
  type UpstreamCredential,
} from '../types.ts'
import type { BrokerDeps, BrokeredConnection } from './broker.ts'
import { BROKERS } from './brokers.ts'

export type CredentialDeps = BrokerDeps

/**
 * The credential with which a request to an upstream is authorized. Read for each call, so that a connection that was
 * revoked is not used any more.
 * @param connection null for an integration that needs none.
 * @throws CredentialsUnavailable when the connection has none that can be used; ApiError upstream when it cannot be renewed
 * at the moment; what the database throws.
 * @internal Tests read a renewed credential without an upstream.
 */
export async function upstreamCredentialOf(
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
 * Makes a request to an upstream with the credential of a connection. One that the upstream refuses is replaced once, and the
 * request repeated: nothing was executed then. If the replacement is refused too, or there is none, the connection is marked.
 * @param send throws CredentialsUnavailable when the upstream refuses the credential.
 * @throws what `upstreamCredentialOf` and `send` throw.
 */
export async function sendAuthorized<Result>(
  deps: CredentialDeps,
  integration: Integration,
  connection: Connection | null,
  send: (credential: UpstreamCredential) => Promise<Result>,
): Promise<Result> {
  const credential = await upstreamCredentialOf(deps, integration, connection)
  try {
    return await send(credential)
  } catch (error) {
    if (!(error instanceof CredentialsUnavailable) || connection === null) throw error
    if (!(await reportRefused(deps, integration, connection, credential, false))) throw error
  }
  const replacement = await upstreamCredentialOf(deps, integration, connection)
  try {
    return await send(replacement)
  } catch (error) {
    if (error instanceof CredentialsUnavailable) {
      await reportRefused(deps, integration, connection, replacement, true)
    }
    throw error
  }
}

/**
 * Renews the credential of a connection that the upstream has refused, or marks the connection, unless the credential was
 * replaced meanwhile.
 * @param refused the credential that was sent. @param isReplacement as `ConnectionBroker.reportRefused`.
 * @returns whether another credential is there.
 * @throws ApiError upstream when it cannot be renewed at the moment; what the database throws.
 * @internal Tests refuse a credential without an upstream.
 */
export async function reportRefused(
  deps: CredentialDeps,
  integration: Integration,
  connection: Connection,
  refused: UpstreamCredential,
  isReplacement: boolean,
): Promise<boolean> {
  const brokered = await usableConnection(deps, integration, connection)
  if (brokered === null) return false
  return BROKERS[brokered.row.broker].reportRefused(deps, brokered, refused, isReplacement)
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
