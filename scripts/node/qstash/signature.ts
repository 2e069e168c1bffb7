import { createHash, createHmac, randomUUID } from 'node:crypto'

/** How long a signature is good for, in seconds. */
const LIFETIME_SECONDS = 300

/**
 * Signs a delivery as QStash does: a JWT (HS256) whose claims name the URL and the hash of the body.
 * https://upstash.com/docs/qstash/features/security
 *
 * The time is the system's even where the clock of the stand-in was moved, since receivers check it by theirs.
 *
 * @param key the signing key
 * @param url the destination exactly as it was published
 * @param body the bytes that are delivered
 * @param at when it is signed, in milliseconds since 1970
 */
export function signDelivery(key: string, url: string, body: Buffer, at = Date.now()): string {
  const now = Math.floor(at / 1000)
  const hash = createHash('sha256').update(body).digest('base64')
  const claims = {
    iss: 'Upstash',
    sub: url,
    exp: now + LIFETIME_SECONDS,
    nbf: now,
    iat: now,
    jti: `jwt_${randomUUID().replaceAll('-', '')}`,
    // Base64url, yet padded, as the documentation's example is.
    body: hash.replaceAll('+', '-').replaceAll('/', '_'),
  }
  const unsigned = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`
  return `${unsigned}.${createHmac('sha256', key).update(unsigned).digest('base64url')}`
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
