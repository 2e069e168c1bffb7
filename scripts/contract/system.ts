import { buildBundle } from '../../test/harness/bundle.ts'
import { entitle } from '../../test/harness/mcp.ts'
import { type GatewayAddress, startGateway } from '../../test/harness/start-gateway.ts'
import { addKey, addMember, createTenant } from '../../test/harness/tenant.ts'
import type { AccessParties } from './foreign-objects.ts'
import { createObjects, type OwnedObjects } from './owned-objects.ts'

/** No request may be refused for its number. */
const UNLIMITED = String(1_000_000_000)
const VARIABLES = { ORGANIZATION_RATE_LIMIT: UNLIMITED, USER_RATE_LIMIT: UNLIMITED }

/** A whole local system. Models are those of the scripted upstream, and nothing reaches an address outside of this machine. */
export async function startContractSystem(): Promise<{ gateway: GatewayAddress; stop(): Promise<void> }> {
  const bundle = await buildBundle()
  try {
    const gateway = await startGateway({
      bundleDirectory: bundle.directory,
      variables: VARIABLES,
      network: ['private'],
    })
    const stop = async () => {
      await gateway.stop()
      bundle.remove()
    }
    return { gateway, stop }
  } catch (error) {
    bundle.remove()
    throw error
  }
}

/** Objects of whose ids the documents are tested: each document has an organization of its own. */
export async function createTargets(
  gateway: GatewayAddress,
): Promise<{ management: OwnedObjects; public: OwnedObjects }> {
  return { management: await createObjects(gateway), public: await createObjects(gateway) }
}

/** Organizations and members with objects that others call for. */
export async function createParties(gateway: GatewayAddress): Promise<AccessParties> {
  const owners = await createTargets(gateway)
  const outsider = await createTenant(gateway, { models: [] })
  await entitle(gateway, outsider.base, outsider.userId)
  const { base } = owners.public.tenant
  // An owner of the organization: a role opens nothing of another member's.
  const colleague = await addMember(gateway, base, { role: 'owner' })
  await entitle(gateway, base, colleague)
  return {
    baseUrl: gateway.baseUrl,
    adminToken: gateway.adminToken,
    owners,
    stranger: await createObjects(gateway),
    outsiderKey: outsider.key,
    colleagueKey: (await addKey(gateway, base, colleague)).key,
  }
}
