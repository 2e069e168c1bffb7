import type { EndpointName } from '../../src/wire/endpoints/endpoints.ts'
import { AdminError, usageError } from './errors.ts'
import type { Gateway } from './gateway.ts'

// The names that people use: in place of ids, and for what the API calls otherwise.

/** What has a name besides its id: the list of it, the member with the name, and whether the list can be filtered by it. */
const NAMED = {
  organization: {
    list: 'organizations.list',
    by: 'slug',
    isFilter: true,
    unknown: 'no organization has the slug',
  },
  user: { list: 'users.list', by: 'email', isFilter: true, unknown: 'nobody has the address' },
  group: { list: 'groups.list', by: 'name', isFilter: false, unknown: 'no group is called' },
  policy: { list: 'policies.list', by: 'name', isFilter: false, unknown: 'no DLP policy is called' },
  integration: {
    list: 'integrations.list',
    by: 'slug',
    isFilter: true,
    unknown: 'no integration has the slug',
  },
  agent: { list: 'agents.list', by: 'name', isFilter: true, unknown: 'no agent is called' },
  provider: { list: 'providers.list', by: 'name', isFilter: false, unknown: 'no provider is called' },
} as const satisfies Record<string, { list: EndpointName; by: string; isFilter: boolean; unknown: string }>

export type Named = keyof typeof NAMED

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * The id of what has a name.
 * @param organizationId where it is looked for; not used for organizations and providers. @param name an id passes as it is.
 * @throws AdminError if nothing has the name.
 */
export async function idOf(
  kind: Named,
  gateway: Gateway,
  organizationId: string,
  name: string,
): Promise<string> {
  if (UUID.test(name)) return name.toLowerCase()
  const { list, by, isFilter, unknown } = NAMED[kind]
  const query = { limit: 200, ...(isFilter && { [by]: name }) }
  for await (const { data } of gateway.pages(list, { path: { organizationId }, query } as never)) {
    const items = data as unknown as Array<{ id: string; [by]: unknown }>
    const found = items.find((item) => isSame(String(item[by as never]), name))
    if (found) return found.id
  }
  throw new AdminError(`${unknown} "${name}"`)
}

/** Addresses are stored in lower case. */
const isSame = (stored: string, name: string) =>
  stored === name || (name.includes('@') && stored === name.toLowerCase())

/** The id of the organization that a command works in. @throws AdminError if none is named. */
export async function organizationOf(gateway: Gateway, name: string | undefined): Promise<string> {
  if (!name) throw usageError('which organization? --organization <slug or id>, or HEADGATE_ORGANIZATION')
  return idOf('organization', gateway, '', name)
}

/** Parameters of paths: what they are called, and what name may stand for the id. */
export const PARAMETERS: Record<string, { label: string; named?: Named }> = {
  organizationId: { label: 'organization', named: 'organization' },
  userId: { label: 'user', named: 'user' },
  groupId: { label: 'group', named: 'group' },
  policyId: { label: 'policy', named: 'policy' },
  integrationId: { label: 'integration', named: 'integration' },
  agentId: { label: 'agent', named: 'agent' },
  providerId: { label: 'provider', named: 'provider' },
  keyId: { label: 'key-id' },
  grantId: { label: 'grant-id' },
  connectionId: { label: 'connection' },
  runId: { label: 'run' },
  modelId: { label: 'model' },
  entitlement: { label: 'right' },
  version: { label: 'number' },
  trigger: { label: 'trigger' },
}

/** Members whose option has another name than theirs, stands for an id, or shows another value in the help. */
export const MEMBERS: Record<string, { option?: string; named?: Named; value?: string }> = {
  base_url: { value: 'url' },
  capabilities: { option: 'capability', value: 'name' },
  compatibility: { value: 'form' },
  connection_id: { option: 'connection', value: 'id' },
  display_name: { option: 'name' },
  expires_at: { value: 'time' },
  from: { value: 'time' },
  group_by: { option: 'by', value: 'what' },
  hash: { value: 'hash' },
  id: { value: 'id' },
  integration: { value: 'slug' },
  key_id: { option: 'key', value: 'id' },
  kind: { value: 'kind' },
  model: { value: 'id' },
  model_id: { option: 'model', value: 'id' },
  organization_id: { option: 'for-organization', named: 'organization' },
  price: { value: 'micro-credits' },
  rate_limit_per_minute: { option: 'rate-limit' },
  scopes: { option: 'scope', value: 'scope' },
  to: { value: 'time' },
  tools: { option: 'tool', value: 'name' },
  url: { value: 'address' },
  user_id: { option: 'user', named: 'user' },
  user_rate_limit_per_minute: { option: 'user-rate-limit' },
}
