/**
 * Synchronous primitives of node:crypto. With WebCrypto's promises other requests could run between a check and its use,
 * and a promise made by one request must not be awaited by another.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'

/** Keys by id, the first one current: new digests and seals use it, the others still verify and open. */
export type KeyRing = ReadonlyMap<string, Uint8Array>

export function sha256Hex(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex')
}

export function hmacSha256Hex(key: Uint8Array, data: string): string {
  return createHmac('sha256', key).update(data).digest('hex')
}

/** Compares two secrets in constant time. Both are digested first, so that lengths leak nothing. */
export function secretsEqual(left: string, right: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(left), digest(right))
}

/** The current key of a ring. @throws if the ring is empty. */
export function currentKey(ring: KeyRing): { id: string; key: Uint8Array } {
  for (const [id, key] of ring) return { id, key }
  throw new Error('the key ring is empty')
}

/**
 * Seals a secret with AES-256-GCM under the ring's current key.
 * @param context bound as additional data: a sealed value moved to another row does not open.
 * @returns `v1.<key id>.<iv>.<ciphertext and tag>`, base64url parts.
 */
export function seal(ring: KeyRing, secret: string, context: string): string {
  const { id, key } = currentKey(ring)
  const iv = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(`${id}:${context}`))
  const sealed = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return `v1.${id}.${iv.toString('base64url')}.${sealed.toString('base64url')}`
}

/**
 * Opens what `seal` made.
 * @throws if the value is malformed, its key id unknown, its context another, or it was altered. The message
 * never holds any part of the secret.
 */
export function unseal(ring: KeyRing, sealedText: string, context: string): string {
  const [version, id, iv, body] = sealedText.split('.')
  const key = id === undefined ? undefined : ring.get(id)
  if (version !== 'v1' || !id || !iv || !body || !key) throw new Error('sealed value cannot be opened')
  const sealed = Buffer.from(body, 'base64url')
  const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(iv, 'base64url'), { authTagLength: 16 })
  decipher.setAAD(Buffer.from(`${id}:${context}`)).setAuthTag(sealed.subarray(-16))
  return Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()]).toString('utf8')
}
