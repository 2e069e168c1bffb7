import { invalidRequest } from '../../lib/api-error.ts'
import type { RequestOutline } from '../protocols/request-outline.ts'
import { PROVIDER_KINDS, type Provider } from '../providers/provider.ts'

/**
 * Refuses members of a request that its provider would obey with the credential of the gateway: a selection of another
 * model than the granted one, and state at the provider, such as files and containers, which every organization that uses
 * the credential could read. State passes to a provider of the caller's organization alone.
 * @throws ApiError invalid_request naming the member, unless the provider's entry allows it.
 */
export function refuseMembers(
  { members, toolModel, providerState }: RequestOutline,
  { kind, organizationId, allowedMembers = [] }: Provider,
  callerOrganizationId: string,
): void {
  const { routingMembers } = PROVIDER_KINDS[kind]
  const routing = members.find(
    ({ name, kind }) => kind !== 'null' && routingMembers.has(folded(name)) && !allowedMembers.includes(name),
  )
  const selection = routing?.name ?? (allowedMembers.includes('tools') ? null : toolModel)
  if (selection !== null && selection !== undefined) {
    throw invalidRequest(
      `${selection}: members that select another model or provider are not accepted. The model of the call is \`model\` alone.`,
    )
  }
  if (providerState === null || organizationId === callerOrganizationId) return
  if (allowedMembers.includes(providerState.member)) return
  throw invalidRequest(
    `${providerState.place}: files, containers and other state at the provider are not accepted, because this model has no ` +
      'provider entry of your organization. Send the content itself.',
  )
}

/** Some upstreams ignore the case of names. */
const folded = (name: string): string => name.normalize('NFKC').toLowerCase()
