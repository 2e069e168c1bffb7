import { exchangeAuthorization, refreshAuthorization } from '@modelcontextprotocol/client'
import type { OAuthCredential } from '../../vault/stored-credential.ts'
import { BrokerError, type brokerFetch } from '../broker-fetch.ts'
import { type ClientInformation, type ServerMetadata, tokenErrorCode } from './authorization-server.ts'

type Send = ReturnType<typeof brokerFetch>

/** State of an authorization that the exchange of its code needs. */
interface CodeExchange {
  server: ServerMetadata
  client: ClientInformation
  resource: string | null
  redirectUri: string
  verifier: string
  code: string
  /** Issuer of the redirect (RFC 9207). */
  issuer: string | undefined
  /** Origin of the integration. */
  origin: string
}

/** The authorization server refuses what it was sent, which repeating does not change. */
export class TokenRefused extends Error {
  constructor(options?: ErrorOptions) {
    super('the authorization server refuses', options)
    this.name = 'TokenRefused'
  }
}

/** RFC 6749, section 5.2: codes by which a grant or a client is refused for good. */
const FINAL = [
  'invalid_grant',
  'invalid_client',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
]

/**
 * Exchanges the code of an authorization for tokens, after the issuer of the redirect was compared.
 * @throws TokenRefused; BrokerError for a server that does not answer as it must.
 */
export async function exchangeCode(
  send: Send,
  exchange: CodeExchange,
  now: number,
): Promise<OAuthCredential> {
  const { server, client, resource, redirectUri, verifier, code, issuer, origin } = exchange
  const tokens = await tokensOf(() =>
    exchangeAuthorization(server.issuer, {
      metadata: server,
      clientInformation: client,
      authorizationCode: code,
      ...(issuer !== undefined && { iss: issuer }),
      codeVerifier: verifier,
      redirectUri,
      ...(resource !== null && { resource }),
      fetchFn: send,
    }),
  )
  const grant = { kind: 'oauth' as const, origin, server, client, resource }
  return { ...grant, replacesRefused: false, ...obtained(tokens, null, now) }
}

/**
 * Renews the tokens of a credential. A refresh token that the server does not replace stays.
 * @param replacesRefused whether the upstream has refused the access token.
 * @throws TokenRefused, also without a refresh token; BrokerError for a server that does not answer as it must.
 */
export async function renewTokens(
  send: Send,
  credential: OAuthCredential,
  replacesRefused: boolean,
  now: number,
): Promise<OAuthCredential> {
  const { server, client, resource, refreshToken } = credential
  if (refreshToken === null) throw new TokenRefused()
  const tokens = await tokensOf(() =>
    refreshAuthorization(server.issuer, {
      metadata: server,
      clientInformation: client,
      refreshToken,
      ...(resource !== null && { resource }),
      fetchFn: send,
    }),
  )
  return { ...credential, replacesRefused, ...obtained(tokens, refreshToken, now) }
}

interface Tokens {
  access_token: string
  token_type: string
  refresh_token?: string | undefined
  expires_in?: number | undefined
}

async function tokensOf(request: () => Promise<Tokens>): Promise<Tokens> {
  const tokens = await request().catch((error: unknown) => {
    if (error instanceof BrokerError) throw error
    // The library's messages quote the server's answer: they stay in no log.
    if (FINAL.includes(tokenErrorCode(error) ?? '')) throw new TokenRefused()
    throw new BrokerError('unavailable', 'The authorization server does not answer as it must.')
  })
  // RFC 6749, section 7.1: a token of an unknown type must not be used.
  if (tokens.token_type.toLowerCase() !== 'bearer' || !isHeaderValue(tokens.access_token)) {
    throw new BrokerError('unavailable', 'The authorization server sends a token that is no bearer token.')
  }
  return tokens
}

const isHeaderValue = (token: string) => /^[\x21-\x7e]{1,20000}$/.test(token)

function obtained({ access_token, refresh_token, expires_in }: Tokens, before: string | null, now: number) {
  return {
    accessToken: access_token,
    refreshToken: refresh_token ?? before,
    obtainedAt: now,
    expiresAt: expires_in === undefined ? null : now + expires_in * 1_000,
  }
}
