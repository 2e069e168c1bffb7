import { createHmac } from 'node:crypto'
import type { SeededRandom } from './seeded-random.ts'
import { ALPHABETS } from './seeded-random.ts'
import type { Names, SensitiveValue, ValueMakers } from './values.ts'

/** Tokens and keys without a vendor's mark: signed tokens, private keys, and secrets identified by their name and randomness. */

const TOKEN_NAMES: Names = {
  en: ['token', 'access token', 'bearer token', 'session token'],
  de: ['Zugriffstoken'],
  fr: ["jeton d'accès"],
}

const base64url = (text: string): string => Buffer.from(text).toString('base64url')

function signedToken(random: SeededRandom, algorithm: string, signatureBytes: number): string {
  const header = random.pick([
    { alg: algorithm, typ: 'JWT' },
    { typ: 'JWT', alg: algorithm },
    { alg: algorithm, kid: random.characters(ALPHABETS.alphanumeric, 12) },
  ])
  const issued = 1_700_000_000 + random.integer(0, 90_000_000)
  const claims = {
    sub: String(random.integer(1, 999_999)),
    iat: issued,
    exp: issued + 3_600,
    scope: 'read write',
  }
  const body = `${base64url(JSON.stringify(header))}.${base64url(JSON.stringify(claims))}`
  const signature =
    algorithm === 'HS256'
      ? createHmac('sha256', random.bytes(32)).update(body).digest('base64url')
      : Buffer.from(random.bytes(signatureBytes)).toString('base64url')
  return `${body}.${signature}`
}

export const SIGNED_TOKENS: ValueMakers = Object.fromEntries(
  [
    ['HS256', 32],
    ['RS256', 256],
    ['ES256', 64],
    ['EdDSA', 64],
  ].map(([algorithm, bytes]) => [
    String(algorithm),
    (random: SeededRandom) => ({
      type: 'jwt' as const,
      kind: String(algorithm),
      text: signedToken(random, String(algorithm), Number(bytes)),
      names: TOKEN_NAMES,
      keys: ['access_token', 'id_token', 'authorization'],
      needsName: false,
    }),
  ]),
)

const KEY_NAMES: Names = {
  en: ['private key', 'signing key', 'key'],
  de: ['privater Schlüssel'],
  fr: ['clé privée'],
}

/** Label of the armor, bytes inside, and lines of headers. */
const ARMORS: Record<string, readonly [label: string, bytes: number, head?: string]> = {
  pkcs8: ['PRIVATE KEY', 180],
  rsa: ['RSA PRIVATE KEY', 420],
  ec: ['EC PRIVATE KEY', 121],
  encrypted: ['ENCRYPTED PRIVATE KEY', 210],
  openssh: ['OPENSSH PRIVATE KEY', 270],
  dsa: ['DSA PRIVATE KEY', 200],
  legacy_encrypted: ['RSA PRIVATE KEY', 240, 'Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,9F1C\n\n'],
  pgp: ['PGP PRIVATE KEY BLOCK', 300, '\n'],
}

export const PRIVATE_KEYS: ValueMakers = Object.fromEntries(
  Object.entries(ARMORS).map(([kind, [label, bytes, head = '']]) => [
    kind,
    (random: SeededRandom) => {
      const lines =
        Buffer.from(random.bytes(bytes))
          .toString('base64')
          .match(/.{1,64}/g) ?? []
      // Assembled from parts, so that no scanner takes this file for a key.
      const mark = (word: string) => `${'-'.repeat(5)}${word} ${label}${'-'.repeat(5)}`
      return {
        type: 'private_key' as const,
        kind,
        text: `${mark('BEGIN')}\n${head}${lines.join('\n')}\n${mark('END')}`,
        names: KEY_NAMES,
        keys: ['private_key', 'privateKey', 'signing_key'],
        needsName: false,
      }
    },
  ]),
)

const SECRET_NAMES: Names = {
  en: ['password', 'API key', 'client secret', 'secret', 'access token'],
  de: ['Passwort', 'Kennwort'],
  fr: ['mot de passe'],
  es: ['contraseña'],
}
const SECRET_KEYS = [
  'password',
  'api_key',
  'client_secret',
  'SECRET_KEY',
  'authToken',
  'apiKey',
  'db_password',
]

const secret =
  (kind: string, write: (random: SeededRandom) => string) =>
  (random: SeededRandom): SensitiveValue => ({
    type: 'entropy_secret',
    kind,
    text: write(random),
    names: SECRET_NAMES,
    keys: SECRET_KEYS,
    needsName: true,
  })

export const ENTROPY_SECRETS: ValueMakers = Object.fromEntries(
  Object.entries({
    hexadecimal_32: (random: SeededRandom) => random.characters(ALPHABETS.hexadecimal, 32),
    hexadecimal_64: (random: SeededRandom) => random.characters(ALPHABETS.hexadecimal, 64),
    base64_32_bytes: (random: SeededRandom) => Buffer.from(random.bytes(32)).toString('base64'),
    base64url_48: (random: SeededRandom) => random.characters(ALPHABETS.base64url, 48),
    alphanumeric_32: (random: SeededRandom) => random.characters(ALPHABETS.alphanumeric, 32),
    alphanumeric_24: (random: SeededRandom) => random.characters(ALPHABETS.alphanumeric, 24),
    password_20: (random: SeededRandom) => random.characters(`${ALPHABETS.alphanumeric}!#%*+-=?@^_~`, 20),
  }).map(([kind, write]) => [kind, secret(kind, write)]),
)
