import { unprocessable } from '../../../lib/api-error.ts'
import { type AccessToken, type TokenExchange, TokenRefused, tokenOf } from '../access-tokens.ts'
import type { CredentialForm, CredentialParts } from '../credential.ts'

// https://developers.google.com/identity/protocols/oauth2/service-account#authorizingrequests

const part = { secret: false, required: false }

/** The members of a service account's key file, as Google issues it. */
export const SERVICE_ACCOUNT: CredentialForm = {
  client_email: { secret: false, required: true },
  private_key: { secret: true, required: true },
  project_id: { secret: false, required: true },
  private_key_id: { secret: true, required: false },
  token_uri: part,
  type: part,
  client_id: part,
  auth_uri: part,
  auth_provider_x509_cert_url: part,
  client_x509_cert_url: part,
  universe_domain: part,
}

const TOKEN_URI = 'https://oauth2.googleapis.com/token'
/** Google's token services, also of older key files. Other paths of these hosts belong to other APIs. */
const TOKEN_ADDRESSES = new Set([
  TOKEN_URI,
  'https://www.googleapis.com/oauth2/v3/token',
  'https://www.googleapis.com/oauth2/v4/token',
  'https://accounts.google.com/o/oauth2/token',
])
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
const LIFETIME_SECONDS = 3_600
const PEM = /^\s*-----BEGIN PRIVATE KEY-----([A-Za-z0-9+/=\s]+)-----END PRIVATE KEY-----\s*$/
const PROJECT = /^[a-z0-9]([a-z0-9.:-]*[a-z0-9])?$/

/** @throws ApiError `unprocessable` for a key, project or token address that is none; the message quotes no value. */
export function checkServiceAccount(parts: CredentialParts): void {
  if (!PEM.test(pemOf(parts)))
    throw unprocessable('credential: `private_key` must be a PKCS#8 key in PEM form.')
  if (!PROJECT.test(parts.project_id ?? '')) throw unprocessable('credential: `project_id` is no project.')
  tokenAddress(parts)
}

/** Keys that have passed a shell or an environment variable often have their line breaks escaped. */
const pemOf = ({ private_key: key = '' }: CredentialParts): string => key.replaceAll('\\n', '\n')

/**
 * The address is a part of the key file, which a customer may have edited: only Google's own receive the assertion. An
 * address without TLS is left to the guarded fetch, which takes only those of EGRESS_ALLOW.
 */
function tokenAddress({ token_uri: address = TOKEN_URI }: CredentialParts): string {
  const isPlain = URL.canParse(address) && new URL(address).protocol === 'http:'
  if (isPlain || TOKEN_ADDRESSES.has(address)) return address
  throw unprocessable('credential: `token_uri` is no address of Google.')
}

/** The exchange of a signed assertion for an access token. */
export function serviceAccountExchange(parts: CredentialParts): TokenExchange {
  return async ({ now, send }): Promise<AccessToken> => {
    const address = tokenAddress(parts)
    const body = new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      assertion: await assertionOf(parts, Math.floor(now / 1_000)),
    })
    const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }
    return tokenOf(await send(address, { method: 'POST', headers, body: body.toString() }), now)
  }
}

/** @param issuedAt seconds since the epoch. @throws TokenRefused for a key that cannot sign. */
async function assertionOf(parts: CredentialParts, issuedAt: number): Promise<string> {
  const { client_email: issuer, private_key_id: keyId, token_uri: audience = TOKEN_URI } = parts
  const header = { alg: 'RS256', ...(keyId !== undefined && { kid: keyId }) }
  const claims = { iss: issuer, scope: SCOPE, aud: audience, exp: issuedAt + LIFETIME_SECONDS, iat: issuedAt }
  const signed = [header, claims]
    .map((each) => Buffer.from(JSON.stringify(each)).toString('base64url'))
    .join('.')
  const key = await signingKey(parts)
  const signature = await crypto.subtle.sign(ALGORITHM, key, new TextEncoder().encode(signed))
  return `${signed}.${Buffer.from(signature).toString('base64url')}`
}

const ALGORITHM = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }

async function signingKey(parts: CredentialParts): Promise<CryptoKey> {
  const der = Buffer.from(PEM.exec(pemOf(parts))?.[1] ?? '', 'base64')
  try {
    return await crypto.subtle.importKey('pkcs8', der, ALGORITHM, false, ['sign'])
  } catch {
    throw new TokenRefused('the private key of the service account cannot sign')
  }
}
