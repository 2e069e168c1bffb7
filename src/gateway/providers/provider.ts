import type { BodyMembers } from '../protocols/body-members.ts'
import { anthropic } from './anthropic.ts'
import type { ProviderCredential } from './credential.ts'
import { openaiCompatible } from './openai-compatible.ts'
import type { ProviderKindDefinition, RequestTarget, Transport, UpstreamOperation } from './transport.ts'

/**
 * Providers are thin transports: address, authorization, framing, and the caller's headers that they understand. The
 * contents of bodies and frames belong to the protocols.
 */

export type ProviderKind = 'openai-compatible' | 'anthropic'

export const PROVIDER_KINDS: Readonly<Record<ProviderKind, ProviderKindDefinition>> = {
  'openai-compatible': openaiCompatible,
  anthropic,
}

/** An upstream service. */
export interface Provider {
  id: string
  name: string
  kind: ProviderKind
  baseUrl: string
  credential: ProviderCredential
  /** The only organization whose calls are sent there; absent for a provider of all organizations. */
  organizationId?: string | null
  /** Members of requests that pass although they select models or belong to the state of the provider. */
  allowedMembers?: readonly string[]
  /** Whether calls may use what has no price in the catalogue; their records are flagged. */
  allowsUnpriced?: boolean
}

/** Transports by the object of the provider: each reading of the catalogue makes new objects. */
const transports = new WeakMap<Provider, Transport>()

/** The transport of a provider, made at its first use. */
export function transportOf(provider: Provider): Transport {
  const known = transports.get(provider)
  if (known) return known
  const transport = PROVIDER_KINDS[provider.kind].connect(provider.baseUrl, provider.credential.parts)
  transports.set(provider, transport)
  return transport
}

export const speaks = (provider: Provider, operation: UpstreamOperation, upstreamModel: string): boolean =>
  transportOf(provider).speaks(operation, upstreamModel)

/** How the body of a request to a provider differs from that of its protocol; null for not at all. */
export const bodyMembersOf = (provider: Provider, target: RequestTarget): BodyMembers | null =>
  transportOf(provider).bodyMembers?.(target) ?? null
