import { selectClientAuthMethod } from '@modelcontextprotocol/client'
import { errorText, logEvent } from '../../../lib/log.ts'
import type { OAuthCredential } from '../../vault/stored-credential.ts'
import { brokerFetch } from '../broker-fetch.ts'
import type { ClientInformation, ServerMetadata } from './authorization-server.ts'

const TIME_LIMIT_MS = 5_000

/**
 * Ends the grant of an account at its authorization server, if that has an endpoint for it (RFC 7009). It is tried
 * once: if the server fails, it keeps a grant whose tokens are deleted here. Never rejects.
 * @param allow see `brokerFetch`. @param connectionId for the log.
 */
export async function revokeGrant(
  allow: readonly string[],
  connectionId: string,
  { server, client, accessToken, refreshToken }: OAuthCredential,
): Promise<void> {
  const { revocation_endpoint: endpoint } = server
  if (endpoint === undefined) return
  const token =
    refreshToken === null
      ? { token: accessToken, token_type_hint: 'access_token' }
      : { token: refreshToken, token_type_hint: 'refresh_token' }
  try {
    const authentication = authenticationOf(server, client)
    const { ok, status } = await brokerFetch(allow, TIME_LIMIT_MS)(endpoint, {
      method: 'POST',
      headers: { accept: 'application/json', ...authentication.headers },
      body: new URLSearchParams({ ...token, ...authentication.parameters }),
    })
    if (!ok) logEvent('warn', 'connection.grant_not_revoked', { connection_id: connectionId, status })
  } catch (error) {
    const reason = errorText(error)
    logEvent('warn', 'connection.grant_not_revoked', { connection_id: connectionId, error: reason })
  }
}

/** The client's authentication (RFC 6749, section 2.3.1), by the methods that the endpoint takes (RFC 8414, section 2). */
function authenticationOf(server: ServerMetadata, client: ClientInformation) {
  const { client_id: id, client_secret: secret } = client
  const methods =
    server.revocation_endpoint_auth_methods_supported ?? server.token_endpoint_auth_methods_supported ?? []
  const method = selectClientAuthMethod(client, methods)
  if (secret === undefined || method === 'none') return { headers: {}, parameters: { client_id: id } }
  if (method === 'client_secret_post') {
    return { headers: {}, parameters: { client_id: id, client_secret: secret } }
  }
  const pair = `${encodeURIComponent(id)}:${encodeURIComponent(secret)}`
  return { headers: { authorization: `Basic ${Buffer.from(pair).toString('base64')}` }, parameters: {} }
}
