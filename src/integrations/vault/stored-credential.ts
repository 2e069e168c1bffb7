import * as z from 'zod'
import type { KeyRing } from '../../lib/crypto.ts'
import type { AuthorizationMethod, UpstreamCredential } from '../types.ts'
import { type EnvelopeOwner, openEnvelope, sealEnvelope } from './envelope.ts'
import { clientInformation, serverMetadata } from './oauth-metadata.ts'

const oauthCredential = z.object({
  kind: z.literal('oauth'),
  origin: z.string(),
  server: serverMetadata,
  client: clientInformation,
  /** RFC 8707; null where the upstream does not name itself as a protected resource. */
  resource: z.string().nullable(),
  accessToken: z.string(),
  refreshToken: z.string().nullable(),
  /** Milliseconds since the epoch. */
  obtainedAt: z.number(),
  /** Whether it was obtained because the upstream had refused the token before it. */
  replacesRefused: z.boolean().default(false),
  /** Milliseconds since the epoch; null for a token without a known end. */
  expiresAt: z.number().nullable(),
})

const storedCredential = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('bearer'), origin: z.string(), secret: z.string() }),
  z.object({ kind: z.literal('header'), origin: z.string(), secret: z.string() }),
  z.object({ kind: z.literal('basic'), origin: z.string(), username: z.string(), password: z.string() }),
  oauthCredential,
])

/**
 * The credential of a connection in clear. `origin` is that of the integration when the credential was given: it is sent
 * nowhere else, so that changing an integration's address does not send people's credentials to another host.
 */
export type StoredCredential = z.infer<typeof storedCredential>
export type OAuthCredential = z.infer<typeof oauthCredential>

export const sealStoredCredential = (ring: KeyRing, owner: EnvelopeOwner, credential: StoredCredential) =>
  sealEnvelope(ring, owner, JSON.stringify(credential))

/** @throws when it does not open. */
export const openStoredCredential = (ring: KeyRing, owner: EnvelopeOwner, sealed: string): StoredCredential =>
  storedCredential.parse(JSON.parse(openEnvelope(ring, owner, sealed)))

/**
 * The headers with which a credential authorizes a request.
 * @returns null for a credential that does not fit the integration any more: of another kind, or for another host.
 */
export function upstreamCredential(
  credential: StoredCredential,
  integration: { url: string; authorization: AuthorizationMethod },
): UpstreamCredential | null {
  const { authorization } = integration
  if (new URL(integration.url).origin !== credential.origin) return null
  switch (credential.kind) {
    case 'bearer':
      return authorization.kind === 'bearer' ? bearerCredential(credential.secret) : null
    case 'header':
      return authorization.kind === 'header'
        ? headerCredential(authorization.header, credential.secret)
        : null
    case 'basic':
      return authorization.kind === 'basic' ? basicCredential(credential.username, credential.password) : null
    case 'oauth':
      return authorization.kind === 'oauth' ? oauthHeaders(credential) : null
  }
}

export const bearerCredential = (secret: string): UpstreamCredential => ({
  headers: { authorization: `Bearer ${secret}` },
  secrets: [secret],
})

export const headerCredential = (header: string, secret: string): UpstreamCredential => ({
  headers: { [header.toLowerCase()]: secret },
  secrets: [secret],
})

/** RFC 7617, with UTF-8. */
export function basicCredential(username: string, password: string): UpstreamCredential {
  const encoded = Buffer.from(`${username}:${password}`, 'utf8').toString('base64')
  return { headers: { authorization: `Basic ${encoded}` }, secrets: [encoded, password] }
}

function oauthHeaders({ accessToken, refreshToken, client }: OAuthCredential): UpstreamCredential {
  const others = [refreshToken, client.client_secret].filter((secret) => typeof secret === 'string')
  const { headers, secrets } = bearerCredential(accessToken)
  return { headers, secrets: [...secrets, ...others] }
}

const VISIBLE_CHARACTERS = 4
/** A secret that is shorter shows none of its characters. */
const LEAST_LENGTH = 16

/** The last characters of a static secret, for people to recognize it; null for one that is short or is a password. */
export function credentialHint(credential: StoredCredential): string | null {
  if (credential.kind !== 'bearer' && credential.kind !== 'header') return null
  const { secret } = credential
  return secret.length < LEAST_LENGTH ? null : secret.slice(-VISIBLE_CHARACTERS)
}
