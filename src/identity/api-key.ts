import { crc32 } from 'node:zlib'
import { currentKey, hmacSha256Hex, type KeyRing } from '../lib/crypto.ts'
import { randomBase62 } from '../lib/ids.ts'

/** The stored form of a key. */
interface KeyDigest {
  /** The pepper that made the digest. */
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
 * @returns `id`, which is public and names the key in lists and audit records, and `key`, which its owner gets once and
 * which is never stored.
 */
export function createApiKey(): { id: string; key: string } {
  const id = randomBase62(ID_LENGTH)
  const body = `${PREFIX}_${id}_${randomBase62(SECRET_LENGTH)}`
  return { id, key: body + checksum(body) }
}

/**
 * Recognizes a key by shape and checksum, so that a mistyped, cut or foreign credential costs no database query. The
 * checksum is no secret: it proves nothing about the key's rights.
 * @returns the key's id, or null.
 */
export function parseApiKey(text: string): { id: string } | null {
  const id = SHAPE.exec(text)?.[1]
  if (id === undefined) return null
  return checksum(text.slice(0, -CHECKSUM_LENGTH)) === text.slice(-CHECKSUM_LENGTH) ? { id } : null
}

/** The digest of a new key, made with the ring's current pepper. @throws if the ring is empty. */
export function digestApiKey(ring: KeyRing, key: string): KeyDigest {
  const pepper = currentKey(ring)
  return { pepperId: pepper.id, digest: hmacSha256Hex(pepper.key, key) }
}

/** The digests of a key under every pepper, the current one first: keys stay valid when a pepper is added. */
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
