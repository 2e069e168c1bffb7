import type { BodyMembers } from '../protocols/body-members.ts'
import { anthropic } from './anthropic/anthropic.ts'
import { azureOpenAi } from './azure/azure-openai.ts'
import { foundry } from './azure/foundry.ts'
import { bedrock } from './bedrock/bedrock.ts'
import { noteToken, type ProviderCredential } from './credential.ts'
import { gemini } from './gemini/gemini.ts'
import { MAKER_KINDS } from './makers/maker-provider.ts'
import type { MakerKind } from './makers/makers.ts'
import { openaiCompatible } from './openai-compatible.ts'
import type {
  CounterForm,
  ProviderKindDefinition,
  RequestTarget,
  Transport,
  UpstreamOperation,
} from './transport.ts'
import { vertex } from './vertex/vertex.ts'

/**
 * Providers are thin transports: address, authorization, framing, and the caller's headers that they understand. The
 * contents of bodies and frames belong to the protocols.
 */

export type ProviderKind =
  | 'openai-compatible'
  | 'anthropic'
  | 'azure-openai'
  | 'bedrock'
  | 'foundry'
  | 'vertex'
  | 'gemini'
  | MakerKind

export const PROVIDER_KINDS: Readonly<Record<ProviderKind, ProviderKindDefinition>> = {
  'openai-compatible': openaiCompatible,
  anthropic,
  'azure-openai': azureOpenAi,
  bedrock,
  foundry,
  vertex,
  gemini,
  ...MAKER_KINDS,
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
  const { kind, baseUrl, credential, allowedMembers = [] } = provider
  const transport = PROVIDER_KINDS[kind].connect(baseUrl, credential.parts, { allowedMembers })
  const keeping = transport.renew ? notingTokens(transport, credential) : transport
  transports.set(provider, keeping)
  return keeping
}

/** A transport whose access tokens are cut out of answers as its credential is. */
function notingTokens(transport: Transport, credential: ProviderCredential): Transport {
  const { authorize } = transport
  if (!authorize) return transport
  return {
    ...transport,
    async authorize(request) {
      const headers = await authorize(request)
      noteToken(credential, (headers.authorization ?? '').replace(/^Bearer /, ''))
      return headers
    },
  }
}

export const speaks = (provider: Provider, operation: UpstreamOperation, upstreamModel: string): boolean =>
  transportOf(provider).speaks(operation, upstreamModel)

/** The capabilities of a model at a provider. @param capabilities of the catalogue. */
export function capabilitiesOf(
  provider: Provider,
  upstreamModel: string,
  capabilities: readonly string[],
): readonly string[] {
  const withheld = transportOf(provider).withheld?.(upstreamModel) ?? []
  return withheld.length === 0 ? capabilities : capabilities.filter((word) => !withheld.includes(word))
}

/** The form of a provider's token counter for a model; null where it has none. */
export const counterOf = (provider: Provider, upstreamModel: string): CounterForm | null =>
  transportOf(provider).counter?.(upstreamModel) ?? null

/** How the body of a request to a provider differs from that of its protocol; null for not at all. */
export const bodyMembersOf = (provider: Provider, target: RequestTarget): BodyMembers | null =>
  transportOf(provider).bodyMembers?.(target) ?? null
