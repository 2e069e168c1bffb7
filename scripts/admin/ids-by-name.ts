import type { Call } from './command.ts'
import { AdminError, type Item, usageError } from './gateway-client.ts'

/** Names that people use, in place of ids: slugs, addresses, names of groups and providers. */

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** `/organizations/<id>` of the organization that a command works in. @throws AdminError if there is none. */
export async function organizationPath(call: Call): Promise<string> {
  const name = call.options.text('organization') ?? call.environment.HEADGATE_ORGANIZATION
  if (!name) throw usageError('which organization? --organization <slug or id>, or HEADGATE_ORGANIZATION')
  return `/organizations/${await organizationId(call, name)}`
}

/** @param name a slug or an id. */
export async function organizationId(call: Call, name: string): Promise<string> {
  if (UUID.test(name)) return name.toLowerCase()
  return findOne(call, '/organizations', { slug: name }, () => true, `no organization has the slug "${name}"`)
}

/** @param name an address or an id. */
export async function userId(call: Call, organization: string, name: string): Promise<string> {
  if (UUID.test(name)) return name.toLowerCase()
  return findOne(
    call,
    `${organization}/users`,
    { email: name },
    () => true,
    `nobody has the address "${name}"`,
  )
}

/** @param name a group's name or id. */
export async function groupId(call: Call, organization: string, name: string): Promise<string> {
  if (UUID.test(name)) return name.toLowerCase()
  return findOne(call, `${organization}/groups`, {}, named(name), `no group is called "${name}"`)
}

/** @param name a DLP policy's name or id. */
export async function policyId(call: Call, organization: string, name: string): Promise<string> {
  if (UUID.test(name)) return name.toLowerCase()
  return findOne(call, `${organization}/dlp/policies`, {}, named(name), `no DLP policy is called "${name}"`)
}

/** @param name an integration's slug or id. */
export async function integrationId(call: Call, organization: string, name: string): Promise<string> {
  if (UUID.test(name)) return name.toLowerCase()
  const path = `${organization}/integrations`
  return findOne(call, path, { slug: name }, () => true, `no integration has the slug "${name}"`)
}

/** @param name an agent's name or id. */
export async function agentId(call: Call, organization: string, name: string): Promise<string> {
  if (UUID.test(name)) return name.toLowerCase()
  return findOne(call, `${organization}/agents`, { name }, named(name), `no agent is called "${name}"`)
}

/** @param name a provider's name or id. */
export async function providerId(call: Call, name: string): Promise<string> {
  if (UUID.test(name)) return name.toLowerCase()
  return findOne(call, '/providers', {}, named(name), `no provider is called "${name}"`)
}

const named = (name: string) => (item: Item) => item.name === name

async function findOne(
  call: Call,
  path: string,
  query: Record<string, string>,
  matches: (item: Item) => boolean,
  otherwise: string,
): Promise<string> {
  const { items } = await call.gateway.list(path, query, Number.MAX_SAFE_INTEGER)
  const id = items.find(matches)?.id
  if (typeof id !== 'string') throw new AdminError(otherwise)
  return id
}
