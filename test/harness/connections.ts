import { query } from './gateway.ts'
import type { GatewayAddress } from './start-gateway.ts'
import { administrator, type Tenant, uniqueName } from './tenant.ts'

type Json = Record<string, unknown>

/** A connection as the management API returns it. */
export interface ManagedConnection {
  id: string
  integration: string
  display_name: string
  user_id: string | null
  owner_disabled: boolean
  broker: string
  upstream_connection_id: string
  status: string
  hint: string | null
  shares: Array<{ group_id: string; permission: string }>
  [member: string]: unknown
}

/** An integration row, and a grant on all of its tools to the organization. @returns its public id. */
export async function createIntegrationRow(
  address: GatewayAddress,
  tenant: Tenant,
  { url = 'https://mcp.example.com/mcp', authorization = { kind: 'bearer' } as Json, granted = true } = {},
): Promise<string> {
  const slug = uniqueName('service')
  await query(
    address,
    `insert into integrations (id, organization_id, slug, display_name, kind, url, "authorization")
     values ($1, $2, $3, $3, 'mcp', $4, $5)`,
    [crypto.randomUUID(), tenant.organizationId, slug, url, JSON.stringify(authorization)],
  )
  if (granted) {
    await query(
      address,
      `insert into integration_grants (id, organization_id, subject_type, subject_id, integration)
       values ($1, $2, 'organization', $3, $4)`,
      [crypto.randomUUID(), tenant.organizationId, tenant.organizationId, slug],
    )
  }
  return slug
}

/** Creates a connection with a bearer token through the management API; of the organization without a `user_id`. */
export const createConnection = (
  address: GatewayAddress,
  tenant: Tenant,
  integration: string,
  more: Json = {},
): Promise<ManagedConnection> =>
  administrator(address).ask('POST', `${tenant.base}/connections`, {
    integration,
    display_name: 'Account',
    credential: { secret: `token-of-${uniqueName('account')}` },
    ...more,
  })

export const grantPersonalAccess = (address: GatewayAddress, tenant: Tenant, userId = tenant.userId) =>
  administrator(address).ask('PUT', `${tenant.base}/users/${userId}/entitlements/personal_api_key_access`)
