import { unprocessable } from '../../../lib/api-error.ts'
import { type TokenExchange, tokenOf } from '../access-tokens.ts'
import type { CredentialParts } from '../credential.ts'

// https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-client-creds-grant-flow

/** Tenants are ids or domains: nothing else may stand in the path of the token service. */
const TENANT = /^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?$/
const SCOPE = 'https://cognitiveservices.azure.com/.default'

/** @throws ApiError `unprocessable` for a tenant that is none; the message does not quote it. */
export function checkTenant({ tenant_id: tenant }: CredentialParts): void {
  if (tenant === undefined || TENANT.test(tenant)) return
  throw unprocessable('credential: `tenant_id` must be the id or a domain of the tenant.')
}

/** The exchange of a client's secret for an access token of Microsoft Entra ID, at its own host alone. */
export function entraExchange(parts: CredentialParts): TokenExchange {
  const { tenant_id: tenant = '', client_id = '', client_secret = '' } = parts
  const address = `https://login.microsoftonline.com/${tenant}/oauth2/v2.0/token`
  const form = { grant_type: 'client_credentials', client_id, client_secret, scope: SCOPE }
  const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }
  return async ({ now, send }) => {
    checkTenant(parts)
    const body = new URLSearchParams(form).toString()
    return tokenOf(await send(address, { method: 'POST', headers, body }), now)
  }
}
