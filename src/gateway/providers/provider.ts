import type { FrameReader } from '../../lib/sse.ts'
import { anthropic } from './anthropic.ts'
import type { ProviderCredential } from './credential.ts'
import { openaiCompatible } from './openai-compatible.ts'
import type { ProviderKindDefinition, Transport, UpstreamOperation } from './transport.ts'

/**
 * Providers are thin transports: address, authorization, framing, and the headers of the caller that they understand.
 * The contents of bodies and frames belong to the protocols.
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
}

/** By the entry of the catalogue: one that was read again has its own. */
const transports = new WeakMap<Provider, Transport>()

/** How a provider is called. */
export function transportOf(provider: Provider): Transport {
  const known = transports.get(provider)
  if (known) return known
  const transport = PROVIDER_KINDS[provider.kind].connect(provider.baseUrl, provider.credential.parts)
  transports.set(provider, transport)
  return transport
}

export const speaks = (provider: Provider, operation: UpstreamOperation): boolean =>
  transportOf(provider).speaks(operation)

/** Whether an answer is a stream, in the framing of its provider. */
export const isStream = (provider: Provider, response: Response): boolean =>
  response.headers.get('content-type')?.includes(transportOf(provider).streamType) ?? false

/** A reader of one stream: bytes in whatever chunks they come, whole frames out. */
export const framesOf = (provider: Provider, response: Response): FrameReader =>
  transportOf(provider).frames(response)
