import { randomBytes } from 'node:crypto'
import { currentKey, type KeyRing, seal, unseal } from '../../lib/crypto.ts'

/**
 * Envelope encryption of a connection's credential: the credential is sealed under a data key of its own, and the data key
 * under a key of the vault. Rotation seals the data key anew, and never has the credential in clear. Both seals are
 * AES-256-GCM with organization and connection as additional data, so that a row's value does not open in another row.
 */

const FORMAT = 'e1'
const DATA_KEY_BYTES = 32
const DATA_KEY_NAME = 'data'

/** The owner of the credential in an envelope. */
export interface EnvelopeOwner {
  organizationId: string
  connectionId: string
}

/** @returns `e1:<sealed data key>:<sealed secret>`, and the id of the vault's key. */
export function sealEnvelope(
  ring: KeyRing,
  owner: EnvelopeOwner,
  secret: string,
): { sealed: string; vaultKeyId: string } {
  const dataKey = randomBytes(DATA_KEY_BYTES)
  const sealedKey = seal(ring, dataKey.toString('base64'), keyContext(owner))
  const body = seal(new Map([[DATA_KEY_NAME, dataKey]]), secret, secretContext(owner))
  return { sealed: [FORMAT, sealedKey, body].join(':'), vaultKeyId: currentKey(ring).id }
}

/** @throws if the value is malformed, was altered, is of another connection, or was sealed under a key that is gone. */
export function openEnvelope(ring: KeyRing, owner: EnvelopeOwner, sealed: string): string {
  const { sealedKey, body } = partsOf(sealed)
  const dataKey = Buffer.from(unseal(ring, sealedKey, keyContext(owner)), 'base64')
  return unseal(new Map([[DATA_KEY_NAME, dataKey]]), body, secretContext(owner))
}

/** Seals the data key under the current key of the vault. @throws as `openEnvelope`. */
export function resealEnvelope(ring: KeyRing, owner: EnvelopeOwner, sealed: string): string {
  const { sealedKey, body } = partsOf(sealed)
  const dataKey = unseal(ring, sealedKey, keyContext(owner))
  const resealed = seal(ring, dataKey, keyContext(owner))
  return [FORMAT, resealed, body].join(':')
}

function partsOf(sealed: string): { sealedKey: string; body: string } {
  const [format, sealedKey, body, ...rest] = sealed.split(':')
  if (format !== FORMAT || !sealedKey || !body || rest.length > 0) {
    throw new Error('sealed value cannot be opened')
  }
  return { sealedKey, body }
}

const keyContext = ({ organizationId, connectionId }: EnvelopeOwner) =>
  `connection-key:${organizationId}:${connectionId}`

const secretContext = ({ organizationId, connectionId }: EnvelopeOwner) =>
  `connection-credential:${organizationId}:${connectionId}`
