import {
  checkResourceAllowed,
  discoverAuthorizationServerMetadata,
  discoverOAuthProtectedResourceMetadata,
  extractWWWAuthenticateParams,
  OAuthError,
  registerClient,
  resourceUrlFromServerUrl,
} from '@modelcontextprotocol/client'
import type * as z from 'zod'
import type { AuthorizationMethod } from '../../types.ts'
import { clientInformation, serverMetadata } from '../../vault/oauth-metadata.ts'
import { BrokerError, type brokerFetch } from '../broker-fetch.ts'

export type ServerMetadata = z.infer<typeof serverMetadata>

export type ClientInformation = z.infer<typeof clientInformation>

type Send = ReturnType<typeof brokerFetch>

/** The part of an integration that an authorization needs. */
export interface AuthorizedUpstream {
  kind: 'mcp' | 'openapi'
  url: string
  authorization: Extract<AuthorizationMethod, { kind: 'oauth' }>
}

export interface Authorization {
  server: ServerMetadata
  /** Endpoint of dynamic registration; null when the server has none. */
  registrationEndpoint: string | null
  /** RFC 8707; null where the upstream does not name itself as a protected resource. */
  resource: string | null
  scope: string | null
}

/**
 * Finds out how an account of an upstream is connected: the metadata of the upstream (RFC 9728), then that of its
 * authorization server (RFC 8414, or OpenID Connect Discovery). What the integration states wins.
 * @throws BrokerError
 */
export async function discoverAuthorization(
  send: Send,
  upstream: AuthorizedUpstream,
): Promise<Authorization> {
  const { authorization, kind, url } = upstream
  const protectedResource = await discoverResource(send, url)
  const named = authorization.authorizationServer ?? protectedResource?.authorization_servers?.[0]
  // The older revision of MCP has the authorization server at the root of the upstream.
  const address = named ?? (kind === 'mcp' ? new URL('/', url).href : null)
  if (address === null) {
    throw new BrokerError(
      'unusable',
      'The integration does not state its authorization server, nor does its upstream.',
    )
  }
  const metadata = await readMetadata(send, address)
  const server = serverMetadata.parse(metadata)
  checkServer(server, kind)
  const resource = protectedResource?.resource ?? (kind === 'mcp' ? resourceUrlFromServerUrl(url).href : null)
  const scopes = authorization.scopes ?? protectedResource?.scopes_supported ?? []
  const offline = metadata.scopes_supported?.includes('offline_access') ? ['offline_access'] : []
  const scope = [...new Set([...scopes, ...(scopes.length > 0 ? offline : [])])].join(' ')
  const registrationEndpoint = metadata.registration_endpoint ?? null
  return { server, registrationEndpoint, resource, scope: scope || null }
}

/** @returns null for an upstream without metadata. @throws BrokerError for metadata of another resource. */
async function discoverResource(send: Send, url: string) {
  const metadata = await protectedResourceOf(send, url)
  if (metadata === null) return null
  const isOwn = checkResourceAllowed({ requestedResource: url, configuredResource: metadata.resource })
  if (!isOwn) throw new BrokerError('unusable', 'The metadata of the upstream is that of another resource.')
  return metadata
}

async function protectedResourceOf(send: Send, url: string) {
  try {
    return await discoverOAuthProtectedResourceMetadata(url, {}, send)
  } catch (error) {
    if (error instanceof BrokerError) throw error
  }
  // Some upstreams state the address of their metadata only where they refuse a request.
  const refusal = await send(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: '{}',
  })
  const { resourceMetadataUrl } = extractWWWAuthenticateParams(refusal)
  if (resourceMetadataUrl === undefined) return null
  try {
    return await discoverOAuthProtectedResourceMetadata(url, { resourceMetadataUrl }, send)
  } catch (error) {
    if (error instanceof BrokerError) throw error
    throw new BrokerError('unusable', 'The metadata of the upstream cannot be read.', { cause: error })
  }
}

async function readMetadata(send: Send, address: string) {
  try {
    const metadata = await discoverAuthorizationServerMetadata(address, { fetchFn: send })
    if (metadata !== undefined) return metadata
  } catch (error) {
    if (error instanceof BrokerError) throw error
    throw new BrokerError('unusable', 'The metadata of the authorization server cannot be used.', {
      cause: error,
    })
  }
  throw new BrokerError('unusable', 'The authorization server has no metadata.')
}

/** @throws BrokerError for a server that lacks what an authorization needs. */
function checkServer(server: ServerMetadata, kind: AuthorizedUpstream['kind']): void {
  const { response_types_supported: responseTypes, code_challenge_methods_supported: challenges } = server
  // MCP, Authorization: a client must not go on without PKCE. Servers of APIs often do not state it.
  const hasPkce = challenges?.includes('S256') ?? kind === 'openapi'
  if (responseTypes.includes('code') && hasPkce) return
  throw new BrokerError('unusable', 'The authorization server does not support codes with PKCE (S256).')
}

/**
 * Registers a client for one connection (RFC 7591).
 * @throws BrokerError for a server without registration, or one that refuses.
 */
export async function registerOwnClient(
  send: Send,
  { server, registrationEndpoint, scope }: Authorization,
  redirectUri: string,
): Promise<ClientInformation> {
  if (registrationEndpoint === null) {
    throw new BrokerError(
      'unusable',
      'The authorization server registers no clients: set the client id of one in the integration.',
    )
  }
  try {
    const registered = await registerClient(server.issuer, {
      metadata: { ...server, registration_endpoint: registrationEndpoint },
      clientMetadata: {
        client_name: 'Headgate',
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: authenticationFor(server),
        ...(scope !== null && { scope }),
      },
      fetchFn: send,
    })
    return clientInformation.parse(registered)
  } catch (error) {
    if (error instanceof BrokerError) throw error
    throw new BrokerError('unusable', 'The authorization server refuses to register a client.', {
      cause: error,
    })
  }
}

/** A secret where the server takes one: a code is worth nothing without it. */
function authenticationFor({ token_endpoint_auth_methods_supported: methods }: ServerMetadata): string {
  const known = ['client_secret_basic', 'client_secret_post', 'none']
  return known.find((method) => methods?.includes(method)) ?? 'client_secret_basic'
}

/** The error code of a token endpoint (RFC 6749, section 5.2); null for any other failure. */
export const tokenErrorCode = (error: unknown): string | null =>
  error instanceof OAuthError ? String(error.code) : null
