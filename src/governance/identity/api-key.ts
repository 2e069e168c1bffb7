import { crc32 } from 'node:zlib'
import { currentKey, hmacSha256Hex, type KeyRing } from '../../lib/crypto.ts'
import { randomBase62 } from '../../lib/ids.ts'

/** What is kept of a key: its HMAC and the name of the pepper that made it. */
export interface KeyDigest {
  pepperId: string
  /** HMAC-SHA-256 of the whole key, hex. */
  digest: string
}

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const PREFIX = 'hg'
const ID_LENGTH = 12
/** 43 base62 characters carry 256 random bits. */
const SECRET_LENGTH = 43
/** 62^6 is more than 2^32, so six characters hold any CRC-32. */
const CHECKSUM_LENGTH = 6
const SHAPE = new RegExp(
  `^${PREFIX}_([0-9A-Za-z]{${ID_LENGTH}})_[0-9A-Za-z]{${SECRET_LENGTH + CHECKSUM_LENGTH}}$`,
)

/**
 * Makes a new key, `hg_<id>_<secret><checksum>`.
 * @returns `id`, which is public and names the key in lists and audit records, and `key`, which is told to its
 * owner once and kept nowhere.
 */
export function createApiKey(): { id: string; key: string } {
  const id = randomBase62(ID_LENGTH)
  const body = `${PREFIX}_${id}_${randomBase62(SECRET_LENGTH)}`
  return { id, key: body + checksum(body) }
}

/**
 * Tells a key from anything else by shape and checksum alone: a mistyped, cut or foreign credential costs no
 * database query. It proves nothing about the key's rights; the checksum is no secret.
 * @returns the key's id, or null.
 */
export function parseApiKey(text: string): { id: string } | null {
  const id = SHAPE.exec(text)?.[1]
  if (id === undefined) return null
  return checksum(text.slice(0, -CHECKSUM_LENGTH)) === text.slice(-CHECKSUM_LENGTH) ? { id } : null
}

/** The digest that a new key is stored under, made with the ring's current pepper. @throws if the ring is empty. */
export function digestApiKey(ring: KeyRing, key: string): KeyDigest {
  const pepper = currentKey(ring)
  return { pepperId: pepper.id, digest: hmacSha256Hex(pepper.key, key) }
}

/** Every digest that a key may be stored under, the current pepper's first, so that old keys outlive a new pepper. */
export function digestsFor(ring: KeyRing, key: string): KeyDigest[] {
  return [...ring].map(([pepperId, pepper]) => ({ pepperId, digest: hmacSha256Hex(pepper, key) }))
}

/** CRC-32 in base62, padded on the left. */
function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  while (digits.length < CHECKSUM_LENGTH) {
    digits = ALPHABET.charAt(rest % 62) + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}
