import { type KeyRing, seal, unseal } from '../../lib/crypto.ts'

/** Binds the secret of an OAuth client to its integration, so that it does not open in another one's row. */
export const clientSecretContext = (integrationId: string) => `integration-client/${integrationId}`

/** Seals the secret of a configured OAuth client for the row of its integration. */
export const sealClientSecret = (ring: KeyRing, integrationId: string, secret: string): string =>
  seal(ring, secret, clientSecretContext(integrationId))

/** @throws when it does not open. */
export const openClientSecret = (ring: KeyRing, integrationId: string, sealed: string): string =>
  unseal(ring, sealed, clientSecretContext(integrationId))
