import { createIntegration } from './integrations.ts'
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

/** An integration whose catalogue is not read. @returns its public id. */
export async function createUnreadIntegration(
  address: GatewayAddress,
  tenant: Tenant,
  { url = 'https://mcp.example.com/mcp', authorization = { kind: 'bearer' } as Json, granted = true } = {},
): Promise<string> {
  const body = { url, authorization, grant: granted, refresh: false }
  return (await createIntegration(address, tenant, body)).slug
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
