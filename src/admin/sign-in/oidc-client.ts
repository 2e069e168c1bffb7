import type { ClientAuth, Configuration, IDToken, ServerMetadata, UserInfoResponse } from 'openid-client'
import { BrokerError, brokerFetch } from '../../integrations/brokers/broker-fetch.ts'
import type { Clock } from '../../lib/clock.ts'
import { logEvent } from '../../lib/log.ts'

/**
 * The client of identity providers (https://openid.net/specs/openid-connect-core-1_0.html): code flow with PKCE, state and nonce. The
 * metadata and the keys of a provider are read for each sign-in, so that a rotated key needs no wait and nothing is cached.
 */

/** The library is loaded by the first sign-in with a provider, as that of passkeys is. */
const openid = () => import('openid-client')

/** What a failed exchange was: `declined` by the provider or the person, `refused` here. */
export type ProviderFailure = 'unreachable' | 'unusable' | 'declined' | 'refused'

/** Why a provider could not be used. It quotes nothing of the provider's. */
export class ProviderError extends Error {
  readonly failure: ProviderFailure
  constructor(failure: ProviderFailure, options?: ErrorOptions) {
    super(`The identity provider: ${failure}.`, options)
    this.name = 'ProviderError'
    this.failure = failure
  }
}

interface ProviderDeps {
  clock: Clock
  egressAllow: readonly string[]
}

/** The organization's client at its provider. */
interface ProviderClient {
  issuer: string
  clientId: string
  clientSecret: string | null
}

/** What a browser takes along to the provider, and what has to come back. */
export interface ProviderRequest {
  redirectUri: string
  state: string
  nonce: string
  /** The secret of PKCE (RFC 7636). */
  verifier: string
  /** Whether the person has to prove who it is again. */
  reauthenticates: boolean
}

/** An account that has signed in at its provider. */
export interface ProviderAccount {
  subject: string
  /** When the person last proved who it is, in milliseconds since the epoch; null where the provider does not say. */
  authenticatedAt: number | null
  /** In lower case; null for an address that the provider has not verified. */
  verifiedAddress: () => Promise<string | null>
}

/** Seconds for which one request may last; the guarded fetch has a limit of its own too. */
const TIME_LIMIT_SECONDS = 10
/** Difference of clocks, in seconds. */
const CLOCK_TOLERANCE = 30
const LONGEST_SUBJECT = 255

/** The issuer as its metadata have it. @throws ProviderError */
export const issuerOf = (deps: ProviderDeps, issuer: string): Promise<string> =>
  attempted(async () => {
    const client = { issuer, clientId: 'discovery', clientSecret: null }
    const metadata = (await configurationOf(deps, client)).serverMetadata()
    if (!hasEndpoints(metadata, issuer)) throw new ProviderError('unusable')
    return metadata.issuer
  })

/** The address at which the browser signs in. @throws ProviderError */
export const authorizationUrl = (
  deps: ProviderDeps,
  client: ProviderClient,
  { redirectUri, state, nonce, verifier, reauthenticates }: ProviderRequest,
): Promise<string> =>
  attempted(async () => {
    const configuration = await pinnedConfiguration(deps, client)
    const { buildAuthorizationUrl, calculatePKCECodeChallenge } = await openid()
    return buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: 'openid email',
      state,
      nonce,
      code_challenge: await calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      ...(reauthenticates && { prompt: 'login', max_age: '0' }),
    }).href
  })

/**
 * Exchanges the code with which a browser has come back, and checks the id token: signature, issuer, audience, nonce and times.
 * @param returned the query of the return. @param maxAge seconds within which the person must have proved who it is; null for any.
 * @throws ProviderError
 */
export const accountOf = (
  deps: ProviderDeps,
  client: ProviderClient,
  { redirectUri, state, nonce, verifier }: ProviderRequest,
  returned: URLSearchParams,
  maxAge: number | null,
): Promise<ProviderAccount> =>
  attempted(async () => {
    const configuration = await pinnedConfiguration(deps, client)
    const { authorizationCodeGrant, fetchUserInfo } = await openid()
    const tokens = await authorizationCodeGrant(configuration, new URL(`${redirectUri}?${returned}`), {
      expectedState: state,
      expectedNonce: nonce,
      pkceCodeVerifier: verifier,
      idTokenExpected: true,
      ...(maxAge !== null && { maxAge }),
    })
    const claims = tokens.claims()
    if (claims === undefined || claims.sub.length > LONGEST_SUBJECT || claims.sub.includes('\0'))
      throw new ProviderError('refused')
    const { sub: subject, auth_time: authTime } = claims
    const hasUserInfo = configuration.serverMetadata().userinfo_endpoint !== undefined
    return {
      subject,
      authenticatedAt: authTime === undefined ? null : authTime * 1_000,
      verifiedAddress: () =>
        attempted(async () => {
          // A provider may give the address with the access token only (OpenID Connect Core, 5.4).
          if (claims.email !== undefined || !hasUserInfo) return verifiedAddress(claims)
          return verifiedAddress(await fetchUserInfo(configuration, tokens.access_token, subject))
        }),
    }
  })

/** Only the value `true` says that the person reads the mail of an address. */
function verifiedAddress({ email, email_verified: isVerified }: IDToken | UserInfoResponse): string | null {
  return typeof email === 'string' && isVerified === true ? email.toLowerCase() : null
}

/** The configuration of a provider that still names the stored issuer. */
async function pinnedConfiguration(deps: ProviderDeps, client: ProviderClient): Promise<Configuration> {
  const configuration = await configurationOf(deps, client)
  const metadata = configuration.serverMetadata()
  if (metadata.issuer !== client.issuer || !hasEndpoints(metadata, client.issuer))
    throw new ProviderError('unusable')
  return configuration
}

async function configurationOf(
  { clock, egressAllow }: ProviderDeps,
  { issuer, clientId, clientSecret }: ProviderClient,
): Promise<Configuration> {
  const library = await openid()
  const metadata = {
    [library.clockSkew]: Math.round((clock() - Date.now()) / 1_000),
    [library.clockTolerance]: CLOCK_TOLERANCE,
  }
  const guarded = brokerFetch(egressAllow)
  const configuration = await library.discovery(
    new URL(issuer),
    clientId,
    metadata,
    clientSecret === null ? library.None() : secretAuthentication(library, clientSecret),
    {
      [library.customFetch]: (address, { body, ...init }) =>
        guarded(address, { ...init, body: body ?? null } as RequestInit),
      timeout: TIME_LIMIT_SECONDS,
      execute: [
        // The library leaves out the signature of a token that came straight from the token endpoint.
        library.enableNonRepudiationChecks,
        // The guarded fetch takes http only where the operator has allowed the host.
        ...(issuer.startsWith('http:') ? [library.allowInsecureRequests] : []),
      ],
    },
  )
  // The library lets some vendors name another issuer than the one that was called.
  if (new URL(configuration.serverMetadata().issuer).href !== new URL(issuer).href)
    throw new ProviderError('unusable')
  return configuration
}

/** The secret in the way that the provider takes it: `client_secret_basic` unless it only takes the other. */
function secretAuthentication(
  { ClientSecretBasic, ClientSecretPost }: Awaited<ReturnType<typeof openid>>,
  secret: string,
): ClientAuth {
  const [basic, post] = [ClientSecretBasic(secret), ClientSecretPost(secret)]
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    return (methods.includes('client_secret_basic') ? basic : post)(server, ...rest)
  }
}

/** Whether metadata have what a sign-in needs. The page that a browser is sent to must be a page, not a script. */
function hasEndpoints(metadata: Readonly<ServerMetadata>, issuer: string): boolean {
  const { authorization_endpoint: page, token_endpoint: tokens, jwks_uri: keys } = metadata
  if (page === undefined || tokens === undefined || keys === undefined || !URL.canParse(page)) return false
  return ['https:', new URL(issuer).protocol].includes(new URL(page).protocol)
}

/** @throws ProviderError for every failure of the provider or its answers. The library's errors hold what the provider sent. */
async function attempted<Result>(attempt: () => Promise<Result>): Promise<Result> {
  try {
    return await attempt()
  } catch (error) {
    if (error instanceof ProviderError) throw error
    const failure = failureOf(error)
    logEvent('warn', 'sign_in.provider_failed', { failure, code: codeOf(error) })
    throw new ProviderError(failure)
  }
}

const SERVER_FAULT = 500

function failureOf(error: unknown): ProviderFailure {
  if (error instanceof BrokerError) return error.reason === 'unavailable' ? 'unreachable' : 'unusable'
  if (!(error instanceof Error)) return 'refused'
  // The bundle gives classes other names, so that those of errors say nothing.
  if (codeOf(error) === 'OAUTH_AUTHORIZATION_RESPONSE_ERROR') return 'declined'
  if ('status' in error && Number(error.status) >= SERVER_FAULT) return 'unreachable'
  if (error.cause instanceof Response && error.cause.status >= SERVER_FAULT) return 'unreachable'
  return error.cause instanceof Error ? failureOf(error.cause) : 'refused'
}

/** The library's name of a failure, which is none of the provider's texts. */
function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return /^OAUTH_[A-Z_]+$/.test(code) ? code : 'other'
}
