import { crc32 } from 'node:zlib'
import { currentKey, hmacSha256Hex, type KeyRing } from '../lib/crypto.ts'
import { randomBase62 } from '../lib/ids.ts'

/**
 * Secrets that a caller presents: API keys (`hg`), sessions of the web terminal (`hgs`) and setup links (`hgl`). All have the
 * form `<prefix>_<id>_<secret><checksum>`, and only a digest of each is stored.
 */
type TokenPrefix = 'hg' | 'hgs' | 'hgl'

/** The stored form of a token. */
interface TokenDigest {
  /** The pepper that made the digest. */
  pepperId: string
  /** HMAC-SHA-256 of the whole token, hex. */
  digest: string
}

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const ID_LENGTH = 12
/** 43 base62 characters carry 256 random bits. */
const SECRET_LENGTH = 43
/** 62^6 is more than 2^32, so six characters hold any CRC-32. */
const CHECKSUM_LENGTH = 6
const SHAPE = new RegExp(
  `^(hg|hgs|hgl)_([0-9A-Za-z]{${ID_LENGTH}})_[0-9A-Za-z]{${SECRET_LENGTH + CHECKSUM_LENGTH}}$`,
)

/**
 * Makes a new token.
 * @returns `id`, which is public and names the token in lists and audit records, and `token`, which its owner gets once and
 * which is never stored.
 */
export function createToken(prefix: TokenPrefix): { id: string; token: string } {
  const id = randomBase62(ID_LENGTH)
  const body = `${prefix}_${id}_${randomBase62(SECRET_LENGTH)}`
  return { id, token: body + checksum(body) }
}

/**
 * Recognizes a token by shape and checksum, so that a mistyped, cut or foreign credential costs no database query. The
 * checksum is no secret: it proves nothing about the token's rights.
 * @returns the token's id, or null.
 */
export function parseToken(prefix: TokenPrefix, text: string): { id: string } | null {
  const [, found, id] = SHAPE.exec(text) ?? []
  if (found !== prefix || id === undefined) return null
  return checksum(text.slice(0, -CHECKSUM_LENGTH)) === text.slice(-CHECKSUM_LENGTH) ? { id } : null
}

/** The digest of a new token, made with the ring's current pepper. @throws if the ring is empty. */
export function digestToken(ring: KeyRing, token: string): TokenDigest {
  const pepper = currentKey(ring)
  return { pepperId: pepper.id, digest: hmacSha256Hex(pepper.key, token) }
}

/** The digests of a token under every pepper, the current one first: tokens stay valid when a pepper is added. */
export function digestsFor(ring: KeyRing, token: string): TokenDigest[] {
  return [...ring].map(([pepperId, pepper]) => ({ pepperId, digest: hmacSha256Hex(pepper, token) }))
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
